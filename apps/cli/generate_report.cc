#include "generate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace latte::cli {
namespace {

// ", 12.3 tok/s"; nothing where nothing was timed.
std::string rate(int count, double seconds) {
  return count > 0 && seconds > 0 ? fmt::format(", {:.1f} tok/s", count / seconds) : "";
}

nlohmann::ordered_json object_of(const TokenLogprob& token) {
  return {{"id", token.id}, {"token", token.token}, {"logprob", token.logprob}};
}

nlohmann::ordered_json list_of(const std::vector<TokenLogprobs>& logprobs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TokenLogprobs& token : logprobs) {
    nlohmann::ordered_json top = nlohmann::ordered_json::array();
    for (const TokenLogprob& one : token.top) top.push_back(object_of(one));
    list.push_back(object_of(token.chosen));
    list.back()["top"] = std::move(top);
  }
  return list;
}

/// " (rounds of 0: 3, 1: 12)" where rounds asked for different numbers of drafts.
std::string depths_used(const GenerateResult& result) {
  std::string text;
  int used = 0;
  for (std::size_t depth = 0; depth < result.rounds_per_depth.size(); ++depth) {
    if (result.rounds_per_depth[depth] == 0) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", depth, result.rounds_per_depth[depth]);
    ++used;
  }
  return used > 1 ? fmt::format(" (rounds of {})", text) : "";
}

std::string speculation_line(const GenerateResult& result) {
  if (result.spec_type == "none") return "speculation: none\n";
  std::string positions;
  for (std::size_t i = 0; i < result.tested_per_position.size(); ++i) {
    if (result.tested_per_position[i] == 0) break;
    const double share = 100.0 * static_cast<double>(result.accepted_per_position[i]) /
                         static_cast<double>(result.tested_per_position[i]);
    positions += fmt::format("{}{:.0f}%", positions.empty() ? "" : ", ", share);
  }
  const double rounds = static_cast<double>(result.rounds);
  const double accepted_per_round = result.rounds > 0 ? static_cast<double>(result.accepted) / rounds : 0;
  return fmt::format(
      "speculation: {}, depth {}{}, drafted {}, accepted {} ({:.2f} per round{}), emitted per round {:.2f} over {} "
      "rounds\n",
      result.spec_type, result.draft_depth, depths_used(result), result.drafted, result.accepted, accepted_per_round,
      positions.empty() ? "" : "; by position " + positions, result.emitted_per_round, result.rounds);
}

}  // namespace

std::string generate_json(const GenerateResult& result) {
  nlohmann::ordered_json paths = nlohmann::ordered_json::object();
  nlohmann::ordered_json rows = nlohmann::ordered_json::object();
  paths["absorbed"] = result.paths.absorbed_steps;
  paths["materialised"] = result.paths.materialised_steps;
  paths["gqa"] = result.paths.gqa_steps;
  rows["absorbed"] = result.paths.absorbed_rows;
  rows["materialised"] = result.paths.materialised_rows;
  rows["gqa"] = result.paths.gqa_rows;
  nlohmann::ordered_json object = {
      {"text", result.text},
      {"ids", result.ids},
      {"prompt_ids", result.prompt_ids},
      {"finish_reason", result.finish_reason},
      {"seed", result.seed},
      {"prompt_tokens", result.prompt_tokens},
      {"cached_tokens", result.cached_tokens},
      {"generated_tokens", result.generated_tokens},
      {"prompt_seconds", result.prompt_seconds},
      {"generate_seconds", result.generate_seconds},
      {"draft_seconds", result.draft_seconds},
      {"verify_seconds", result.verify_seconds},
      {"unaccounted_seconds", result.unaccounted_seconds},
      {"spec_type", result.spec_type},
      {"draft_depth", result.draft_depth},
      {"rounds", result.rounds},
      {"rounds_per_depth", result.rounds_per_depth},
      {"emitted_per_round", result.emitted_per_round},
      {"drafted", result.drafted},
      {"accepted", result.accepted},
      {"accepted_per_position", result.accepted_per_position},
      {"tested_per_position", result.tested_per_position},
      {"paths", paths},
      {"path_rows", rows},
      {"peak_bytes", result.peak_bytes},
      {"device", result.device},
      {"isa", result.isa},
      {"numerics", result.numerics},
  };
  if (!result.logprobs.empty()) object["logprobs"] = list_of(result.logprobs);
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string generate_summary(const GenerateResult& result) {
  const int in_rounds = std::max(0, result.generated_tokens - 1);  // the prompt's last row gives the first token
  const int fed = result.prompt_tokens - result.cached_tokens;
  std::string text = fmt::format("\nprompt: {} tokens{}", result.prompt_tokens, rate(fed, result.prompt_seconds));
  if (result.cached_tokens > 0) text += fmt::format(" ({} from the cache)", result.cached_tokens);
  text +=
      fmt::format("\ngenerated: {} tokens{}, {}\n", result.generated_tokens, rate(in_rounds, result.generate_seconds),
                  result.finish_reason == "cancelled" ? "cancelled" : "finished by " + result.finish_reason);
  text += speculation_line(result);
  text += result.paths.gqa_steps > 0 ? fmt::format("paths: gqa {} (steps)\n", result.paths.gqa_steps)
                                     : fmt::format("paths: absorbed {}, materialised {} (steps)\n",
                                                   result.paths.absorbed_steps, result.paths.materialised_steps);
  text += fmt::format("peak memory: {:.1f} MiB; device {} ({}), numerics {}, seed {}\n",
                      static_cast<double>(result.peak_bytes) / (1 << 20), result.device, result.isa, result.numerics,
                      result.seed);
  return text;
}

}  // namespace latte::cli
