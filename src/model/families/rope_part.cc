#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "model/families/parts.h"

namespace latte {
namespace {

constexpr double kMostFactor = 1e6;

YarnConfig read_yarn(KeyReader& reader, int context_length) {
  YarnConfig yarn;
  yarn.original_max = reader.positive("original_max_position_embeddings", context_length, kMaxConfigInt);
  yarn.factor = reader.positive("factor", std::max(1.0, context_length / yarn.original_max), kMostFactor);
  if (yarn.factor < 1) reader.refuse("factor", fmt::format("{}", yarn.factor), "a number from 1 to 1e6");
  yarn.beta_fast = reader.positive("beta_fast", 32, 1e6);
  yarn.beta_slow = reader.positive("beta_slow", 1, 1e6);
  yarn.mscale = reader.non_negative("mscale", 1, 1e3);
  yarn.mscale_all_dim = reader.non_negative("mscale_all_dim", 0, 1e3);
  if (reader.find("attention_factor") != nullptr) yarn.attention_factor = reader.positive("attention_factor", 1, 1e3);
  yarn.truncate = reader.boolean("truncate", true);
  return yarn;
}

Llama3Config read_llama3(KeyReader& reader) {
  Llama3Config llama3;
  llama3.factor = reader.positive("factor", 8, kMostFactor);
  llama3.low_freq_factor = reader.positive("low_freq_factor", 1, kMostFactor);
  llama3.high_freq_factor = reader.positive("high_freq_factor", 4, kMostFactor);
  llama3.original_max = reader.positive("original_max_position_embeddings", 8192, kMaxConfigInt);
  if (llama3.high_freq_factor <= llama3.low_freq_factor) {
    reader.refuse("high_freq_factor", fmt::format("{}", llama3.high_freq_factor),
                  fmt::format("more than low_freq_factor {}", llama3.low_freq_factor));
  }
  return llama3;
}

LongRopeConfig read_longrope(KeyReader& reader, int width, int context_length) {
  LongRopeConfig longrope;
  const auto pairs = static_cast<std::size_t>(width / 2);
  longrope.short_factor = reader.positives("short_factor", pairs, kMostFactor);
  longrope.long_factor = reader.positives("long_factor", pairs, kMostFactor);
  longrope.original_max = reader.positive("original_max_position_embeddings", context_length, kMaxConfigInt);
  if (longrope.original_max <= 1)
    reader.refuse("original_max_position_embeddings", fmt::format("{}", longrope.original_max), "more than 1");
  const double extension = reader.positive("factor", context_length / longrope.original_max, kMaxConfigInt);
  const double magnitude = extension <= 1 ? 1 : std::sqrt(1 + std::log(extension) / std::log(longrope.original_max));
  longrope.magnitude = reader.positive("attention_factor", magnitude, 1e3);
  return longrope;
}

}  // namespace

// rope_parameters (new) or rope_scaling (old), null in both meaning none. The new one also holds rope_theta.
void read_rope(KeyReader& reader, ModelConfig& config) {
  RopeConfig& rope = config.rope;
  rope.theta = reader.positive("rope_theta", rope.theta, 1e12);
  rope.interleave = reader.boolean("rope_interleave", config.attention == AttentionKind::kMla && rope.interleave);
  const char* key = reader.find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const Json* object = reader.find(key);
  const auto speeds_fall = [&rope] { return rope.theta > 1; };  // YaRN divides by the log of theta
  if (object == nullptr) {
    if (!speeds_fall()) reader.refuse("rope_theta", fmt::format("{}", rope.theta), "a number above 1");
    return;
  }
  if (!object->is_object()) {
    reader.refuse(key, brief_json(*object), "an object or null");
    return;
  }
  KeyReader part(*object, reader.source(), std::string(key) + ".");
  rope.theta = part.positive("rope_theta", rope.theta, 1e12);
  if (!speeds_fall()) part.refuse("rope_theta", fmt::format("{}", rope.theta), "a number above 1");
  const char* type_key = part.find("rope_type") != nullptr ? "rope_type" : "type";
  const bool named = part.find(type_key) != nullptr;
  if (!named && part.find("factor") != nullptr) {
    part.refuse("rope_type", "nothing beside a factor", "\"yarn\", \"deepseek_yarn\" or \"default\"");
  }
  const std::string type = part.one_of(type_key, {"default", "yarn", "deepseek_yarn", "llama3", "longrope"});
  if (type == "yarn" || type == "deepseek_yarn") rope.yarn = read_yarn(part, config.context_length);
  if (type == "llama3") rope.llama3 = read_llama3(part);
  if (type == "longrope") rope.longrope = read_longrope(part, config.rope_width(), config.context_length);
  reader.absorb(part);
}

}  // namespace latte
