#include "weights/fold.h"

#include "base/fail.h"

namespace latte {

Result<FoldedKvB> fold_kv_b(ConstMatRef kv_b_OI, const MlaGeometry& geometry, std::string_view name,
                            std::string_view file) {
  const std::int64_t rows_per_head = std::int64_t{geometry.n} + geometry.v;
  if (kv_b_OI.rows != geometry.heads * rows_per_head || kv_b_OI.cols != geometry.r) {
    return fail(
        ErrorKind::kInvalidInput,
        "[load] tensor \"{}\": shape [{}, {}], expected [{}, {}] (H*(n+v), r): config.json and weights do not belong "
        "together; file {}",
        name, kv_b_OI.rows, kv_b_OI.cols, geometry.heads * rows_per_head, geometry.r, file);
  }
  const ConstStackRef keys{.data = kv_b_OI.data,
                           .dtype = kv_b_OI.dtype,
                           .count = geometry.heads,
                           .rows = geometry.n,
                           .cols = geometry.r,
                           .stack_stride = rows_per_head * kv_b_OI.row_stride,
                           .row_stride = kv_b_OI.row_stride};
  ConstStackRef values = keys;
  values.data = kv_b_OI.at(geometry.n, 0);
  values.rows = geometry.v;
  return FoldedKvB{keys, values};
}

}  // namespace latte
