#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "api/attention_floor.h"
#include "api/bench_model.h"
#include "api/bench_paths.h"
#include "api/bench_timing.h"
#include "api/form_timer.h"
#include "api/machine.h"
#include "api/out_of_memory.h"
#include "api/read_bandwidth.h"
#include "api/synthetic_cache.h"
#include "attention/forms.h"
#include "base/fail.h"
#include "decode/cache_type.h"
#include "decode/isa_choice.h"
#include "device/open_backend.h"
#include "latte/bench.h"
#include "model/rope.h"

namespace latte {
namespace {

/// All three, or the one that a forced form leaves.
std::vector<AttentionArm> arms_of(PathChoice path) {
  if (path == PathChoice::kAbsorbed) return {AttentionArm::kAbsorbed};
  if (path == PathChoice::kMaterialised) return {AttentionArm::kMaterialised};
  return {AttentionArm::kExpanded, AttentionArm::kMaterialised, AttentionArm::kAbsorbed};
}

const char* arm_name(AttentionArm arm) {
  return arm == AttentionArm::kExpanded
             ? "expanded"
             : form_name(arm == AttentionArm::kAbsorbed ? MlaForm::kAbsorbed : MlaForm::kMaterialised);
}

/// Keys and values of every head, lane after lane, as an engine without latent attention keeps them.
class ExpandedCache {
 public:
  static Result<ExpandedCache> fill(Backend& backend, const MlaGeometry& g, DType dtype, int rows, std::uint64_t seed) {
    ExpandedCache cache;
    // A lane's rows are a layer's rows of a cache with one page.
    for (auto [piece, lanes] :
         {std::pair{CodedPiece{g.n, g.p}, &cache.keys_}, std::pair{CodedPiece{g.v, 0}, &cache.values_}}) {
      const int width = piece.width();
      lanes->heads = g.heads;
      lanes->row = {.width = width, .dtype = dtype, .piece = piece};
      lanes->rows = rows;
      const std::size_t bytes = static_cast<std::size_t>(rows) * static_cast<std::size_t>(lanes->row.bytes()) *
                                static_cast<std::size_t>(g.heads);
      Result<DeviceBuffer> memory = backend.allocate(bytes);
      if (!memory.ok()) return memory.error();
      lanes->memory = std::move(*memory);
      LatentCache source(backend, 1, lanes->row, rows);
      if (Status made = fill_with_random_rows(backend, source, rows, seed); !made.ok()) return made.error();
      std::vector<std::byte> one(bytes / static_cast<std::size_t>(g.heads));
      source.read(0, 0, rows, one);
      lanes->page = lanes->memory.data();
      for (int head = 0; head < g.heads; ++head) {
        KeyRows lane = lanes->view();
        lane.first_col = head * lane.lane_stride;
        backend.write_rows(one, lane, 0, rows, width);
      }
    }
    return cache;
  }

  KeyRows keys() const { return keys_.view(); }
  KeyRows values() const { return values_.view(); }

 private:
  struct Lanes {
    DeviceBuffer memory;
    void* page = nullptr;
    int heads = 0, rows = 0;
    RowFormat row;

    KeyRows view() const {
      return {.pages = &page,
              .page_rows = rows,
              .row_stride = row.width,
              .lane_stride = std::int64_t{rows} * row.width,
              .rows = rows,
              .dtype = row.dtype,
              .piece = row.piece};
    }
  };
  Lanes keys_, values_;
};

/// What every arm of one device and geometry shares.
struct Bench {
  Backend& backend;
  const ModelConfig& config;
  double scale;
  const MlaWeights& weights;
  DType cache_dtype;
};

/// Ordinary attention: a lane per head, keys divided as those of any model are.
void attend_expanded(const Bench& bench, const StepPlan& plan, const AttentionBuffers& b, const ExpandedCache& cache) {
  const MlaGeometry& g = bench.config.geometry;
  for (const AttendCall& call : plan.calls) {
    const std::int64_t queries = call.queries.query_count;
    const MatRef q = b.q_LHk.rows_from(call.queries.first_query, queries);
    const AttendSequence sequence{.q_WK = {q.data, q.dtype, queries, g.key_width(), q.row_stride},
                                  .q_lane_stride = g.key_width(),
                                  .keys = cache.keys(),
                                  .values = cache.values(),
                                  .first_key_pos = 0,
                                  .first_query_pos = plan.rows_before + call.queries.first_query};
    const Partials partials{.o = b.partial_o.data,
                            .log2_sums = b.partial_sums.data,
                            .dtype = b.partial_o.dtype,
                            .slots = call.slots,
                            .lanes = g.heads,
                            .rows = queries,
                            .width = g.v};
    bench.backend.attend_partial({.step_class = plan.step_class,
                                  .sequences = {&sequence, 1},
                                  .lanes = g.heads,
                                  .rows_per_query = 1,
                                  .key_width = g.key_width(),
                                  .value_width = g.v,
                                  .scale_log2 = bench.scale * std::numbers::log2e,
                                  .chunks = std::span(plan.chunks).subspan(call.first_chunk, call.chunk_count),
                                  .partials = partials});
    const MergeRange range{.first_slot = 0, .slot_count = call.slots, .first_row = 0, .row_count = queries};
    bench.backend.merge_partials({partials, {&range, 1}, b.out_LHv.rows_from(call.queries.first_query, queries), g.v});
  }
}

/// One arm of one cell: its plan and its memory.
class Cell {
 public:
  static Result<Cell> open(const Bench& bench, AttentionArm arm, int rows, int depth) {
    Cell cell;
    cell.arm_ = arm;
    const MlaGeometry& g = bench.config.geometry;
    const Role role = step_class(Role::kGenerated, rows) == StepClass::kDecode ? Role::kGenerated : Role::kPrompt;
    if (arm == AttentionArm::kExpanded) {
      plan_step(GqaGeometry{g.heads, g.heads, g.v}, depth, rows, role, cell.plan_);
    } else {
      const MlaPath path = arm == AttentionArm::kAbsorbed ? MlaPath::kAbsorbed : MlaPath::kMaterialised;
      plan_step(g, depth, rows, role, path, cell.plan_);
    }
    BufferCarver size(nullptr);
    cell.carve(size, bench);
    Result<DeviceBuffer> memory = bench.backend.allocate(size.used());
    if (!memory.ok()) return memory.error();
    cell.memory_ = std::move(*memory);
    BufferCarver carver(cell.memory_.data());
    cell.carve(carver, bench);
    const MatRef q = cell.buffers_.q_LHk;
    std::vector<double> values(static_cast<std::size_t>(q.rows * q.cols));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 37 % 101) / 50 - 1;
    bench.backend.upload(values, q);
    cell.row_.test = test_name("attn", rows, depth);
    cell.row_.rows = rows;
    cell.row_.depth = depth;
    cell.row_.arm = arm_name(arm);
    cell.row_.cache = "synthetic";
    return cell;
  }

  Result<double> sample(const Bench& bench, const LatentCache& latent, const std::optional<ExpandedCache>& expanded) {
    const KeyRows rows = latent.layer_rows(0, plan_.rows_after());
    const MlaStepArgs args{.backend = bench.backend,
                           .plan = plan_,
                           .weights = bench.weights,
                           .softmax_scale = bench.scale,
                           .cos_Lp = {},
                           .sin_Lp = {},
                           .latent = rows,
                           .buffers = buffers_,
                           .x_LD = {},
                           .residual_LD = {}};
    counted_.count(plan_.form, plan_.new_rows);
    return seconds_of([&]() -> Status {
      if (arm_ == AttentionArm::kExpanded) attend_expanded(bench, plan_, buffers_, *expanded);
      if (arm_ == AttentionArm::kMaterialised) attend_materialised(args);
      if (arm_ == AttentionArm::kAbsorbed) attend_absorbed(args);
      return bench.backend.synchronize();
    });
  }

  /// Cached rows, and the weights of the expansion or of the fold.
  void count_work(const Bench& bench) {
    const MlaGeometry& g = bench.config.geometry;
    const auto expanded = static_cast<std::int64_t>(expanded_row_bytes(bench.config, bench.cache_dtype));
    const std::int64_t latent = bench.config.cache_row(bench.cache_dtype).bytes();
    const std::int64_t per_layer = arm_ == AttentionArm::kExpanded ? expanded : latent;
    const std::int64_t weights = std::int64_t{g.heads} * g.expanded_width() * g.r *
                                 static_cast<std::int64_t>(dtype_bytes(bench.weights.w_uk.dtype));
    row_.kv_bytes_per_token = per_layer * bench.config.layers;
    product_bytes_ = arm_ == AttentionArm::kExpanded ? 0 : weights;
    row_.bytes_moved = per_layer * plan_.rows_after() + product_bytes_;
    operations_ = attention_operations(g, arm_, plan_.rows_before, plan_.new_rows);
    row_.operations = operations_.total();
  }

  void add(double seconds) { seconds_.push_back(seconds); }
  /// Forgets the untimed sample.
  void begin() { counted_ = {}; }

  BenchRow finish(double read_gbytes_per_second, double peak_gops) {
    row_.paths = path_counts(counted_);
    summarise(seconds_, read_gbytes_per_second, row_);
    row_.floor_seconds =
        part_floor(row_.bytes_moved - product_bytes_, read_gbytes_per_second, operations_.core, peak_gops) +
        part_floor(product_bytes_, read_gbytes_per_second, operations_.products, peak_gops);
    return row_;
  }
  const std::string& name() const { return row_.test; }

 private:
  void carve(BufferCarver& carver, const Bench& bench) {
    const MlaGeometry& g = bench.config.geometry;
    const DType activation = bench.backend.info().activation;
    if (arm_ != AttentionArm::kExpanded) {
      buffers_ = AttentionBuffers::carve(carver, plan_, 0, activation);
      return;
    }
    buffers_.q_LHk = carver.take(plan_.new_rows, std::int64_t{g.heads} * g.key_width(), activation);
    buffers_.out_LHv = carver.take(plan_.new_rows, std::int64_t{g.heads} * g.v, activation);
    const std::int64_t packed = std::int64_t{plan_.max_slots()} * plan_.max_call_queries() * g.heads;
    buffers_.partial_o = carver.take(packed, g.v, activation);
    buffers_.partial_sums = carver.take(1, packed, activation);
  }

  AttentionArm arm_ = AttentionArm::kAbsorbed;
  StepPlan plan_;
  AttentionBuffers buffers_;
  DeviceBuffer memory_;
  PathCounters counted_;
  std::vector<double> seconds_;
  AttentionOperations operations_;
  std::int64_t product_bytes_ = 0;  ///< of W_UK and W_UV
  BenchRow row_;
};

/// The rates of the instruction that attention uses, measured again and again, and its name.
class PeakRate {
 public:
  PeakRate(const BackendInfo& device, DType cache)
      : isa_(device.isa),
        rounded_(std::find(device.bf16_rows.begin(), device.bf16_rows.end(), cache) != device.bf16_rows.end()),
        threads_(device.threads) {}

  Status measure() {
    constexpr double kSeconds = 0.01;
    Result<std::vector<DotRate>> rates = measure_dot_rates(threads_, kSeconds, DotRates::kAll);
    if (!rates.ok()) return rates.error();
    const DotRate* rate = attention_rate(*rates, isa_, rounded_);
    if (rate == nullptr) return {};  // of a device without instruction sets
    instruction_ = rate->instruction;
    gops_.push_back(rate->gops);
    return {};
  }
  double gops() const { return median(gops_); }
  const std::string& instruction() const { return instruction_; }

 private:
  std::string isa_;
  bool rounded_;
  int threads_;
  std::string instruction_;
  std::vector<double> gops_;
};

/// The arms of one cell take turns; the read buffer passes before each sample and empties the caches.
Status measure_cell(const BenchRequest& request, const Bench& bench, int rows, int depth, const LatentCache& latent,
                    const std::optional<ExpandedCache>& expanded, ReadBandwidth& reading, std::vector<double>& roofs,
                    std::vector<Cell>& cells) {
  const std::size_t first = cells.size();
  const std::vector<AttentionArm> arms = arms_of(request.engine.path);
  for (const AttentionArm arm : arms) {
    Result<Cell> cell = Cell::open(bench, arm, rows, depth);
    if (!cell.ok()) return cell.error();
    cell->count_work(bench);
    if (const Result<double> warm = cell->sample(bench, latent, expanded); !warm.ok()) return warm.error();
    cell->begin();
    cells.push_back(std::move(*cell));
  }
  for (int round = 0; round < request.repetitions; ++round) {
    for (std::size_t i = 0; i < arms.size(); ++i) {
      Cell& cell = cells[first + (round % 2 == 0 ? i : arms.size() - 1 - i)];
      roofs.push_back(reading.pass());
      const Result<double> seconds = cell.sample(bench, latent, expanded);
      if (!seconds.ok()) return seconds.error();
      cell.add(*seconds);
    }
  }
  return {};
}

Status check_request(const BenchRequest& request, const BenchConfig& bench) {
  if (bench.config.attention != AttentionKind::kMla) {
    return fail(
        ErrorKind::kUnsupported,
        "[bench] attention of {}: family {} has grouped-query attention, which has one form: choose a model with "
        "latent attention",
        bench.name, bench.config.family);
  }
  if (request.repetitions < 1)
    return fail(ErrorKind::kInvalidInput, "[bench] {} repetitions, expected at least 1", request.repetitions);
  if (request.verify_rows.empty() || request.depths.empty() ||
      *std::min_element(request.verify_rows.begin(), request.verify_rows.end()) < 1) {
    return fail(ErrorKind::kInvalidInput, "[bench] attention without new rows, expected 1 or more");
  }
  return {};
}

BenchReport begin_report(const std::string& name, const Bench& bench) {
  const MlaGeometry& g = bench.config.geometry;
  const BackendInfo& info = bench.backend.info();
  BenchReport report;
  report.model = name;
  report.type = report.cache_type = type_word(bench.cache_dtype);
  report.device = info.name;
  report.isa = info.isa;
  report.processor = processor_name();
  report.threads = info.threads;
  report.layers = bench.config.layers;
  report.notes.push_back(
      fmt::format("one attention call of one layer: {} heads, r {}, p {}, n {}, v {}; random rows, caches cold",
                  g.heads, g.r, g.p, g.n, g.v));
  return report;
}

Result<BenchReport> measure_calls(const BenchRequest& request, const BenchProgress& progress) {
  const double load = load_average();
  const Result<BenchConfig> named = read_bench_config(request);
  if (!named.ok()) return named.error();
  if (Status sane = check_request(request, *named); !sane.ok()) return sane.error();
  const ModelConfig& config = named->config;
  const MlaGeometry& g = config.geometry;
  const FoundIsa isa = find_isa(this_machine(), {request.engine.isa, request.engine.device, request.engine.threads},
                                isa_source(request.engine.calibration, false));
  Result<std::unique_ptr<Backend>> opened = open_backend(
      {.device = request.engine.device, .isa = isa.isa, .threads = request.engine.threads, .compute = DType::kBf16});
  if (!opened.ok()) return opened.error();
  Backend& backend = **opened;
  const BackendInfo& info = backend.info();
  const Result<DType> cached =
      cached_type(request.engine.cache, info.activation == DType::kF64 ? DType::kF64 : DType::kBf16, "[bench]");
  if (!cached.ok()) return cached.error();
  const DType cache_dtype = *cached;
  const int most_depth = *std::max_element(request.depths.begin(), request.depths.end());
  const int most_rows = most_depth + *std::max_element(request.verify_rows.begin(), request.verify_rows.end());
  const RowFormat row = config.cache_row(cache_dtype);
  const bool expands = arms_of(request.engine.path).front() == AttentionArm::kExpanded;
  const std::int64_t row_bytes =
      (expands ? static_cast<std::int64_t>(expanded_row_bytes(config, cache_dtype)) : 0) + row.bytes();
  const Status room = check_memory(
      fmt::format("{}: one layer's {}latent cache of {} rows", named->name, expands ? "expanded and " : "", most_rows),
      row_bytes * most_rows, available_memory_bytes(), "use fewer rows or a smaller depth");
  if (!room.ok()) return room.error();
  Result<ModelWeights> weights = expansion_weights(g, DType::kBf16, request.seed);
  if (!weights.ok()) return weights.error();
  LatentCache latent(backend, 1, row, most_rows);
  if (progress) progress("filling the caches");
  if (Status filled = fill_with_random_rows(backend, latent, most_rows, request.seed); !filled.ok())
    return filled.error();
  std::optional<ExpandedCache> expanded;
  if (expands) {
    Result<ExpandedCache> filled = ExpandedCache::fill(backend, g, cache_dtype, most_rows, request.seed);
    if (!filled.ok()) return filled.error();
    expanded = std::move(*filled);
  }
  const std::size_t buffer = emptying_buffer_bytes();
  Result<ReadBandwidth> reading = ReadBandwidth::open(backend, buffer);
  if (!reading.ok()) return reading.error();

  const Bench bench{.backend = backend,
                    .config = config,
                    .scale = softmax_scale(config),
                    .weights = weights->layers.front().attention,
                    .cache_dtype = cache_dtype};
  std::vector<Cell> cells;
  std::vector<double> roofs;
  PeakRate peak(info, cache_dtype);
  for (const int depth : request.depths) {
    for (const int rows : request.verify_rows) {
      if (progress) progress(test_name("attn", rows, depth));
      if (Status measured = peak.measure(); !measured.ok()) return measured.error();
      const Status done = measure_cell(request, bench, rows, depth, latent, expanded, *reading, roofs, cells);
      if (!done.ok()) return done.error();
    }
  }
  BenchReport report = begin_report(named->name, bench);
  report.load_average = load;
  report.busy = is_busy(load, report.threads);
  report.warnings = isa.warnings;
  report.read_buffer_bytes = static_cast<std::int64_t>(buffer);
  report.read_gbytes_per_second = median(roofs);
  report.peak_gops = peak.gops();
  report.peak_instruction = peak.instruction();
  for (Cell& cell : cells) report.rows.push_back(cell.finish(report.read_gbytes_per_second, report.peak_gops));
  return report;
}

}  // namespace

Result<BenchReport> measure_attention(const BenchRequest& request, const BenchProgress& progress) {
  return reporting_no_memory([&] { return measure_calls(request, progress); });
}

}  // namespace latte
