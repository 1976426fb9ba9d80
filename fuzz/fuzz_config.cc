#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/contract.h"
#include "model/config.h"
#include "model/rope.h"

namespace {

void expect_one_line(std::string_view message) {
  latte::expects(!message.empty() && message.find('\n') == std::string_view::npos, "a message is one line");
}

}  // namespace

/// Any text as config.json and as generation_config.json: an accepted configuration has finite rope speeds and whole
/// layers.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = latte::parse_json({reinterpret_cast<const char*>(data), size}, "config.json");
  if (!json.ok()) {
    expect_one_line(json.error().message);
    return 0;
  }
  latte::ModelConfig generation;
  if (const auto applied = latte::apply_generation_config(*json, "generation_config.json", generation); !applied.ok()) {
    expect_one_line(applied.error().message);
  }
  const auto config = latte::parse_config(*json, "config.json");
  if (!config.ok()) {
    expect_one_line(config.error().message);
    return 0;
  }
  for (const std::string& sentence : latte::taken_for_granted(*config, "config.json")) expect_one_line(sentence);
  const latte::WeightSpec spec = latte::weight_spec(*config);
  latte::expects(static_cast<int>(spec.layers.size()) == config->layers, "every layer has a kind");
  latte::expects(std::isfinite(latte::softmax_scale(*config)), "the softmax scale is finite");
  const latte::RopeTable rope = latte::rope_table(config->rope, config->rope_width(), config->context_length);
  latte::expects(std::isfinite(rope.magnitude), "the rope magnitude is finite");
  for (const double speed : rope.inv_freq) latte::expects(std::isfinite(speed) && speed >= 0, "rope speeds are finite");
  expect_one_line(latte::describe_rope(config->rope, config->context_length));
  return 0;
}
