#include "api/form_timer.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "api/synthetic_cache.h"
#include "attention/forms.h"
#include "base/stopwatch.h"
#include "kv/latent_cache.h"
#include "plan/choose_form.h"
#include "weights/random_weights.h"

namespace latte {
namespace {

constexpr int kMostTurns = 5;
constexpr int kPackedRows = 512;  // of a slice: enough for whole groups on every thread
constexpr int kMostCached = 1 << 20;
constexpr std::uint64_t kSeed = 1;

}  // namespace

Result<ModelWeights> expansion_weights(const MlaGeometry& geometry, DType dtype, std::uint64_t seed) {
  WeightSpec spec;
  spec.hidden = spec.vocab = spec.intermediate = spec.q_lora_rank = 1;
  spec.geometry = geometry;
  spec.layers = {FfnKind::kDense};
  return random_weights(spec, dtype, seed);
}

struct FormTimer::Memory {
  explicit Memory(LatentCache cache) : latent(std::move(cache)) {}

  LatentCache latent;
  ModelWeights weights;
  MlaWeights slice;
  DeviceBuffer buffer;
  StepPlan plan;
};

FormTimer::FormTimer(Backend& backend, const MlaGeometry& geometry, ProbeTypes types)
    : backend_(backend), geometry_(geometry), types_(types) {}
FormTimer::~FormTimer() = default;

FormSlices FormTimer::slices(int rows, int cached, double macs) const {
  const StepShape step{rows, cached, Role::kPrompt};
  const int threads = backend_.info().threads;
  const auto cut = [&](WideInt head_macs, int least) {
    const int wanted = static_cast<int>(std::min<double>(macs / static_cast<double>(head_macs), geometry_.heads));
    return std::min(geometry_.heads, (std::max(least, wanted) + threads - 1) / threads * threads);
  };
  StepPlan plan;
  plan_step(geometry_, cached - rows, rows, Role::kPrompt, MlaPath::kAbsorbed, plan);
  const int queries = plan.max_call_queries();
  return {.absorbed = cut(absorbed_macs(geometry_, step), std::max(threads, (kPackedRows + queries - 1) / queries)),
          .materialised = cut(materialised_macs(geometry_, step), 2 * threads)};
}

double FormTimer::expected_seconds(int rows, int cached, FormSlices heads, const CostProfile& profile) const {
  return (absorbed_us(profile, rows, cached) * heads.absorbed +
          materialised_us(profile, rows, cached) * heads.materialised) *
         1e-6 / geometry_.heads;
}

/// Seconds of one call of one form on a slice.
Result<double> FormTimer::turn(MlaPath form, int rows, int cached, int heads) {
  Memory& m = *memory_;
  const DType activation = backend_.info().activation;
  m.slice = m.weights.layers.front().attention;
  m.slice.w_uk.count = m.slice.w_uv.count = heads;
  // The calls are those of all heads, each with fewer packed rows.
  plan_step(geometry_, cached - rows, rows, Role::kPrompt, form, m.plan);
  m.plan.geometry.heads = heads;
  BufferCarver size(nullptr);
  AttentionBuffers::carve(size, m.plan, 0, activation);
  if (size.used() > m.buffer.bytes()) {
    m.buffer = {};
    Result<DeviceBuffer> memory = backend_.allocate(size.used());
    if (!memory.ok()) return memory.error();
    m.buffer = std::move(*memory);
  }
  BufferCarver carver(m.buffer.data());
  const AttentionBuffers buffers = AttentionBuffers::carve(carver, m.plan, 0, activation);
  std::vector<double> values(static_cast<std::size_t>(buffers.q_LHk.rows * buffers.q_LHk.cols));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 37 % 101) / 50 - 1;
  backend_.upload(values, buffers.q_LHk);
  const MlaStepArgs args{.backend = backend_,
                         .plan = m.plan,
                         .weights = m.slice,
                         .softmax_scale = 0.1,
                         .cos_Lp = {},
                         .sin_Lp = {},
                         .latent = m.latent.layer_rows(0, cached),
                         .buffers = buffers,
                         .x_LD = {},
                         .residual_LD = {}};
  const Stopwatch clock;
  form == MlaPath::kAbsorbed ? attend_absorbed(args) : attend_materialised(args);
  if (Status done = backend_.synchronize(); !done.ok()) return done.error();
  return clock.seconds();
}

Result<FormTimes> FormTimer::time(int rows, int cached, FormSlices heads, double seconds) {
  if (memory_ == nullptr) {
    Result<ModelWeights> weights = expansion_weights(geometry_, types_.weights, kSeed);
    if (!weights.ok()) return weights.error();
    memory_ = std::make_unique<Memory>(
        LatentCache(backend_, 1, {.width = geometry_.latent_width(), .dtype = types_.cache}, kMostCached));
    memory_->weights = std::move(*weights);
  }
  if (Status filled = fill_with_random_rows(backend_, memory_->latent, cached, kSeed); !filled.ok())
    return filled.error();
  constexpr double kNever = std::numeric_limits<double>::infinity();
  FormTimes least{kNever, kNever};
  double spent = 0;
  for (int i = 0; i < kMostTurns && (i == 0 || spent * (i + 1) / i <= seconds); ++i) {
    // Turn about, so that a machine which changes its speed favours neither form.
    for (const bool absorbed : {i % 2 == 0, i % 2 != 0}) {
      const int slice = absorbed ? heads.absorbed : heads.materialised;
      const Result<double> taken = turn(absorbed ? MlaPath::kAbsorbed : MlaPath::kMaterialised, rows, cached, slice);
      if (!taken.ok()) return taken.error();
      spent += *taken;
      double& of_form = absorbed ? least.absorbed_us : least.materialised_us;
      of_form = std::min(of_form, *taken * 1e6 * geometry_.heads / slice);
    }
  }
  return least;
}

}  // namespace latte
