#include "model/sequence.h"

#include <fmt/format.h>

#include <utility>

#include "model/step.h"

namespace latte {

ModelSequence::ModelSequence(const Model& model, Backend& backend, const SequenceOptions& options)
    : model_(&model),
      backend_(&backend),
      rule_(options.rule()),
      cache_(backend, model.config.layers, model.config.cache_row(options.cache_dtype),
             options.context > 0 ? options.context : model.config.context_length),
      scratch_(std::make_shared<StepMemory>(backend)),
      kept_(backend),
      rope_(rope_table(model.config.rope, model.config.rope_width(), cache_.capacity())) {}

Result<StepResult> ModelSequence::step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) {
  const ModelConfig& config = model_->config;
  const ModelWeights& weights = model_->weights;
  const DType activation = backend_->info().activation;
  const int rows = static_cast<int>(ids.size());
  const int first = cache_.length();
  if (Status fits = check_ids(ids, config.vocab, first, cache_.capacity()); !fits.ok()) return fits.error();
  if (Status room = cache_.reserve(first + rows); !room.ok()) return room.error();

  plan_model_step(config, first, rows, role, rule_, plan_);
  if (on_plan_) on_plan_(plan_);
  BufferCarver scratch_size(nullptr), kept_size(nullptr);
  LayerBuffers::carve(scratch_size, plan_, config, activation, false);
  ResultBuffers::carve(kept_size, rows, config.hidden, config.vocab, wanted, activation);
  if (Status room = scratch_->fit(scratch_size.used()); !room.ok()) return room.error();
  if (Status room = kept_.fit(kept_size.used()); !room.ok()) return room.error();
  BufferCarver scratch(scratch_->base()), kept(kept_.base());
  const LayerBuffers buffers = LayerBuffers::carve(scratch, plan_, config, activation, false);
  const ResultBuffers results = ResultBuffers::carve(kept, rows, config.hidden, config.vocab, wanted, activation);

  backend_->embed({weights.embed, ids, buffers.x_LD, config.embedding_scale});
  upload_angles(rope_, first, *backend_, buffers, angles_);
  for (int i = 0; i < config.layers; ++i) {
    layer({*backend_, *model_, plan_, weights.layers[static_cast<std::size_t>(i)], cache_.layer_rows(i, first + rows),
           buffers});
    if (backend_->first_nonfinite_row(buffers.x_LD) >= 0)
      return check_finite(*backend_, buffers.x_LD, first, fmt::format("layer {}", i)).error();
  }
  backend_->rms_norm({buffers.x_LD, weights.norm, config.rms_norm_eps, results.hidden_LD});
  const MatView<const float> logits = head_logits(*backend_, plan_.step_class, weights.head, results, logits_);
  if (Status finite = check_finite(*backend_, results.logits, first + rows - static_cast<int>(results.logits.rows),
                                   "the output head");
      !finite.ok()) {
    return finite.error();
  }
  if (Status done = backend_->synchronize(); !done.ok()) return done.error();
  cache_.append(rows);
  paths_.count(plan_.form, rows);
  return StepResult{logits, results.hidden_LD};
}

}  // namespace latte
