#pragma once

#include <utility>

#include "attention/attention_buffers.h"
#include "backend/backend.h"
#include "latte/error.h"
#include "model/config.h"
#include "plan/step_plan.h"

namespace latte {

/// Device memory that only grows, so that steps allocate nothing once the largest has run.
class StepMemory {
 public:
  explicit StepMemory(Backend& backend) : backend_(&backend) {}

  /// At least `bytes`; content is lost when it grows.
  Status fit(std::size_t bytes) {
    if (bytes <= buffer_.bytes()) return {};
    buffer_ = DeviceBuffer();
    Result<DeviceBuffer> grown = backend_->allocate(bytes);
    if (!grown.ok()) return grown.error();
    buffer_ = std::move(*grown);
    return {};
  }
  void* base() const { return buffer_.data(); }
  std::size_t bytes() const { return buffer_.bytes(); }

 private:
  Backend* backend_;
  DeviceBuffer buffer_;
};

/// What the layers of one step work in. Nothing here outlives the step, so timelines of one session share the memory.
struct LayerBuffers {
  MatRef x_LD;  ///< residual stream
  MatRef normed_LD;
  MatRef joined_L2D;  ///< an MTP layer's input: [enorm(embedding) ; hnorm(hidden)]
  MatRef cos_Lp, sin_Lp;
  AttentionBuffers attention;
  MatRef router_LE;
  MatView<std::int32_t> expert_ids_Lk;
  MatRef expert_weights_Lk;

  /// `joins`: the step is an MTP layer's.
  static LayerBuffers carve(BufferCarver& carver, const StepPlan& plan, const ModelConfig& config, DType activation,
                            bool joins);
};

}  // namespace latte
