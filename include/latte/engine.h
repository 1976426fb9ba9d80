#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"
#include "latte/options.h"
#include "latte/text_codec.h"

namespace latte {

struct OpenModel;

/// Told what opening is doing: "weights", "tokenizer", "draft model".
using LoadProgress = std::function<void(std::string_view stage)>;

/// What was opened and what the settings came out as.
struct EngineInfo {
  std::string model_directory;
  std::string family;  ///< "deepseek_v3"
  std::string device;  ///< "cpu", "reference"
  std::string isa;     ///< "avx2", "double" on the reference device, ...
  int threads = 1;
  std::string compute;      ///< what products run in: "f32", "bf16", "f64"
  std::string cache;        ///< "f32", "bf16", "f64"
  std::string numerics;     ///< "fast" or "pinned"
  std::string quantize;     ///< "none", "q8", ...: what the matrices were made into at load, or are stored as
  std::string calibration;  ///< "none", "stored" or "measured": the profile that chooses the form of prompt steps
  int vocab = 0;
  int context = 0;        ///< tokens a session may hold
  int model_context = 0;  ///< the model's own length
  bool has_mtp = false;
  bool has_draft_model = false;
  std::int64_t parameters = 0;             ///< MTP layers not counted
  std::int64_t weight_bytes = 0;           ///< as stored
  std::int64_t cache_bytes_per_token = 0;  ///< over all layers of the main model
  std::vector<std::int32_t> stop_ids;      ///< tokens that end a text unless RunOptions::ignore_eos says otherwise
  SamplingChoice sampling;                 ///< what generation_config.json suggests; greedy when it says nothing.
                                           ///< Penalties are only those that are asked for
  std::vector<std::string> warnings;       ///< settings that work but deserve a word
};

/// A model opened on a device: weights, tokenizer, device. A cheap handle to shared state; copies name the same model.
/// Threads: sessions of one engine may be driven by different threads; they take the device in turn. Inside a callback
/// of a session no other session of the same engine may be called.
class Engine {
 public:
  /// Opens a model. Errors: a name that leads nowhere (with the places looked at), a broken file (with file and tensor
  /// or key), a device or type this machine lacks, a draft model with another vocabulary (with the first id that
  /// differs).
  static Result<Engine> open(const EngineOptions& options, const LoadProgress& progress = {});

  const EngineInfo& info() const;
  /// Tokenizer and chat template; nullptr when the folder has none. Lives as long as the engine.
  const TextCodec* text() const;

 private:
  friend class Session;
  friend struct EngineAccess;
  explicit Engine(std::shared_ptr<OpenModel> model) : model_(std::move(model)) {}

  std::shared_ptr<OpenModel> model_;
};

}  // namespace latte
