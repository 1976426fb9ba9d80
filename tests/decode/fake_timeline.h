#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/fail.h"
#include "base/random.h"
#include "model/timeline.h"

namespace latte::test {

/// A model in miniature: the logits after a token are a function of the last three tokens. A drafter's model differs
/// from the target's by noise of its own, or prefers exactly what the target likes least.
struct ToyModel {
  int vocab = 50;
  std::uint64_t salt = 1;
  float spread = 4;         // logits lie in [-spread, spread]
  float drafter_noise = 0;  // 0: agrees with the target
  bool contrary = false;
  TokenId nan_after = -1;  // rows of this token give NaN

  std::vector<float> logits(TokenId before_last_but_one, TokenId last_but_one, TokenId last) const {
    std::vector<float> out(vocab);
    for (int token = 0; token < vocab; ++token) {
      const PhiloxCounter bits =
          philox4x32({static_cast<std::uint32_t>(token), static_cast<std::uint32_t>(last),
                      static_cast<std::uint32_t>(last_but_one), static_cast<std::uint32_t>(before_last_but_one)},
                     philox_key(salt));
      const float value = spread * (static_cast<float>(bits[0] >> 8) * 0x1p-23F - 1);
      const float noise = drafter_noise * (static_cast<float>(bits[1] >> 8) * 0x1p-23F - 1);
      out[token] = contrary ? -value : value + noise;
    }
    if (last == nan_after) std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
    return out;
  }

  std::vector<float> logits(std::span<const TokenId> history) const {
    const auto back = [&](std::size_t n) { return history.size() >= n ? history[history.size() - n] : -1; };
    return logits(back(3), back(2), back(1));
  }
};

/// What a hidden row carries: enough for the MTP layer to know the last two tokens, and where the row came from.
struct HiddenRow {
  float position = 0;
  float last_but_one = 0;
  float last = 0;
  float chained = 0;
};
inline constexpr std::int64_t kHiddenWidth = 4;

inline ConstMatRef hidden_view(const std::vector<HiddenRow>& rows) {
  return {rows.data(), DType::kF32, static_cast<std::int64_t>(rows.size()), kHiddenWidth, kHiddenWidth};
}

/// Memory of one step's result. The next step overwrites all of it first, so that a view kept too long reads NaN.
class StepMemory {
 public:
  void begin() {
    std::fill(logits_.begin(), logits_.end(), std::numeric_limits<float>::quiet_NaN());
    std::fill(hidden_.begin(), hidden_.end(), HiddenRow{NAN, NAN, NAN, NAN});
    logits_.clear();
    hidden_.clear();
  }
  void add_hidden(const HiddenRow& row) { hidden_.push_back(row); }
  void add_logits(const std::vector<float>& row) { logits_.insert(logits_.end(), row.begin(), row.end()); }
  StepResult result(int vocab) {
    const std::int64_t rows = static_cast<std::int64_t>(logits_.size()) / vocab;
    return {.logits = {logits_.data(), rows, vocab, vocab}, .hidden = hidden_view(hidden_)};
  }

 private:
  std::vector<float> logits_;
  std::vector<HiddenRow> hidden_;
};

inline bool wants_logits(LogitsWanted wanted, std::size_t row, std::size_t rows) {
  return wanted == LogitsWanted::kAll || (wanted == LogitsWanted::kLast && row + 1 == rows);
}

/// Fails one step, chosen by its number, before or after the rows were appended.
struct PlannedFailure {
  int at_step = -1;
  bool leaves_rows = false;
  ErrorKind kind = ErrorKind::kIo;
};

class FakeTimeline final : public Timeline {
 public:
  struct Step {
    int first = 0;
    int rows = 0;
    Role role = Role::kPrompt;
    LogitsWanted wanted = LogitsWanted::kNone;
  };

  explicit FakeTimeline(ToyModel model, int context = 4096) : model_(model), context_(context) {}

  int length() const override { return static_cast<int>(ids_.size()); }
  int context() const override { return context_; }
  int vocab() const override { return model_.vocab; }

  Result<StepResult> step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) override {
    EXPECT_FALSE(ids.empty());
    EXPECT_LE(role == Role::kGenerated ? ids.size() : 1, static_cast<std::size_t>(kMaxDecodeRows));
    EXPECT_LE(ids.size(), 512U);
    if (ids_.size() + ids.size() > static_cast<std::size_t>(context_)) return fail(ErrorKind::kInvalidInput, "no room");
    const bool fails = static_cast<int>(steps.size()) == failure.at_step;
    steps.push_back({length(), static_cast<int>(ids.size()), role, wanted});
    if (fails && !failure.leaves_rows) return fail(failure.kind, "planned failure");
    const std::vector<TokenId> copy(ids.begin(), ids.end());
    if (refuses_nan && std::find(copy.begin(), copy.end(), model_.nan_after) != copy.end())
      return fail(ErrorKind::kNumeric, "a row of the step is not finite");
    memory_.begin();
    for (std::size_t row = 0; row < copy.size(); ++row) {
      const TokenId before = ids_.empty() ? -1 : ids_.back();
      memory_.add_hidden(
          {static_cast<float>(ids_.size()), static_cast<float>(before), static_cast<float>(copy[row]), 0});
      ids_.push_back(copy[row]);
      if (wants_logits(wanted, row, copy.size())) memory_.add_logits(model_.logits(ids_));
    }
    if (fails) return fail(failure.kind, "planned failure");
    return memory_.result(model_.vocab);
  }

  bool can_rewind_to(int length) const override {
    return length == 0 || (length >= rewind_floor && length <= this->length());
  }
  Status rewind_to(int length) override {
    if (!can_rewind_to(length)) return fail(ErrorKind::kUnsupported, "cannot go back");
    ids_.resize(length);
    return {};
  }

  const std::vector<TokenId>& ids() const { return ids_; }

  std::vector<Step> steps;
  PlannedFailure failure;
  bool refuses_nan = false;  // a step with a broken row fails whole, as a model's does
  int rewind_floor = 0;

 private:
  ToyModel model_;
  int context_;
  std::vector<TokenId> ids_;
  StepMemory memory_;
};

class FakeMtpTimeline final : public MtpTimeline {
 public:
  struct Row {
    HiddenRow hidden;
    TokenId next = 0;
  };
  struct Step {
    int rows = 0;
    Role role = Role::kPrompt;
  };

  explicit FakeMtpTimeline(ToyModel model, int context = 4096) : model_(model), context_(context) {}

  int length() const override { return static_cast<int>(rows_.size()); }
  int context() const override { return context_; }

  Result<StepResult> step(std::span<const TokenId> next_ids, ConstMatRef hidden, Role role,
                          LogitsWanted wanted) override {
    EXPECT_EQ(static_cast<std::int64_t>(next_ids.size()), hidden.rows);
    EXPECT_LE(role == Role::kGenerated ? next_ids.size() : 1, static_cast<std::size_t>(kMaxDecodeRows));
    if (length() + static_cast<int>(next_ids.size()) > context_) return fail(ErrorKind::kInvalidInput, "no room");
    const bool fails = static_cast<int>(steps.size()) == failure.at_step;
    steps.push_back({static_cast<int>(next_ids.size()), role});
    if (fails && !failure.leaves_rows) return fail(failure.kind, "planned failure");
    const std::vector<TokenId> ids(next_ids.begin(), next_ids.end());
    std::vector<HiddenRow> inputs;
    for (std::int64_t row = 0; row < hidden.rows; ++row)
      inputs.push_back(*static_cast<const HiddenRow*>(hidden.at(row, 0)));
    memory_.begin();
    for (std::size_t row = 0; row < ids.size(); ++row) {
      const HiddenRow& in = inputs[row];
      EXPECT_FALSE(std::isnan(in.position)) << "a hidden row was used after its step's memory went";
      rows_.push_back({in, ids[row]});
      memory_.add_hidden({in.position + 1, in.last, static_cast<float>(ids[row]), 1});
      if (wants_logits(wanted, row, ids.size())) {
        memory_.add_logits(
            model_.logits(static_cast<TokenId>(in.last_but_one), static_cast<TokenId>(in.last), ids[row]));
      }
    }
    if (fails) return fail(failure.kind, "planned failure");
    return memory_.result(model_.vocab);
  }

  Status rewind_to(int length) override {
    if (length < 0 || length > this->length()) return fail(ErrorKind::kInvalidInput, "cannot go forward");
    rows_.resize(length);
    return {};
  }

  Status keep(ConstMatRef hidden) override {
    if (keep_fails) return fail(ErrorKind::kOutOfMemory, "planned failure");
    for (std::int64_t row = 0; row < hidden.rows; ++row)
      kept_.push_back(*static_cast<const HiddenRow*>(hidden.at(row, 0)));
    EXPECT_LE(kept_.size(), static_cast<std::size_t>(kMaxKept));
    return {};
  }
  ConstMatRef kept() const override { return hidden_view(kept_); }
  void drop_kept(int first, int count) override {
    ASSERT_TRUE(first >= 0 && count >= 0 && first + count <= static_cast<int>(kept_.size()));
    kept_.erase(kept_.begin() + first, kept_.begin() + first + count);
  }

  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<HiddenRow>& kept_rows() const { return kept_; }

  std::vector<Step> steps;
  PlannedFailure failure;
  bool keep_fails = false;  // there is no memory for the queue

 private:
  ToyModel model_;
  int context_;
  std::vector<Row> rows_;
  std::vector<HiddenRow> kept_;
  StepMemory memory_;
};

}  // namespace latte::test
