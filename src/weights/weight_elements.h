#pragma once

#include <cstdint>
#include <optional>

#include "weights/weight_spec.h"

namespace latte {

/// Elements of all weights, MTP layers without copies of embedding and head; nothing where they are more than `most`.
std::optional<std::int64_t> weight_elements(const WeightSpec& spec, std::int64_t most);

}  // namespace latte
