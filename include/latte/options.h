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

/// The numeric promise for prompts. Fast: a short turn takes the cheaper form. Pinned: prompt rows are materialised, in
/// steps that begin at multiples of 256 rows, and only such steps are kept of an earlier prompt, so that a warm cache
/// gives the bits of a cold one.
enum class Numerics { kFast, kPinned };

/// Whether costs measured on this machine may choose the form of prompt steps, and rates the instruction set where
/// EngineOptions::isa is auto (docs/calibration.md). Generated rows are absorbed whatever is measured, but another
/// instruction set may change their last bits. kOff: the formula chooses, and a table of processors. kStored: a profile
/// in the user's cache directory when there is one. kMeasure: as kStored, and where there is none and the model is
/// large enough for the form to matter, opening it measures for at most two seconds and stores what it finds.
enum class Calibration { kOff, kStored, kMeasure };

/// What matrices become when a model is opened: latte's own groups of 32 inputs with one scale
/// (docs/weight-formats.md). kQ4Q8Attention: feed-forward weights in 4 bits, attention in 8. The output head is never
/// below 8 bits.
enum class Quantize { kNone, kQ8, kQ4, kQ4Q8Attention };

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
std::string_view word(Quantize value);
std::string_view word(SpecType value);
std::string_view word(StepRole value);

/// The value of a word. Errors: kInvalidInput with the word that arrived and those that are known.
Result<ComputeType> parse_compute_type(std::string_view text);
Result<CacheType> parse_cache_type(std::string_view text);
Result<PathChoice> parse_path(std::string_view text);
Result<Numerics> parse_numerics(std::string_view text);
Result<Quantize> parse_quantize(std::string_view text);
Result<SpecType> parse_spec_type(std::string_view text);
Result<StepRole> parse_step_role(std::string_view text);

/// How a model is opened. The defaults suit the machine and the model.
struct EngineOptions {
  std::string model;            ///< a model directory, or the name of an embedded model ("latte-tiny")
  std::string draft_model;      ///< the same for a draft model; empty: none
  std::string device = "auto";  ///< auto, cpu, reference
  std::string isa = "auto";     ///< auto, scalar, avx2, avx512, avx512_vnni, avx512_bf16, amx, neon
  int threads = 0;              ///< 0: the physical cores this process may use
  int context = 0;              ///< tokens a session may hold; 0: the model's length. More than that warns and works
  ComputeType compute = ComputeType::kAuto;
  CacheType cache = CacheType::kAuto;
  PathChoice path = PathChoice::kAuto;
  Numerics numerics = Numerics::kFast;
  Quantize quantize = Quantize::kNone;  ///< of the model, not of its draft model
  /// Of the model; its draft model follows the formula. Pinned numerics, a path other than auto and the reference
  /// device leave no choice to a profile.
  Calibration calibration = Calibration::kOff;
};

/// How a session speculates. Drafts change the speed only, never the text.
struct SessionOptions {
  SpecType spec = SpecType::kAuto;
  /// Drafts per round: 1 to 8 for MTP, to 15 for the others, 0 plain steps. Nothing: what is measured to be fastest,
  /// round by round, 0 to 4 for MTP, 0 to 8 for a draft model; up to 8 for lookup, which costs nothing.
  std::optional<int> num_draft_tokens;
};

/// How tokens are chosen; see EngineInfo::sampling for what a model's generation_config.json suggests. The steps act in
/// the order logit bias, repeat penalty, presence and frequency penalty, temperature, top-k, top-p, min-p; at
/// temperature 0 the most likely token after the penalties is taken. Every token is chosen by those before it, within a
/// speculative block too, so speculation changes no text whatever is set here.
struct SamplingChoice {
  double temperature = 0;  ///< 0: greedy; else 1e-6 to 1e6
  int top_k = 0;           ///< 0: all
  double top_p = 1;        ///< above 0; 1: all
  double min_p = 0;        ///< 0 to 1; 0: all

  /// Each token among the last repeat_last_n, prompt included, has a positive logit divided by this and any other
  /// multiplied, once however often it occurs. 0.01 to 100; 1: none.
  double repeat_penalty = 1;
  int repeat_last_n = 64;  ///< tokens; 0: none, -1: all
  /// Taken once from the logit of each token that this call has generated; the prompt does not count. -100 to 100.
  double presence_penalty = 0;
  /// Taken from it for every time that this call has generated the token. -100 to 100.
  double frequency_penalty = 0;
};

/// A number added to the logit of one token at every position.
struct LogitBias {
  std::int32_t id = 0;  ///< of the model's vocabulary
  double bias = 0;      ///< -1e4 to 1e4, or -infinity: the token is never chosen
};

/// One call of Session::generate.
struct RunOptions {
  std::optional<int> max_tokens;           ///< nothing: until a stop token or the context's end
  std::optional<SamplingChoice> sampling;  ///< nothing: the model's suggestion
  std::optional<std::uint64_t> seed;       ///< nothing: a random one, reported in the result
  std::vector<LogitBias> logit_bias;       ///< several for one id add up; not all ids may be forbidden
  /// The model's stop tokens do not stop. They stay possible and are left out of the text as special tokens; bias them
  /// by -infinity (EngineInfo::stop_ids) where they shall not come.
  bool ignore_eos = false;
  /// Texts that end generation, wherever tokens cut them; they are not part of the result's text, while its ids keep
  /// the tokens up to the one that completed the text. One that is a special token's name stops at that token.
  std::vector<std::string> stop;
  /// 0 to 20: report each token's log probability and those of so many most likely tokens, in the model's own
  /// distribution: before bias, penalties, temperature and filters. Nothing: none are computed.
  std::optional<int> logprobs;
};

}  // namespace latte
