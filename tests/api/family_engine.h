#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "latte/engine.h"
#include "latte/session.h"

namespace latte::test {

/// The committed checkpoint of random weights: vocabulary 272, context 64, one MTP layer, no tokenizer.
inline std::string family_folder() { return LATTE_SOURCE_DIR "/tests/data/families/deepseek_v3"; }

inline EngineOptions family_options() {
  EngineOptions options;
  options.model = family_folder();
  options.threads = 1;
  return options;
}

/// Opens an engine or fails the test and the program: nothing can be tested without one.
inline Engine open_or_die(const EngineOptions& options) {
  Result<Engine> engine = Engine::open(options);
  if (!engine.ok()) ADD_FAILURE() << engine.error().message;
  return std::move(engine).value();
}

/// A drafter that is named gets a depth, 1 or 4: those that a session measures differ from run to run.
inline Session session_or_die(const Engine& engine, SpecType spec = SpecType::kNone,
                              std::optional<int> depth = std::nullopt) {
  if (!depth.has_value() && spec == SpecType::kMtp) depth = 1;
  if (!depth.has_value() && spec == SpecType::kDraft) depth = 4;
  Result<Session> session = Session::open(engine, {.spec = spec, .num_draft_tokens = depth});
  if (!session.ok()) ADD_FAILURE() << session.error().message;
  return std::move(session).value();
}

/// ids 2, 9, 16, ...: nothing special about them.
inline std::vector<std::int32_t> some_ids(int count) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = 2 + (7 * i + i * i) % 250;
  return ids;
}

inline RunOptions greedy(int max_tokens) {
  RunOptions options;
  options.max_tokens = max_tokens;
  options.sampling = SamplingChoice{};
  options.ignore_eos = true;
  return options;
}

inline RunOptions sampled(int max_tokens, std::uint64_t seed) {
  RunOptions options = greedy(max_tokens);
  options.sampling = SamplingChoice{.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0};
  options.seed = seed;
  return options;
}

inline GenerateResult run(Session& session, std::span<const std::int32_t> prompt, const RunOptions& options) {
  const Result<GenerateResult> result = session.generate(prompt, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : GenerateResult{};
}

}  // namespace latte::test
