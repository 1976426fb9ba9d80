#include <array>
#include <utility>

#include "base/contract.h"
#include "model/sequence.h"
#include "model/step.h"

namespace latte {
namespace {

// A prompt step's rows may arrive while the row before it still waits for its next token.
constexpr int kQueueRows = 2 * MtpTimeline::kMaxKept;

}  // namespace

MtpSequence::MtpSequence(const Model& model, Backend& backend, const SequenceOptions& options,
                         std::shared_ptr<StepMemory> scratch)
    : model_(&model),
      backend_(&backend),
      rule_(options.rule()),
      cache_(backend, 1, model.config.cache_row(options.cache_dtype),
             options.context > 0 ? options.context : model.config.context_length),
      scratch_(std::move(scratch)),
      results_(backend),
      queue_(backend),
      rope_(rope_table(model.config.rope, model.config.rope_width(), cache_.capacity())) {
  expects(model.has_mtp(), "the model has an MTP layer");
}

Result<StepResult> MtpSequence::step(std::span<const TokenId> next_ids, ConstMatRef hidden, Role role,
                                     LogitsWanted wanted) {
  const ModelConfig& config = model_->config;
  const MtpWeights& weights = model_->weights.mtp.front();
  const DType activation = backend_->info().activation;
  const int rows = static_cast<int>(next_ids.size());
  const int first = cache_.length();
  const int width = config.hidden;
  expects(hidden.rows == rows && hidden.cols == width, "every MTP row has its hidden row");
  if (Status fits = check_ids(next_ids, config.vocab, first, cache_.capacity()); !fits.ok()) return fits.error();
  if (Status room = cache_.reserve(first + rows); !room.ok()) return room.error();

  plan_model_step(config, first, rows, role, rule_, plan_);
  BufferCarver scratch_size(nullptr), results_size(nullptr);
  LayerBuffers::carve(scratch_size, plan_, config, activation, true);
  ResultBuffers::carve(results_size, rows, width, config.vocab, wanted, activation);
  if (Status room = scratch_->fit(scratch_size.used()); !room.ok()) return room.error();
  BufferCarver scratch(scratch_->base());
  const LayerBuffers buffers = LayerBuffers::carve(scratch, plan_, config, activation, true);

  // The hidden rows may lie in this timeline's own results: they are read before the results are written.
  backend_->embed({weights.embed, next_ids, buffers.normed_LD});
  backend_->rms_norm({buffers.normed_LD, weights.enorm, config.rms_norm_eps, buffers.joined_L2D.cols_from(0, width)});
  backend_->rms_norm({hidden, weights.hnorm, config.rms_norm_eps, buffers.joined_L2D.cols_from(width, width)});
  const std::array join = {Projection{weights.eh_proj, buffers.x_LD}};
  backend_->matmul({plan_.step_class, buffers.joined_L2D, join});

  if (Status room = results_.fit(results_size.used()); !room.ok()) return room.error();
  BufferCarver carver(results_.base());
  const ResultBuffers results = ResultBuffers::carve(carver, rows, width, config.vocab, wanted, activation);
  upload_angles(rope_, first, *backend_, buffers, angles_);
  layer({*backend_, *model_, plan_, weights.layer, cache_.layer_rows(0, first + rows), buffers});
  if (Status finite = check_finite(*backend_, buffers.x_LD, first, "the MTP layer"); !finite.ok())
    return finite.error();
  backend_->rms_norm({buffers.x_LD, weights.norm, config.rms_norm_eps, results.hidden_LD});
  const MatView<const float> logits = head_logits(*backend_, plan_.step_class, weights.head, results, logits_);
  if (Status done = backend_->synchronize(); !done.ok()) return done.error();
  cache_.append(rows);
  return StepResult{logits, results.hidden_LD};
}

MatRef MtpSequence::queue() const {
  const int width = model_->config.hidden;
  return {queue_.base(), backend_->info().activation, kQueueRows, width, width};
}

Status MtpSequence::prepare_queue() {
  return queue_.fit(std::size_t{kQueueRows} * model_->config.hidden * dtype_bytes(backend_->info().activation));
}

Status MtpSequence::keep(ConstMatRef hidden) {
  if (Status room = prepare_queue(); !room.ok()) return room;
  expects(queue_rows_ + hidden.rows <= kQueueRows, "kept hidden rows are used before the queue is full");
  backend_->copy(hidden, queue().rows_from(queue_rows_, hidden.rows));
  queue_rows_ += static_cast<int>(hidden.rows);
  return {};
}

ConstMatRef MtpSequence::kept() const { return queue().rows_from(0, queue_rows_); }

/// The queue as rows of one page.
KeyRows MtpSequence::queue_rows(int rows, void* const* page) const {
  return {.pages = page,
          .page_rows = kQueueRows,
          .row_stride = model_->config.hidden,
          .lane_stride = 0,
          .rows = rows,
          .dtype = backend_->info().activation};
}

std::vector<std::byte> MtpSequence::kept_bytes() const {
  const int width = model_->config.hidden;
  std::vector<std::byte> bytes(static_cast<std::size_t>(queue_rows_) * width *
                               dtype_bytes(backend_->info().activation));
  void* const page = queue_.base();
  if (queue_rows_ > 0) backend_->read_rows(queue_rows(queue_rows_, &page), 0, queue_rows_, width, bytes);
  return bytes;
}

void MtpSequence::restore_kept(std::span<const std::byte> bytes) {
  const int width = model_->config.hidden;
  const int rows = static_cast<int>(bytes.size() / (width * dtype_bytes(backend_->info().activation)));
  expects(rows <= kMaxKept && queue_.base() != nullptr, "restored rows fit into a queue that is there");
  void* const page = queue_.base();
  if (rows > 0) backend_->write_rows(bytes, queue_rows(rows, &page), 0, rows, width);
  queue_rows_ = rows;
}

void MtpSequence::drop_kept(int first, int count) {
  expects(first >= 0 && count >= 0 && first + count <= queue_rows_, "dropped rows are in the queue");
  for (int row = first + count; row < queue_rows_; ++row) {
    backend_->copy(queue().rows_from(row, 1), queue().rows_from(row - count, 1));
  }
  queue_rows_ -= count;
}

}  // namespace latte
