#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "plan/step_plan.h"

namespace latte {

/// Cuts one device buffer into matrices. Over a null base it only counts the bytes (`used`); the same calls then cut
/// real memory.
class BufferCarver {
 public:
  explicit BufferCarver(void* base) : base_(static_cast<std::byte*>(base)) {}

  MatRef take(std::int64_t rows, std::int64_t cols, DType dtype) {
    const std::size_t bytes = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * dtype_bytes(dtype);
    void* data = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + 63) / 64 * 64;
    return {data, dtype, rows, cols, cols};
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// The working memory of one layer's attention; layers use it in turn.
struct AttentionBuffers {
  MatRef q_latent_Lq;    ///< [L, q_lora_rank]
  MatRef q_LHk;          ///< [L, H * (n + p)]
  MatRef kv_a_Ll;        ///< [L, r + p]: normed c, rotated k_pe
  MatRef q_absorbed_Wl;  ///< [rows of a call * H, r + p]
  MatRef context_Wr;     ///< [rows of a call * H, r]
  MatRef out_LHv;        ///< [L, H * v]
  MatRef keys, values;   ///< materialised chunk: [H * chunk, n + p], [H * chunk, v]

  // Of grouped-query attention.
  MatRef q_LHd;                         ///< [L, H * d]
  MatRef k_Lgd, v_Lgd;                  ///< [L, kv heads * d]
  MatRef out_LHd;                       ///< [L, H * d]
  MatRef packed_q_GWd, packed_out_GWd;  ///< [H * rows of a call, d]: lane after lane

  MatRef partial_o, partial_sums;

  static AttentionBuffers carve(BufferCarver& carver, const StepPlan& plan, int q_lora_rank, DType activation);
  static AttentionBuffers carve_gqa(BufferCarver& carver, const StepPlan& plan, DType activation);
};

}  // namespace latte
