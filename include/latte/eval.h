#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "latte/engine.h"
#include "latte/error.h"
#include "latte/session.h"

namespace latte {

/// How well tokens were foretold.
struct TextScore {
  std::int64_t tokens = 0;  ///< foretold ones: not BOS, nor the first of a window without BOS
  std::int64_t bytes = 0;   ///< of their text
  double nll = 0;           ///< negative log-likelihood of all of them, in nats

  double nll_per_token() const;
  double bits_per_byte() const;
  double perplexity() const;  ///< e to the nll per token
};

/// A stretch of a document that fits the context.
struct EvalWindow {
  int document = 0;
  int first = 0;  ///< index of the window's first token in the document, BOS not counted
  TextScore score;
};

struct EvalReport {
  TextScore total;
  std::vector<EvalWindow> windows;
  int documents = 0;
  int context = 0;
  PathCounts paths;
  double seconds = 0;
};

/// Told how many tokens are done, of all; return false to stop.
using EvalProgress = std::function<bool(int tokens_done, int tokens_in_all)>;

/// Scores a text; NUL bytes part documents. Each document is cut into windows of the engine's context, every one with
/// BOS first when the tokenizer says so, and each window is read from nothing. Errors: no tokenizer, a text without a
/// token to foretell, kCancelled when `progress` says so, kNumeric naming the layer.
Result<EvalReport> evaluate_text(const Engine& engine, std::string_view text, const EvalProgress& progress = {});

}  // namespace latte
