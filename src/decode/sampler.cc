#include "decode/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/contract.h"
#include "base/fail.h"
#include "decode/gumbel.h"

namespace latte {
namespace {

// A vocabulary is read once, as maxima of blocks; later passes open only blocks that can matter.
constexpr std::size_t kBlock = 64;

// Tokens this many nats below the most likely one carry less than 1e-12 of the mass of any vocabulary that fits in
// memory.
constexpr double kNegligibleNats = 50;

// Where top-p looks first.
constexpr double kNearNats = 8;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

float max_of(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;  // independent maxima, so that the compiler may keep them in vector registers
  std::array<float, kLanes> lanes;
  lanes.fill(kLowest);
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
    }
  }
  float best = kLowest;
  for (; i < values.size(); ++i) best = values[i] > best ? values[i] : best;
  for (const float lane : lanes) best = lane > best ? lane : best;
  return best;
}

std::span<const float> block_of(std::span<const float> logits, std::size_t block) {
  const std::size_t first = block * kBlock;
  return logits.subspan(first, std::min(kBlock, logits.size() - first));
}

/// More likely, or as likely with a lower id.
struct Better {
  std::span<const float> logits;
  bool operator()(std::int32_t a, std::int32_t b) const {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  }
};
struct Worse {
  Better better;
  bool operator()(std::int32_t a, std::int32_t b) const { return better(b, a); }
};

/// The running argmax of scaled logit + noise. Rounding is monotone, so a token whose bound stays below the best score
/// has a score below it too: what is skipped cannot have won.
class NoisyArgmax {
 public:
  NoisyArgmax(GumbelNoise noise, TokenId first, double scaled_first) : noise_(noise), token_(first) {
    score_ = scaled_first + gumbel(noise_.bits(static_cast<std::uint32_t>(first)));
  }

  void consider(TokenId token, double scaled) {
    if (scaled + kGumbelCeiling < score_) return;
    const std::uint32_t bits = noise_.bits(static_cast<std::uint32_t>(token));
    if (scaled + gumbel_bound(bits) < score_) return;
    const double score = scaled + gumbel(bits);
    if (score > score_ || (score == score_ && token < token_)) {
      score_ = score;
      token_ = token;
    }
  }

  double score() const { return score_; }
  TokenId token() const { return token_; }

 private:
  GumbelNoise noise_;
  TokenId token_;
  double score_;
};

/// A float at or below which no logit can win; a little low, so that its own rounding excludes nothing.
float hopeless_below(double score, double temperature) {
  const double logit = (score - kGumbelCeiling) * temperature;
  return static_cast<float>(std::max(logit - std::abs(logit) * 1e-6, -3e38));
}

}  // namespace

Status check_sampling(const SamplingOptions& options) {
  if (options.temperature != 0 && !(options.temperature >= 1e-6 && options.temperature <= 1e6)) {
    return fail(ErrorKind::kInvalidInput, "[sampling] temperature {}: expected 0 (greedy) or a number from 1e-6 to 1e6",
                options.temperature);
  }
  if (options.top_k < 0) {
    return fail(ErrorKind::kInvalidInput, "[sampling] top-k {}: expected a count of tokens, or 0 for all",
                options.top_k);
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return fail(ErrorKind::kInvalidInput, "[sampling] top-p {}: expected a share above 0 and up to 1 (all)",
                options.top_p);
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return fail(ErrorKind::kInvalidInput, "[sampling] min-p {}: expected a share from 0 (all) to 1", options.min_p);
  }
  return {};
}

Sampler::Sampler(SamplingOptions options, int vocab) : options_(options) {
  expects(check_sampling(options).ok(), "sampling options are checked before a sampler is made of them");
  if (options_.temperature > 0) inverse_temperature_ = 1 / options_.temperature;
  block_max_.reserve((static_cast<std::size_t>(vocab) + kBlock - 1) / kBlock);
}

TokenId Sampler::choose(std::span<const float> logits, std::int64_t position) const {
  expects(!logits.empty(), "there is at least one logit to choose from");
  const Peak peak = survey(logits);
  if (options_.temperature == 0) return peak.token;

  NoisyArgmax best(GumbelNoise(options_.seed, position), peak.token, scaled(peak.logit));
  if (keeps_all(logits.size())) {
    for (std::size_t block = 0; block < block_max_.size(); ++block) {
      const float hopeless = hopeless_below(best.score(), options_.temperature);
      if (block_max_[block] < hopeless) continue;
      const std::span<const float> values = block_of(logits, block);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] >= hopeless) best.consider(static_cast<TokenId>(block * kBlock + i), scaled(values[i]));
      }
    }
    return best.token();
  }

  const bool limits_count = options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < logits.size();
  const double min_p_logit = peak.logit + std::log(options_.min_p) * options_.temperature;  // min-p 0: -infinity
  if (limits_count) {
    keep_top_k(logits);
  } else {
    const bool needs_mass = options_.top_p < 1;
    keep_above(logits, needs_mass ? peak.logit - kNegligibleNats * options_.temperature : min_p_logit);
  }
  if (options_.top_p < 1) keep_top_p(logits, peak.logit);
  for (const std::int32_t token : candidates_) {
    if (static_cast<double>(logits[token]) >= min_p_logit) best.consider(token, scaled(logits[token]));
  }
  return best.token();
}

Sampler::Peak Sampler::survey(std::span<const float> logits) const {
  block_max_.resize((logits.size() + kBlock - 1) / kBlock);
  std::size_t best_block = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    block_max_[block] = max_of(block_of(logits, block));
    if (block_max_[block] > block_max_[best_block]) best_block = block;
  }
  const std::span<const float> values = block_of(logits, best_block);
  const auto place = std::find(values.begin(), values.end(), block_max_[best_block]);
  const std::size_t offset = place == values.end() ? 0 : static_cast<std::size_t>(place - values.begin());
  return {static_cast<TokenId>(best_block * kBlock + offset), values[offset]};
}

bool Sampler::keeps_all(std::size_t vocab) const {
  const bool all_counts = options_.top_k == 0 || static_cast<std::size_t>(options_.top_k) >= vocab;
  return all_counts && options_.top_p >= 1 && options_.min_p <= 0;
}

void Sampler::keep_top_k(std::span<const float> logits) const {
  const auto limit = static_cast<std::size_t>(options_.top_k);
  const Better better{logits};
  candidates_.clear();
  float weakest = kLowest;  // of a full heap: an equal value has a higher id here, so only a larger one displaces it
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (candidates_.size() == limit && !(block_max_[block] > weakest)) continue;
    const std::span<const float> values = block_of(logits, block);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (candidates_.size() == limit) {
        if (!(values[i] > weakest)) continue;
        std::pop_heap(candidates_.begin(), candidates_.end(), better);
        candidates_.pop_back();
      }
      candidates_.push_back(static_cast<std::int32_t>(block * kBlock + i));
      std::push_heap(candidates_.begin(), candidates_.end(), better);
      if (candidates_.size() == limit) weakest = logits[candidates_.front()];
    }
  }
}

void Sampler::keep_above(std::span<const float> logits, double lowest_logit) const {
  candidates_.clear();
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (static_cast<double>(block_max_[block]) < lowest_logit) continue;
    const std::span<const float> values = block_of(logits, block);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (static_cast<double>(values[i]) >= lowest_logit) {
        candidates_.push_back(static_cast<std::int32_t>(block * kBlock + i));
      }
    }
  }
}

// The most likely tokens whose mass first reaches top-p of what is left; at least one.
void Sampler::keep_top_p(std::span<const float> logits, float peak) const {
  const auto mass_of = [&](std::int32_t token) { return std::exp(scaled(logits[token]) - scaled(peak)); };
  double total = 0;
  for (const std::int32_t token : candidates_) total += mass_of(token);
  const double target = options_.top_p * total;
  const Worse worse{{logits}};
  // The mass is almost always reached among the tokens near the peak; only they are then put in order.
  const double near = peak - kNearNats * options_.temperature;
  const auto near_end = std::partition(candidates_.begin(), candidates_.end(),
                                       [&](std::int32_t token) { return static_cast<double>(logits[token]) >= near; });
  kept_.clear();
  double mass = 0;
  auto first = candidates_.begin();
  for (const auto last : {near_end, candidates_.end()}) {
    if (mass >= target) break;
    std::make_heap(first, last, worse);
    for (auto end = last; end != first && mass < target; --end) {
      mass += mass_of(*first);
      kept_.push_back(*first);
      std::pop_heap(first, end, worse);
    }
    first = last;
  }
  candidates_.swap(kept_);
}

}  // namespace latte
