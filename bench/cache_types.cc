// The absorbed attention core over cached rows of every type: what dequantising costs, and what fewer bytes bring. Arms
// take turns; every sample reads the next of several layers, so that rows come from memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numbers>

#include "attention/attention_buffers.h"
#include "device/open_backend.h"
#include "kv/latent_cache.h"
#include "measure.h"
#include "plan/step_plan.h"

namespace latte::bench {
namespace {

constexpr int kCached = 32768;
constexpr int kLayers = 6;
constexpr CodedPiece kLatent{512, 64};
constexpr std::array kTypes = {DType::kBf16, DType::kQ8, DType::kF16, DType::kF32};

MlaGeometry geometry(int heads) {
  MlaGeometry g = kDeepSeekV3;
  g.heads = heads;
  return g;
}

/// One call's plan and memory.
class Call {
 public:
  Call(Backend& backend, int heads, int queries) : backend_(backend), geometry_(geometry(heads)) {
    plan_step(geometry_, kCached - queries, queries, Role::kGenerated, MlaPath::kAbsorbed, plan_);
    BufferCarver size(nullptr);
    (void)AttentionBuffers::carve(size, plan_, 0, backend.info().activation);
    memory_ = std::move(*backend_.allocate(size.used()));
    BufferCarver carver(memory_.data());
    buffers_ = AttentionBuffers::carve(carver, plan_, 0, backend.info().activation);
    const MatRef q = buffers_.q_absorbed_Wl;
    std::vector<double> values(static_cast<std::size_t>(q.rows * q.cols));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 37 % 101) / 50 - 1;
    backend.upload(values, q);
  }

  /// Seconds of the core and its merge over one layer's rows.
  double seconds(const KeyRows& latent) {
    return seconds_of([&] {
      for (const AttendCall& call : plan_.calls) attend(call, latent);
    });
  }

 private:
  void attend(const AttendCall& call, const KeyRows& latent) {
    const std::int64_t rows = std::int64_t{call.queries.query_count} * geometry_.heads;
    const AttendSequence sequence{.q_WK = buffers_.q_absorbed_Wl.rows_from(0, rows),
                                  .keys = latent,
                                  .values = latent,
                                  .first_query_pos = plan_.rows_before + call.queries.first_query};
    const Partials partials{.o = buffers_.partial_o.data,
                            .log2_sums = buffers_.partial_sums.data,
                            .slots = call.slots,
                            .lanes = 1,
                            .rows = rows,
                            .width = geometry_.r};
    backend_.attend_partial({.step_class = plan_.step_class,
                             .sequences = {&sequence, 1},
                             .rows_per_query = geometry_.heads,
                             .key_width = geometry_.latent_width(),
                             .value_width = geometry_.r,
                             .scale_log2 = 0.05 * std::numbers::log2e,
                             .chunks = std::span(plan_.chunks).subspan(call.first_chunk, call.chunk_count),
                             .partials = partials});
    const MergeRange range{.first_slot = 0, .slot_count = call.slots, .first_row = 0, .row_count = rows};
    backend_.merge_partials({partials, {&range, 1}, buffers_.context_Wr.rows_from(0, rows), 0});
  }

  Backend& backend_;
  MlaGeometry geometry_;
  StepPlan plan_;
  DeviceBuffer memory_;
  AttentionBuffers buffers_;
};

/// Stores random rows, the same ones again and again.
std::unique_ptr<LatentCache> filled(Backend& backend, DType type) {
  constexpr int kRows = 256;
  const RowFormat row{.width = kLatent.width(), .dtype = type, .piece = kLatent};
  auto cache = std::make_unique<LatentCache>(backend, kLayers, row, kCached);
  if (!cache->reserve(kCached).ok()) return nullptr;
  std::vector<float> x(static_cast<std::size_t>(kRows * row.width));
  std::uint64_t state = 1;
  for (float& value : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(state >> 40) * 0x1p-23f - 1;
  }
  const ConstMatRef rows{x.data(), DType::kF32, kRows, row.width, row.width};
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int first = 0; first < kCached; first += kRows)
      backend.store_rows({rows, cache->layer_rows(layer, kCached), first, 0});
  }
  cache->append(kCached);
  return cache;
}

/// What one sample took: on the clock, and of the processor, which other programs do not lengthen by taking turns. What
/// other threads did reaches that clock a tick late: with more than one, believe the first.
struct Sample {
  double wall = 0, processor = 0;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median_of(const std::vector<Sample>& samples, double Sample::*part) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.*part);
  return median(values);
}

void measure(Backend& backend, const std::vector<std::unique_ptr<LatentCache>>& caches, int heads, int queries,
             int rounds) {
  Call call(backend, heads, queries);
  std::array<std::vector<Sample>, kTypes.size()> samples;
  int layer = 0;
  for (int round = -1; round < rounds; ++round, layer = (layer + 1) % kLayers) {
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
      const std::size_t arm = round % 2 == 0 ? i : kTypes.size() - 1 - i;
      const double before = processor_seconds();
      const double wall = call.seconds(caches[arm]->layer_rows(layer, kCached));
      if (round >= 0) samples[arm].push_back({wall, processor_seconds() - before});
    }
  }
  for (std::size_t arm = 0; arm < kTypes.size(); ++arm) {
    std::vector<double> ratios;  // within a round, where both arms met the same company
    for (std::size_t i = 0; i < samples[arm].size(); ++i)
      ratios.push_back(samples[arm][i].processor / samples[0][i].processor);
    const auto bytes = static_cast<double>(caches[arm]->row_bytes()) * kCached;
    const double processor = median_of(samples[arm], &Sample::processor);
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    fmt::print("| {} x {} = {} | {} | {:.1f} | {:.1f} | {:.2f} | {:.2f}x | {:.2f}x .. {:.2f}x |\n", heads, queries,
               heads * queries, dtype_name(kTypes[arm]), median_of(samples[arm], &Sample::wall) * 1e3, processor * 1e3,
               bytes / processor * 1e-9, median(ratios), *least, *most);
  }
}

int run(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 15;
  const auto opened =
      open_backend({.device = "cpu", .isa = argc > 2 ? argv[2] : "auto", .threads = threads, .compute = DType::kBf16});
  if (!opened.ok()) {
    fmt::print(stderr, "error: {}\n", opened.error().message);
    return 1;
  }
  Backend& backend = **opened;
  std::vector<std::unique_ptr<LatentCache>> caches;
  for (const DType type : kTypes) {
    caches.push_back(filled(backend, type));
    if (caches.back() == nullptr) {
      fmt::print(stderr, "error: no memory for {} layers of {} rows, expected room for them: stop other programs\n",
                 kLayers, kCached);
      return 1;
    }
  }
  fmt::print(
      "The absorbed core and its merge over {} cached rows of 512 + 64 columns, rows from memory.\n\ncommand: "
      "`bench_cache_types {} {} {}`; machine: {}\n\n| heads x new rows = packed | type | ms | processor ms | GB/s of "
      "processor time | of bf16, within a round | spread |\n|---|---|---|---|---|---|---|\n",
      kCached, threads, backend.info().isa, rounds, machine_line(backend.info()));
  for (const auto& [heads, queries] :
       {std::pair(1, 1), std::pair(4, 1), std::pair(16, 1), std::pair(16, 4), std::pair(16, 16)})
    measure(backend, caches, heads, queries, rounds);
  return 0;
}

}  // namespace
}  // namespace latte::bench

int main(int argc, char** argv) { return latte::bench::run(argc, argv); }
