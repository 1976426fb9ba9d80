#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"

namespace latte {

/// What matrix products and activations are computed in. Auto: F32 for an f32 checkpoint, else bf16 with f32
/// accumulation.
enum class ComputeType { kAuto, kF32, kBf16 };

/// What cached rows are stored as. Auto follows the compute type; on the reference device it is double. What the device
/// lacks is refused by name.
enum class CacheType { kAuto, kBf16, kF32, kF16, kQ8, kFp8 };

/// Which form of Multi-head Latent Attention a step takes. Auto and formula choose per step; the forced forms are
/// diagnostics, and forcing kMaterialised suspends the promise that speculation changes no bit.
enum class PathChoice { kAuto, kAbsorbed, kMaterialised, kFormula };

/// The numeric promise for prompts. Pinned is not there yet and is refused by name.
enum class Numerics { kFast, kPinned };

/// Who guesses tokens ahead. Auto: the draft model when one is open, else the model's MTP layer, else prompt lookup.
enum class SpecType { kNone, kMtp, kDraft, kLookup, kAuto };

/// The numeric role of teacher-forced steps. Auto: the first step is prompt, later ones of at most 16 rows generated,
/// wider ones prompt.
enum class StepRole { kAuto, kPrompt, kGenerated };

/// The word of the command line for a value: "bf16", "absorbed", "mtp".
std::string_view word(ComputeType value);
std::string_view word(CacheType value);
std::string_view word(PathChoice value);
std::string_view word(Numerics value);
std::string_view word(SpecType value);
std::string_view word(StepRole value);

/// The value of a word. Errors: kInvalidInput with the word that arrived and those that are known.
Result<ComputeType> parse_compute_type(std::string_view text);
Result<CacheType> parse_cache_type(std::string_view text);
Result<PathChoice> parse_path(std::string_view text);
Result<Numerics> parse_numerics(std::string_view text);
Result<SpecType> parse_spec_type(std::string_view text);
Result<StepRole> parse_step_role(std::string_view text);

/// How a model is opened. The defaults suit the machine and the model.
struct EngineOptions {
  std::string model;            ///< a model directory, or the name of an embedded model ("latte-tiny")
  std::string draft_model;      ///< the same for a draft model; empty: none
  std::string device = "auto";  ///< auto, cpu, reference
  std::string isa = "auto";     ///< auto, scalar, avx2, avx512, avx512_bf16
  int threads = 0;              ///< 0: the physical cores this process may use
  int context = 0;              ///< tokens a session may hold; 0: the model's length. More than that warns and works
  ComputeType compute = ComputeType::kAuto;
  CacheType cache = CacheType::kAuto;
  PathChoice path = PathChoice::kAuto;
  Numerics numerics = Numerics::kFast;
};

/// How a session speculates. Drafts change the speed only, never the text.
struct SessionOptions {
  SpecType spec = SpecType::kAuto;
  /// Most drafts per round: 1 to 8 for MTP, to 15 for the others, 0 plain steps; nothing: 1 for MTP, 4 for a draft
  /// model, up to 8 for lookup.
  std::optional<int> num_draft_tokens;
};

/// How tokens are chosen; see EngineInfo::sampling for what a model's generation_config.json suggests.
struct SamplingChoice {
  double temperature = 0;  ///< 0: greedy
  int top_k = 0;           ///< 0: all
  double top_p = 1;        ///< 1: all
  double min_p = 0;        ///< 0: all
};

/// One call of Session::generate.
struct RunOptions {
  std::optional<int> max_tokens;           ///< nothing: until a stop token or the context's end
  std::optional<SamplingChoice> sampling;  ///< nothing: the model's suggestion
  std::optional<std::uint64_t> seed;       ///< nothing: a random one, reported in the result
  bool ignore_eos = false;                 ///< the model's stop tokens do not stop
  std::vector<std::string> stop;           ///< texts that end generation; they are not part of the result's text
};

}  // namespace latte
