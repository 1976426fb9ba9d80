#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "latte/engine.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/sequence.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "weights/quantise.h"

namespace latte {

/// What TextCodec shares.
struct TextCodecState {
  std::string directory;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
};

/// model_weights_digest() of a model, made the first time somebody asks.
class WeightsDigest {
 public:
  const std::string& of(const Model& model) {
    std::call_once(once_, [&] { digest_ = model_weights_digest(model.weights.checkpoint, model.config.quantised); });
    return digest_;
  }

 private:
  std::once_flag once_;
  std::string digest_;
};

/// What Engine shares: one model on one device. Read-only after open but for the device, which sessions take in turn by
/// holding `busy`.
struct OpenModel {
  explicit OpenModel(Model loaded) : model(std::move(loaded)) {}

  Model model;
  std::optional<Model> draft;
  std::unique_ptr<Backend> backend;
  std::optional<CostProfile> profile;  ///< what `sequence` asks about prompt steps
  SequenceOptions sequence;            ///< how sessions keep the main model's rows; the MTP layer's are kept alike
  SequenceOptions draft_sequence;      ///< the same for the draft model
  std::shared_ptr<const TextCodecState> text_state;  ///< null: the folder has no tokenizer
  std::optional<TextCodec> text;                     ///< the public face of text_state
  EngineInfo info;
  std::mutex busy;
  WeightsDigest weights_digest;
  WeightsDigest draft_weights_digest;

  bool pinned() const { return sequence.path == MlaPath::kPinned; }
  const Tokenizer* tokenizer() const { return text_state == nullptr ? nullptr : &text_state->tokenizer; }
};

/// The formats of a choice; nothing: matrices stay as they are stored.
std::optional<QuantisePlan> quantise_plan(Quantize choice);

/// What the planner calls a choice.
MlaPath path_of(PathChoice choice);

/// Refuses a tokenizer with an id that a model of `vocab` ids does not have.
Status check_ids(const Tokenizer& tokenizer, std::int64_t vocab);

/// Opens tokenizer and template of a folder. Errors: one line with the file and the key.
Result<std::shared_ptr<const TextCodecState>> open_text(const std::string& directory);

/// Puts a model that is in memory on a device. `options.model` is the folder of its tokenizer, or what to call it.
Result<std::shared_ptr<OpenModel>> open_model(Model model, const EngineOptions& options, const LoadProgress& progress);

/// Opens `options.model` and `options.draft_model`, which are directories here. Errors as Engine::open says.
Result<std::shared_ptr<OpenModel>> open_model(const EngineOptions& options, const LoadProgress& progress);

}  // namespace latte
