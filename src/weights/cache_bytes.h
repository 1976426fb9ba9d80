#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/model_weights.h"
#include "weights/weight_spec.h"

namespace latte {

/// Fills what cached rows take in a report whose layers and stored type are known.
inline void fill_cache_bytes(const WeightSpec& spec, std::size_t mtp_layers, LoadReport& report) {
  const MlaGeometry& g = spec.geometry;
  const std::int64_t element_bytes = report.stored_dtype == DType::kF32 ? 4 : 2;
  report.latent_bytes_per_token = element_bytes * report.layers * spec.cache_width();
  report.mtp_cache_bytes_per_token = element_bytes * static_cast<std::int64_t>(mtp_layers) * spec.cache_width();
  report.expanded_bytes_per_token = spec.attention == AttentionKind::kMla
                                        ? element_bytes * report.layers * g.heads * (g.key_width() + g.v)
                                        : report.latent_bytes_per_token;
}

}  // namespace latte
