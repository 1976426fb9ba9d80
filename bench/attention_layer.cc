// One attention layer of DeepSeek-V3 geometry: what a verify step of several rows costs over one row, both forms around
// the crossover with the regret of the formula, and the peak memory of a wide prompt step over a long cache.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "attention/mla_step.h"
#include "attention/path_counters.h"
#include "device/open_backend.h"
#include "kv/latent_cache.h"
#include "measure.h"
#include "plan/choose_form.h"
#include "tensor/half.h"

namespace latte::bench {
namespace {

constexpr MlaGeometry kGeometry = kDeepSeekV3;
constexpr int kHidden = 7168;
constexpr int kQueryRank = 1536;

// Random bf16 of about unit variance over the inner width.
class RandomWeights {
 public:
  ConstMatRef matrix(std::int64_t rows, std::int64_t cols) {
    std::vector<bf16>& values = store_.emplace_back(static_cast<std::size_t>(rows * cols));
    const float scale = 1.7f / std::sqrt(static_cast<float>(cols));
    for (bf16& value : values) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      value = to_bf16((static_cast<float>(state_ >> 40) * 0x1p-23f - 1) * scale);
    }
    return {values.data(), DType::kBf16, rows, cols, cols};
  }
  ConstMatRef ones(std::int64_t cols) {
    std::vector<float>& values = ones_.emplace_back(static_cast<std::size_t>(cols), 1.0f);
    return {values.data(), DType::kF32, 1, cols, cols};
  }

 private:
  std::vector<std::vector<bf16>> store_;
  std::vector<std::vector<float>> ones_;
  std::uint64_t state_ = 1;
};

class Layer {
 public:
  explicit Layer(Backend& backend) : backend_(backend) {
    const MlaGeometry& g = kGeometry;
    weights_.q_a = random_.matrix(kQueryRank, kHidden);
    weights_.q_a_norm = random_.ones(kQueryRank);
    weights_.q_b = random_.matrix(g.heads * g.key_width(), kQueryRank);
    weights_.kv_a = random_.matrix(g.latent_width(), kHidden);
    weights_.kv_a_norm = random_.ones(g.r);
    const ConstMatRef kv_b = random_.matrix(g.heads * g.expanded_width(), g.r);
    const std::int64_t stack = std::int64_t{g.expanded_width()} * g.r;
    weights_.w_uk = {kv_b.data, kv_b.dtype, g.heads, g.n, g.r, stack, g.r};
    weights_.w_uv = {kv_b.at(g.n, 0), kv_b.dtype, g.heads, g.v, g.r, stack, g.r};
    weights_.o_proj = random_.matrix(kHidden, g.heads * g.v);
  }

  // Seconds of one step of `rows` rows that ends at `cached` rows.
  double step(int rows, int cached, MlaPath path, Role role, PathCounters& paths) {
    LatentCache& cache = filled(cached);
    StepPlan plan;
    plan_step(kGeometry, cached - rows, rows, role, path, plan);
    BufferCarver size(nullptr);
    carve(size, plan);
    if (size.used() > memory_.bytes()) memory_ = std::move(*backend_.allocate(size.used()));
    BufferCarver carver(memory_.data());
    const Buffers b = carve(carver, plan);
    fill(b.x, 0.3f), fill(b.residual, 0.0f), fill(b.cos, 1.0f), fill(b.sin, 0.0f);
    paths.count(plan.form, rows);
    return seconds_of([&] {
      mla_step({.backend = backend_,
                .plan = plan,
                .weights = weights_,
                .softmax_scale = 0.1,
                .cos_Lp = b.cos,
                .sin_Lp = b.sin,
                .latent = cache.layer_rows(0, cached),
                .buffers = b.attention,
                .x_LD = b.x,
                .residual_LD = b.residual});
    });
  }

  std::size_t step_bytes() const { return memory_.bytes(); }

  LatentCache& filled(int rows) {
    if (cache_ == nullptr || cache_->capacity() < rows) {
      cache_ = std::make_unique<LatentCache>(backend_, 1, RowFormat{kGeometry.latent_width(), DType::kBf16}, rows);
      (void)cache_->reserve(rows).ok();
      std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * kGeometry.latent_width() * 2);
      const ConstMatRef random = random_.matrix(1024, kGeometry.latent_width());
      for (std::size_t at = 0; at < bytes.size(); at += 1024u * kGeometry.latent_width() * 2) {
        std::memcpy(bytes.data() + at, random.data,
                    std::min<std::size_t>(bytes.size() - at, 1024u * kGeometry.latent_width() * 2));
      }
      backend_.write_rows(bytes, cache_->layer_rows(0, rows), 0, rows, kGeometry.latent_width());
    }
    return *cache_;
  }

 private:
  struct Buffers {
    AttentionBuffers attention;
    MatRef x, residual, cos, sin;
  };

  Buffers carve(BufferCarver& carver, const StepPlan& plan) const {
    const DType activation = backend_.info().activation;
    Buffers b;
    b.attention = AttentionBuffers::carve(carver, plan, kQueryRank, activation);
    b.x = carver.take(plan.new_rows, kHidden, activation);
    b.residual = carver.take(plan.new_rows, kHidden, activation);
    b.cos = carver.take(plan.new_rows, kGeometry.p / 2, activation);
    b.sin = carver.take(plan.new_rows, kGeometry.p / 2, activation);
    return b;
  }

  void fill(MatRef m, float value) {
    auto* data = static_cast<float*>(m.data);
    for (std::int64_t i = 0; i < m.rows * m.cols; ++i)
      data[i] = value == 0.3f ? value * static_cast<float>((i * 37) % 101 - 50) / 50 : value;
  }

  Backend& backend_;
  RandomWeights random_;
  MlaWeights weights_;
  std::unique_ptr<LatentCache> cache_;
  DeviceBuffer memory_;
};

void verify_rows(Layer& layer, PathCounters& paths) {
  fmt::print(
      "## A verify step of L rows over one row (generated rows, absorbed)\n\n| T | 1 row ms | 2 rows | 4 rows | 8 rows "
      "|\n|---|---|---|---|---|\n");
  for (const int cached : {1024, 4096, 16384}) {
    std::vector<double> times[4];
    const int widths[4] = {1, 2, 4, 8};
    for (int round = 0; round < (cached > 8192 ? 5 : 9); ++round) {
      for (int i = 0; i < 4; ++i)
        times[i].push_back(layer.step(widths[i], cached, MlaPath::kAuto, Role::kGenerated, paths));
    }
    const double one = median(times[0]);
    fmt::print("| {} | {:.1f} | {:.2f}x | {:.2f}x | {:.2f}x |\n", cached, one * 1e3, median(times[1]) / one,
               median(times[2]) / one, median(times[3]) / one);
  }
}

void crossover(Layer& layer, PathCounters& paths) {
  fmt::print(
      "\n## Both forms around the crossover (prompt rows)\n\nregret: time of the form that the formula chooses over "
      "the better form.\n\n");
  fmt::print("| T | L | absorbed ms | materialised ms | formula | regret |\n|---|---|---|---|---|---|\n");
  double worst = 1;
  for (const int cached : {1024, 4096, 16384}) {
    const std::int64_t most = *max_absorbed_rows(kGeometry, cached);
    for (const double share : {0.25, 0.5, 1.0, 1.5}) {
      if (cached > 8192 && share > 1.0) continue;
      const int rows = static_cast<int>(static_cast<double>(most) * share);
      std::vector<double> absorbed, materialised;
      for (int round = 0; round < (cached > 2048 ? 1 : 3); ++round) {
        absorbed.push_back(layer.step(rows, cached, MlaPath::kAbsorbed, Role::kPrompt, paths));
        materialised.push_back(layer.step(rows, cached, MlaPath::kMaterialised, Role::kPrompt, paths));
      }
      const MlaForm chosen = choose_form(kGeometry, {rows, cached});
      const double a = median(absorbed), m = median(materialised);
      const double regret = (chosen == MlaForm::kAbsorbed ? a : m) / std::min(a, m);
      worst = std::max(worst, regret);
      fmt::print("| {} | {} | {:.0f} | {:.0f} | {} | {:.2f} |\n", cached, rows, a * 1e3, m * 1e3, form_name(chosen),
                 regret);
      std::fflush(stdout);
    }
  }
  fmt::print("\nworst regret {:.2f}\n", worst);
}

void wide_step_memory(Layer& layer, PathCounters& paths) {
  constexpr int kRows = 512, kCached = 32768;
  layer.filled(kCached);
  reset_peak();
  const std::size_t before = resident_bytes();
  const double seconds = layer.step(kRows, kCached, MlaPath::kAuto, Role::kPrompt, paths);
  const std::size_t full = std::size_t{kCached} * kGeometry.heads * (kGeometry.key_width() + kGeometry.v) * 2;
  fmt::print(
      "\n## Peak memory of one step of {} rows at T = {}\n\n| beyond weights and cache | workspace of the step | full "
      "expansion in bf16 | seconds |\n|---|---|---|---|\n",
      kRows, kCached);
  fmt::print("| {:.0f} MB | {:.0f} MB | {:.0f} MB | {:.1f} |\n", static_cast<double>(peak_bytes() - before) / 1e6,
             static_cast<double>(layer.step_bytes()) / 1e6, static_cast<double>(full) / 1e6, seconds);
}

int run(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const auto backend =
      open_backend({.device = "cpu", .isa = argc > 2 ? argv[2] : "auto", .threads = threads, .compute = DType::kBf16});
  if (!backend.ok()) {
    fmt::print(stderr, "error: {}\n", backend.error().message);
    return 1;
  }
  PathCounters paths;
  fmt::print(
      "# One attention layer of DeepSeek-V3 geometry on the CPU\n\n128 heads, r 512, p 64, n 128, v 128, D 7168, q "
      "rank 1536, bf16 weights and cache, random.\n\ncommand: `bench_attention_layer {}`; machine: {}\n\n",
      threads, machine_line((*backend)->info()));
  {  // its own layer, so that what the other tables allocate does not hide the peak
    Layer layer(**backend);
    wide_step_memory(layer, paths);
  }
  Layer layer(**backend);
  verify_rows(layer, paths);
  crossover(layer, paths);
  fmt::print("\npaths: absorbed {} steps, {} rows; materialised {} steps, {} rows\n", paths.absorbed_steps,
             paths.absorbed_rows, paths.materialised_steps, paths.materialised_rows);
  return 0;
}

}  // namespace
}  // namespace latte::bench

int main(int argc, char** argv) { return latte::bench::run(argc, argv); }
