#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "model/families/parts.h"

namespace latte {
namespace {

constexpr double kMostFactor = 1e6;

YarnConfig read_yarn(KeyReader& reader) {
  YarnConfig yarn;
  yarn.original_max = reader.positive("original_max_position_embeddings", refused<double>(), kMaxConfigInt);
  yarn.factor = reader.positive("factor", refused<double>(), kMostFactor);
  if (yarn.factor < 1) reader.refuse("factor", fmt::format("{}", yarn.factor), "a number from 1 to 1e6");
  yarn.beta_fast = reader.positive("beta_fast", assumed(32.0), 1e6);
  yarn.beta_slow = reader.positive("beta_slow", assumed(1.0), 1e6);
  yarn.mscale = reader.non_negative("mscale", assumed(1.0), 1e3);
  yarn.mscale_all_dim = reader.non_negative("mscale_all_dim", assumed(0.0), 1e3);
  if (reader.find("attention_factor") != nullptr)
    yarn.attention_factor = reader.positive("attention_factor", refused<double>(), 1e3);
  yarn.truncate = reader.boolean("truncate", means(true));
  return yarn;
}

Llama3Config read_llama3(KeyReader& reader) {
  Llama3Config llama3;
  llama3.factor = reader.positive("factor", refused<double>(), kMostFactor);
  llama3.low_freq_factor = reader.positive("low_freq_factor", refused<double>(), kMostFactor);
  llama3.high_freq_factor = reader.positive("high_freq_factor", refused<double>(), kMostFactor);
  llama3.original_max = reader.positive("original_max_position_embeddings", refused<double>(), kMaxConfigInt);
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
  longrope.original_max = reader.positive("original_max_position_embeddings", refused<double>(), kMaxConfigInt);
  if (longrope.original_max <= 1)
    reader.refuse("original_max_position_embeddings", fmt::format("{}", longrope.original_max), "more than 1");
  const double extension = reader.positive("factor", means(context_length / longrope.original_max), kMaxConfigInt);
  const double magnitude = extension <= 1 ? 1 : std::sqrt(1 + std::log(extension) / std::log(longrope.original_max));
  longrope.magnitude = reader.positive("attention_factor", means(magnitude), 1e3);
  return longrope;
}

}  // namespace

// rope_parameters (new) or rope_scaling (old), null in both meaning none. The new one may hold rope_theta, which then
// goes before one at the root.
void read_rope(KeyReader& reader, const Absent<double>& theta, ModelConfig& config) {
  constexpr double kMostTheta = 1e12;
  RopeConfig& rope = config.rope;
  rope.interleave =
      reader.boolean("rope_interleave", means(config.attention == AttentionKind::kMla && rope.interleave));
  const char* key = reader.find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const Json* object = reader.find(key);
  if (object != nullptr && !object->is_object()) {
    reader.refuse(key, brief_json(*object), "an object or null");
    return;
  }
  const Json nothing = Json::object();
  KeyReader part(object != nullptr ? *object : nothing, reader.source(), std::string(key) + ".");
  KeyReader& with_theta = part.has("rope_theta") ? part : reader;
  rope.theta = with_theta.positive("rope_theta", theta, kMostTheta);
  // YaRN divides by the log of theta.
  if (rope.theta <= 1) with_theta.refuse("rope_theta", fmt::format("{}", rope.theta), "a number above 1");
  const char* type_key = part.find("rope_type") != nullptr ? "rope_type" : "type";
  const bool named = part.find(type_key) != nullptr;
  if (!named && part.find("factor") != nullptr) {
    part.refuse("rope_type", "nothing beside a factor", "\"yarn\", \"deepseek_yarn\" or \"default\"");
  }
  const std::string type =
      part.one_of(type_key, means(std::string("default")), {"default", "yarn", "deepseek_yarn", "llama3", "longrope"});
  if (type == "yarn" || type == "deepseek_yarn") rope.yarn = read_yarn(part);
  if (type == "llama3") rope.llama3 = read_llama3(part);
  if (type == "longrope") rope.longrope = read_longrope(part, config.rope_width(), config.context_length);
  reader.absorb(part);
}

}  // namespace latte
