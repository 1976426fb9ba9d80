#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/draft_model_drafter.h"
#include "decode/fake_timeline.h"
#include "decode/lookup_drafter.h"
#include "decode/mtp_drafter.h"
#include "decode/speculative_loop.h"

namespace latte::test {

enum class DrafterKind { kNone, kLookup, kDraftModel, kMtp };
inline constexpr DrafterKind kAllDrafters[] = {DrafterKind::kNone, DrafterKind::kLookup, DrafterKind::kDraftModel,
                                               DrafterKind::kMtp};

/// What plain decoding gives, computed without the loop: one choice after the other.
inline std::vector<TokenId> plain_text(const ToyModel& model, const Sampler& sampler, std::vector<TokenId> tokens,
                                       int max_tokens, std::span<const TokenId> stops = {}) {
  for (int i = 0; i < max_tokens; ++i) {
    tokens.push_back(sampler.choose(model.logits(tokens), static_cast<std::int64_t>(tokens.size())));
    if (std::find(stops.begin(), stops.end(), tokens.back()) != stops.end()) break;
  }
  return tokens;
}

inline std::vector<TokenId> toy_prompt(int length, int vocab = 50) {
  std::vector<TokenId> prompt(length);
  for (int i = 0; i < length; ++i) prompt[i] = (i * 7 + i * i * 3 + 1) % vocab;
  return prompt;
}

/// A target and a drafter of one kind over fake timelines, with the rules of the row counts as checks.
struct DecodeRig {
  struct Setup {
    ToyModel model = {};
    DrafterKind kind = DrafterKind::kNone;
    SamplingOptions sampling = {};
    LogitRules rules = {};
    float drafter_noise = 2;
    bool contrary_drafter = false;
    int context = 4096;
    int draft_context = 4096;
  };

  /// Looks at the caches whenever the loop is about to draft: between rounds every row must be in its place.
  class Watch final : public Drafter {
   public:
    explicit Watch(DecodeRig& rig) : rig_(rig) {}
    std::string_view name() const override { return inner->name(); }
    int default_depth() const override { return inner->default_depth(); }
    Status observe(const Observation& seen) override { return inner->observe(seen); }
    Result<std::span<const TokenId>> draft(const DraftRequest& request) override {
      rig_.check_rows({request.tokens.begin(), request.tokens.end()});
      ++drafts;
      return inner->draft(request);
    }
    Status rewind_to(int length) override { return inner->rewind_to(length); }

    std::unique_ptr<Drafter> inner;
    int drafts = 0;

   private:
    DecodeRig& rig_;
  };

  explicit DecodeRig(const Setup& given)
      : setup(given),
        target(given.model, given.context),
        draft(drafter_model(given), given.draft_context),
        mtp(drafter_model(given), given.context),
        sampler(given.sampling, given.model.vocab),
        watch(*this) {
    switch (setup.kind) {
      case DrafterKind::kNone:
        break;
      case DrafterKind::kLookup:
        watch.inner = std::make_unique<LookupDrafter>();
        break;
      case DrafterKind::kDraftModel:
        watch.inner = std::make_unique<DraftModelDrafter>(draft);
        break;
      case DrafterKind::kMtp:
        watch.inner = std::make_unique<MtpDrafter>(mtp);
        break;
    }
  }
  DecodeRig(const DecodeRig&) = delete;

  static ToyModel drafter_model(const Setup& setup) {
    ToyModel model = setup.model;
    model.drafter_noise = setup.drafter_noise;
    model.contrary = setup.contrary_drafter;
    model.nan_after = -1;
    return model;
  }

  using OnToken = std::function<Proceed(const Emission&)>;

  Result<Generation> try_run(std::vector<TokenId>& tokens, const GenerateOptions& options, OnToken on_token = {}) {
    return generate({.target = target,
                     .drafter = watch.inner ? &watch : nullptr,
                     .sampler = sampler,
                     .rules = setup.rules,
                     .tokens = tokens,
                     .options = options,
                     .on_token = std::move(on_token)});
  }

  /// Runs, expects success, and checks every cache at the exit.
  Generation run(std::vector<TokenId>& tokens, const GenerateOptions& options, OnToken on_token = {}) {
    Result<Generation> done = try_run(tokens, options, std::move(on_token));
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    if (!done.ok()) return {};
    check_rows(tokens);
    return *done;
  }

  /// Exactly prompt + emitted - 1 rows in the target, none of a rejected draft anywhere.
  void check_rows(const std::vector<TokenId>& tokens) const {
    const std::vector<TokenId> fed(tokens.begin(), tokens.end() - 1);
    ASSERT_EQ(target.ids(), fed);
    check_drafter_rows(tokens);
  }

  void check_drafter_rows(const std::vector<TokenId>& tokens) const {
    const int rows = target.length();
    if (setup.kind == DrafterKind::kDraftModel) {
      ASSERT_LE(draft.length(), rows);
      if (setup.draft_context >= setup.context) {
        ASSERT_TRUE(std::equal(draft.ids().begin(), draft.ids().end(), tokens.begin()));
      }
    }
    if (setup.kind == DrafterKind::kMtp) {
      const int start = static_cast<const MtpDrafter&>(*watch.inner).window_start();
      ASSERT_LE(start + mtp.length(), std::max(start, rows - 1));
      for (int i = 0; i < mtp.length(); ++i) {
        const FakeMtpTimeline::Row& row = mtp.rows()[i];
        ASSERT_EQ(static_cast<int>(row.hidden.position), start + i) << "row " << i;
        ASSERT_EQ(static_cast<TokenId>(row.hidden.last), tokens[start + i]) << "row " << i;
        ASSERT_EQ(row.next, tokens[start + i + 1]) << "row " << i;
        ASSERT_EQ(row.hidden.chained, 0) << "row " << i << " was written by a chained step";
      }
      for (std::size_t i = 0; i < mtp.kept_rows().size(); ++i) {
        const int position = rows - static_cast<int>(mtp.kept_rows().size() - i);
        ASSERT_EQ(static_cast<int>(mtp.kept_rows()[i].position), position);
        ASSERT_EQ(static_cast<TokenId>(mtp.kept_rows()[i].last), tokens[position]);
      }
    }
  }

  Setup setup;
  FakeTimeline target;
  FakeTimeline draft;
  FakeMtpTimeline mtp;
  Sampler sampler;
  Watch watch;
};

}  // namespace latte::test
