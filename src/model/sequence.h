#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/path_counters.h"
#include "kv/latent_cache.h"
#include "model/layer.h"
#include "model/model.h"
#include "model/rope.h"
#include "model/step_memory.h"
#include "model/timeline.h"

namespace latte {

/// How a sequence is kept and stepped.
struct SequenceOptions {
  int context = 0;  ///< most rows; 0: the model's length
  DType cache_dtype = DType::kF32;
  MlaPath path = MlaPath::kAuto;
  const CostProfile* profile = nullptr;  ///< what path auto asks about prompt steps; outlives the sequence

  FormRule rule() const { return {path, profile}; }
};

/// The timeline of the main model: caches of every layer, working memory, counters. One thread at a time; the model and
/// the backend outlive it.
class ModelSequence : public Timeline {
 public:
  ModelSequence(const Model& model, Backend& backend, const SequenceOptions& options);

  int length() const override { return cache_.length(); }
  int context() const override { return cache_.capacity(); }
  int vocab() const override { return model_->config.vocab; }
  Result<StepResult> step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) override;
  bool can_rewind_to(int length) const override { return cache_.can_rewind_to(length); }
  Status rewind_to(int length) override { return cache_.rewind_to(length); }

  LatentCache& cache() { return cache_; }
  const LatentCache& cache() const { return cache_; }
  const PathCounters& paths() const { return paths_; }
  /// `on_plan` sees the plan of every later step before it runs; an empty one ends that.
  void watch_plans(std::function<void(const StepPlan&)> on_plan) { on_plan_ = std::move(on_plan); }
  /// Working memory that a timeline running in turn with this one may share.
  const std::shared_ptr<StepMemory>& scratch() const { return scratch_; }

 private:
  const Model* model_;
  Backend* backend_;
  FormRule rule_;
  LatentCache cache_;
  PathCounters paths_;
  std::function<void(const StepPlan&)> on_plan_;
  StepPlan plan_;
  std::shared_ptr<StepMemory> scratch_;
  StepMemory kept_;  // hidden rows and logits: what outlives the step
  RopeTable rope_;
  std::vector<double> angles_;
  std::vector<float> logits_;
};

/// The timeline of one multi-token-prediction layer (families 0.6): x = eh_proj [enorm(embed(next)) ; hnorm(hidden)],
/// one decoder layer with its own cache, shared_head.norm, head.
class MtpSequence : public MtpTimeline {
 public:
  /// Shares `scratch` with the main sequence, in turn with which it runs.
  MtpSequence(const Model& model, Backend& backend, const SequenceOptions& options,
              std::shared_ptr<StepMemory> scratch);

  int length() const override { return cache_.length(); }
  int context() const override { return cache_.capacity(); }
  Result<StepResult> step(std::span<const TokenId> next_ids, ConstMatRef hidden, Role role,
                          LogitsWanted wanted) override;
  Status rewind_to(int length) override { return cache_.rewind_to(length); }
  Status keep(ConstMatRef hidden) override;
  ConstMatRef kept() const override;
  void drop_kept(int first, int count) override;

  LatentCache& cache() { return cache_; }
  const LatentCache& cache() const { return cache_; }

  /// The queue's rows as they are stored: [kept, D] of the backend's activation type.
  std::vector<std::byte> kept_bytes() const;
  /// Memory for a queue of any length. Errors: no memory.
  Status prepare_queue();
  /// Replaces the queue's rows after prepare_queue(); `bytes` as kept_bytes() gives them.
  void restore_kept(std::span<const std::byte> bytes);

 private:
  MatRef queue() const;
  KeyRows queue_rows(int rows, void* const* page) const;

  const Model* model_;
  Backend* backend_;
  FormRule rule_;
  LatentCache cache_;
  StepPlan plan_;
  std::shared_ptr<StepMemory> scratch_;
  StepMemory results_;
  StepMemory queue_;
  int queue_rows_ = 0;
  RopeTable rope_;
  std::vector<double> angles_;
  std::vector<float> logits_;
};

}  // namespace latte
