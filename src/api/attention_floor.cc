#include "api/attention_floor.h"

namespace latte {

std::int64_t attention_operations(const MlaGeometry& g, AttentionArm arm, std::int64_t before, std::int64_t rows) {
  const std::int64_t seen = rows * before + rows * (rows + 1) / 2;
  const std::int64_t expanded = seen * (g.key_width() + g.v);
  const std::int64_t weights = std::int64_t{g.r} * g.expanded_width();
  std::int64_t of_a_head = expanded;
  if (arm == AttentionArm::kMaterialised) of_a_head = (before + rows) * weights + expanded;
  if (arm == AttentionArm::kAbsorbed) of_a_head = rows * weights + seen * (g.latent_width() + g.r);
  return 2 * g.heads * of_a_head;
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
