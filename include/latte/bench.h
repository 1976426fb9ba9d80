#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"
#include "latte/options.h"
#include "latte/session.h"

namespace latte {

/// Most rows that one verify step holds.
inline constexpr int kMostVerifyRows = 16;

/// What is measured. The vectors are lists of row counts; every test runs at every depth.
struct BenchRequest {
  /// `model` is empty when config_file is given. `context` is not used: sessions hold what the tests need.
  EngineOptions engine;
  std::string config_file;  ///< a config.json to make random weights for; empty: engine.model
  int layers = 0;           ///< with config_file: only the first so many layers; 0: all
  std::uint64_t seed = 1;   ///< of random weights, ids and cached rows

  std::vector<int> prompt_rows;     ///< ppN: N rows of a prompt
  std::vector<int> generated_rows;  ///< tgN: N steps of one generated row
  std::vector<int> verify_rows;     ///< vL: one step of L generated rows, 1 to kMostVerifyRows (measure_attention: any)
  std::vector<int> depths = {0};    ///< rows in the cache before the test
  int repetitions = 5;              ///< timed visits to each test, after one that is not; 1 or more

  /// Also generate generated_rows with this drafter, beside plain decoding of the same text.
  std::optional<SessionOptions> speculation;
  /// What prompts are made of, and what the speculating rows replay: the text's own tokens are the model's choices. NUL
  /// bytes part documents. Empty: random ids, and nothing to speculate on.
  std::string text;
};

/// One line of the table. Seconds are wall time of one sample: a whole prompt, N steps, or one step.
struct BenchRow {
  std::string test;  ///< "pp512", "tg128 @ d8192", "v4 @ d4096", "attn8 @ d4096"
  int rows = 0;
  int depth = 0;
  /// What the row claims and its counters are held to: "absorbed", "materialised", "gqa", or two of them with a plus;
  /// of a speculating pair "plain" and the drafter; of measure_attention the form, or "expanded".
  std::string arm;
  double tokens_per_second = 0;  ///< rows over seconds, the mean of the samples
  double tokens_per_second_sd = 0;
  double median_seconds = 0;
  double min_seconds = 0;
  int samples = 0;
  PathCounts paths;              ///< of all timed samples
  std::int64_t bytes_moved = 0;  ///< of one sample: weights that its steps use and cached rows that they read
  double gbytes_per_second = 0;  ///< bytes_moved over median_seconds
  double roof_share = 0;         ///< of BenchReport::read_gbytes_per_second
  /// measure_attention: multiplications and additions of one sample; 0 elsewhere.
  std::int64_t operations = 0;
  /// measure_attention: of the core and of the products with W_UK and W_UV, each the larger of its bytes over the read
  /// bandwidth and its operations over the rate of the instruction that meets the cached rows, with its operands in
  /// registers. 0 elsewhere. An arm whose products use a faster instruction may take less.
  double floor_seconds = 0;
  std::string cache;  ///< what filled the depth: "empty", "prompt", "synthetic" (random normed rows)
  /// vL: (seconds of 2 rows - seconds of 1) / seconds of 1, at this depth. Noise where it is negative.
  std::optional<double> second_row_cost;
  std::optional<double> acceptance;         ///< speculating: accepted drafts over drafts made
  std::optional<double> emitted_per_round;  ///< speculating: tokens per step
  std::int64_t kv_bytes_per_token = 0;      ///< cache over all layers; of the arm in measure_attention
};

struct BenchReport {
  std::string model;  ///< its name, and what of it is random or left out
  std::int64_t weight_bytes = 0;
  std::int64_t parameters = 0;
  std::string type;        ///< of the weights: "bf16", "f32"; of measure_attention the cached rows'
  std::string cache_type;  ///< of the cached rows: "bf16", "q8"
  std::string device;
  std::string isa;
  std::string processor;
  int threads = 0;
  int layers = 0;
  double read_gbytes_per_second = 0;   ///< of all threads, measured between the tests: the roof
  std::int64_t read_buffer_bytes = 0;  ///< what was read for it: as much as the weights, within bounds
  double peak_gops = 0;                ///< measure_attention: of the instruction used, all threads; 0: not known
  std::string peak_instruction;        ///< as the processor's manual calls it
  std::vector<BenchRow> rows;
  double load_average = -1;           ///< of the last minute, before the measurements; -1: unknown
  bool busy = false;                  ///< others keep the processor busy: more ran or waited than the threads used here
  std::vector<std::string> notes;     ///< what a reader of the table has to know, a line each
  std::vector<std::string> warnings;  ///< what opening the model complained of
};

/// Told what is being done.
using BenchProgress = std::function<void(std::string_view stage)>;

/// Row counts of "512", "128,512", "0-2048+512" (first-last+step), "1-16*2" (first-last*mult), "1-4" (step 1), or
/// several with commas between. Errors: kInvalidInput with what arrived and what a list looks like; a number above
/// 2^24, more than 1000 numbers in all.
Result<std::vector<int>> parse_bench_list(std::string_view text);

/// Measures prompts, generation, verify steps and speculation. Tests of one depth take turns, forwards and backwards;
/// the read bandwidth is measured between them. Errors: what cannot be opened; a model or cache larger than the free
/// memory, with the numbers, before any is taken; a request that does not hold together; a step counter that
/// contradicts what its row claims (kInvalidInput).
Result<BenchReport> measure_steps(const BenchRequest& request, const BenchProgress& progress = {});

/// Measures one attention call of the model's geometry (no projections of inputs and outputs) for verify_rows x depths
/// in three arms that take turns: keys and values of every head kept expanded, with ordinary attention over them;
/// materialised from the latent in each step; absorbed (EngineOptions::path leaves one of the last two). Caches are
/// cold: twice as much as they hold, 512 MiB at most, is read before each sample. Only the geometry of a model is read.
/// Errors: a model without latent attention; an expanded cache larger than the free memory.
Result<BenchReport> measure_attention(const BenchRequest& request, const BenchProgress& progress = {});

}  // namespace latte
