#include "device/cpu/kernel_table.h"

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__) && defined(__AVX512BF16__) && \
    defined(__AVX512VNNI__)
#include "device/cpu/amx_attend.h"
#include "device/cpu/amx_dot_loops.h"
#include "device/cpu/amx_product.h"
#include "device/cpu/group_dot_avx512.h"
#include "device/cpu/kernel_unit.h"
#include "device/cpu/simd_avx512.h"

namespace latte {
namespace {

/// Rows of one attention task: their queries and results stay in the second-level cache beside a block of the cache.
constexpr int kMostGroupRows = 128;

/// AVX-512 with VNNI, but attention over bf16 rows and products of many rows on tiles. Few rows of bf16 weights are
/// multiplied as floats: where there are tiles the dot instruction of bf16 pairs runs at half the rate of the FMA, less
/// than memory gives to 8 rows.
constexpr KernelTable amx_table() {
  KernelTable table = kernel_table<Avx512, FloatDot<Avx512>, VnniGroupDot>("amx", amx_loop<DotType::kBf16>("tdpbf16ps"),
                                                                           amx_loop<DotType::kInt8>("tdpbssd"));
  table.bf16_group_rows = kMostGroupRows;
  table.prepare_queries = &amx_prepare_queries;
  table.attend_leaf = &amx_attend_leaf;
  table.wide_product = &wide_product;
  table.wide_rows = &wide_rows;
  return table;
}

}  // namespace

const KernelTable* amx_kernels() {
  static constexpr KernelTable kTable = amx_table();
  return &kTable;
}

}  // namespace latte
#else
const latte::KernelTable* latte::amx_kernels() { return nullptr; }
#endif
