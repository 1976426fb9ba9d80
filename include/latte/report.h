#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "latte/engine.h"
#include "latte/error.h"
#include "latte/options.h"

namespace latte {

/// One row of the crossover table.
struct CrossoverRow {
  std::int64_t cached = 0;                        ///< T: cached rows, the new ones included
  std::optional<std::int64_t> max_absorbed_rows;  ///< largest L that is absorbed at T; nothing: always absorbed
};

/// Both rules at one T, for a drawing.
struct CrossoverPoint {
  std::int64_t cached = 0;                   ///< T
  std::optional<std::int64_t> formula_rows;  ///< largest L that is absorbed; nothing: always absorbed
  std::optional<std::int64_t> profile_rows;  ///< the same by the profile; nothing: none, or all L up to T are absorbed
};

/// The decision for one step of a prompt.
struct StepDecision {
  std::string form;           ///< "absorbed", "materialised"; "gqa" where there is nothing to choose
  std::string reason;         ///< one line with the numbers
  std::string absorbed_macs;  ///< per head, rope part excluded; decimal, may exceed 64 bits; empty with gqa
  std::string materialised_macs;
};

/// What arithmetic says about a model before a weight is read.
struct PlanReport {
  std::string family;
  std::string attention;  ///< "mla", "gqa"
  int heads = 0;
  int r = 0, p = 0, n = 0, v = 0;  ///< of mla
  int kv_heads = 0, head_dim = 0;  ///< of gqa
  int layers = 0;
  int mtp_layers = 0;                ///< that the configuration promises; the weights decide
  int context_length = 0;            ///< of the model
  std::int64_t planned_context = 0;  ///< tokens that planned_cache_bytes are for
  std::int64_t planned_cache_bytes = 0;
  std::string cache;  ///< element type the byte counts assume
  /// Values that a token caches in the main layers: r + p each, or 2 x kv heads x head width.
  std::int64_t cache_values_per_token = 0;
  std::int64_t mtp_cache_values_per_token = 0;  ///< beside these, in the MTP layers
  std::int64_t latent_bytes_per_token = 0;      ///< of cache_values_per_token
  std::int64_t expanded_bytes_per_token = 0;    ///< keys and values of every head, over all main layers; gqa: as cached
  std::int64_t weights_bytes = 0;               ///< of the files when they are there, else from the configuration
  std::vector<CrossoverRow> crossover;          ///< by the formula, for T = 512, 2K, 8K, 32K; none with gqa
  /// By this machine's profile, for the same T, the largest L up to which all are absorbed (nothing: all up to T); none
  /// where no profile is stored or PlanRequest asks for none.
  std::vector<CrossoverRow> calibrated;
  std::string profile_file;                ///< of `calibrated`
  std::vector<CrossoverPoint> curve;       ///< T = 256 to 128K in quarters of octaves; none with gqa
  std::optional<std::int64_t> cold_rows;   ///< largest L absorbed on a cold cache (T = L); nothing: always
  std::optional<std::int64_t> limit_rows;  ///< the same as T grows without bound
  std::optional<StepDecision> step;        ///< when PlanRequest asks for one
  std::vector<std::string> assumed;        ///< keys config.json leaves out, with the values taken: "rms_norm_eps 1e-06"
  std::vector<std::string> warnings;       ///< what deserves a word
};

/// Exactly one of model and config_file is set; new_rows and cached_rows together or neither.
struct PlanRequest {
  std::string model;        ///< directory or embedded name
  std::string config_file;  ///< a config.json without weights
  CacheType cache = CacheType::kAuto;
  PathChoice path = PathChoice::kAuto;
  // Whose profile is looked up, as in EngineOptions. kOff: none is, and no device is opened.
  Calibration calibration = Calibration::kOff;
  std::string device = "auto";
  std::string isa = "auto";
  int threads = 0;
  ComputeType compute = ComputeType::kAuto;
  std::int64_t context = 0;                 ///< tokens to size the cache for; 0: the model's length
  std::optional<std::int64_t> new_rows;     ///< L >= 1
  std::optional<std::int64_t> cached_rows;  ///< T >= L, new rows included
};

/// Plans without reading a weight; a device is opened only to learn which profile it has, and nothing is measured.
/// Errors: file and key of a broken configuration, sizes that do not fit together, a device that is not there.
Result<PlanReport> plan(const PlanRequest& request);

struct DroppedName {
  std::string name;
  std::string reason;
};

/// What loading found in a model.
struct InspectReport {
  std::string family;
  std::int64_t tensors_used = 0;
  std::vector<DroppedName> tensors_dropped;
  int layers = 0;
  int folded_layers = 0;
  bool mtp_present = false;
  std::string mtp_reason;
  std::optional<double> mtp_acceptance;  ///< share of a short text's positions where MTP and model agree; nothing
                                         ///< without an MTP layer or a tokenizer
  std::string attention;                 ///< "mla", "gqa"
  std::string rope;                      ///< "plain", or the scaling; with LongRoPE the list that sessions take
  std::string quantisation;              ///< "none", or what the matrices were made into at load: "q8", ...
  std::string stored_type;               ///< of most floats, before quantising: "BF16", "F32", ...
  std::int64_t parameters = 0;           ///< MTP layers not counted
  std::int64_t mtp_parameters = 0;
  std::int64_t weight_bytes = 0;
  std::string cache;                        ///< what cached rows are stored as: "q8", "bf16", ...
  std::int64_t latent_bytes_per_token = 0;  ///< as cached, in the main layers; gqa: keys and values of every group
  std::int64_t mtp_latent_bytes_per_token = 0;
  std::int64_t expanded_bytes_per_token = 0;
  int context_length = 0;
  std::vector<std::string> assumed;  ///< keys config.json leaves out, with the values taken: "rms_norm_eps 1e-06"
};

/// Reports on an open model; runs its MTP layer over a short built-in text.
Result<InspectReport> inspect(const Engine& engine);

}  // namespace latte
