#include "api/attention_floor.h"

namespace latte {

AttentionOperations attention_operations(const MlaGeometry& g, AttentionArm arm, std::int64_t before,
                                         std::int64_t rows) {
  const std::int64_t seen = rows * before + rows * (rows + 1) / 2;
  const std::int64_t width = arm == AttentionArm::kAbsorbed ? g.latent_width() + g.r : g.key_width() + g.v;
  const std::int64_t expanded_rows = arm == AttentionArm::kExpanded   ? 0
                                     : arm == AttentionArm::kAbsorbed ? rows
                                                                      : before + rows;
  return {.core = 2 * g.heads * seen * width,
          .products = 2 * g.heads * expanded_rows * std::int64_t{g.r} * g.expanded_width()};
}

double part_floor(std::int64_t bytes, double gbytes_per_second, std::int64_t operations, double gops) {
  const double reading = static_cast<double>(bytes) * 1e-9 / gbytes_per_second;
  const double computing = gops > 0 ? static_cast<double>(operations) * 1e-9 / gops : 0;
  return reading > computing ? reading : computing;
}

const DotRate* attention_rate(std::span<const DotRate> rates, std::string_view isa, bool rounded) {
  const DotRate* found = nullptr;
  bool reached = false;
  for (const DotRate& rate : rates) {  // the sets from narrow to wide, each with the instructions that it adds
    if (reached && rate.isa != isa) break;
    reached = rate.isa == isa;
    if (reached && rounded && rate.type == DotType::kBf16) return &rate;
    if (rate.type == DotType::kF32) found = &rate;
  }
  return reached ? found : nullptr;
}

}  // namespace latte
