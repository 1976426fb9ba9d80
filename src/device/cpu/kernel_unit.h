#pragma once

#include "device/cpu/attend_kernels.h"
#include "device/cpu/cached_row_kernels.h"
#include "device/cpu/dot_loops.h"
#include "device/cpu/grouped_kernels.h"
#include "device/cpu/kernel_table.h"
#include "device/cpu/product_kernels.h"
#include "device/cpu/row_kernels.h"

namespace latte {
namespace {

/// The generic bodies over one SIMD type. `Bf16Dot` is FloatDot<S> where bf16 operands are not multiplied as such;
/// `GroupDot` multiplies the codes of grouped weights; the loops are those of the instructions that the set adds.
template <class S, class Bf16Dot, class GroupDot>
constexpr KernelTable kernel_table(const char* isa, DotLoop loop, DotLoop other_loop = {}) {
  return {.isa = isa,
          .vector_width = S::kWidth,
          .group_rows = S::kGroupVecs * S::kWidth,
          .bf16_group_rows = 0,
          .bf16_products = !__is_same(Bf16Dot, FloatDot<S>),
          .code_rows = GroupDot::kMostRows,
          .dot_loops = {loop, other_loop},
          .product = &product<S, Bf16Dot>,
          .row_sum = &row_sum<S>,
          .grouped_product = &grouped_product<GroupDot>,
          .round_groups = &round_groups,
          .round_bf16 = nullptr,
          .wide_product = nullptr,
          .wide_rows = nullptr,
          .prepare_queries = &prepare_queries<S>,
          .attend_leaf = &attend_leaf<S>,
          .widen_rows = &widen_rows<S>,
          .scale = &scale<S>,
          .combine = &combine<S>,
          .rms_norm = &rms_norm<S>,
          .add_scaled = &add_scaled<S>};
}

}  // namespace
}  // namespace latte
