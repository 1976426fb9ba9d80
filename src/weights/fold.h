#pragma once

#include <string_view>

#include "latte/error.h"
#include "plan/geometry.h"
#include "tensor/mat_ref.h"

namespace latte {

/// kv_b_proj as the absorbed form uses it: per head, the rows that make keys and the rows that make values.
struct FoldedKvB {
  ConstStackRef w_uk;  ///< [H, n, r]
  ConstStackRef w_uv;  ///< [H, v, r]
};

/// Views kv_b [H*(n+v), r] as [H, n+v, r] and takes rows 0..n-1 and n.. of each head. No copy: the views alias
/// `kv_b_OI`. A shape that does not partition is an error that names the tensor and its file.
Result<FoldedKvB> fold_kv_b(ConstMatRef kv_b_OI, const MlaGeometry& geometry, std::string_view name,
                            std::string_view file);

}  // namespace latte
