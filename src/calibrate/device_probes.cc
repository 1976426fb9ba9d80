#include "calibrate/device_probes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/contract.h"
#include "base/stopwatch.h"
#include "plan/step_plan.h"
#include "tensor/half.h"

namespace latte {
namespace {

constexpr std::int64_t kBlockElements = 4096;  // memory is filled with one block again and again
constexpr int kPageRows = 128;                 // as the latent cache has them

template <class Element, class Convert>
std::vector<std::byte> block_of(Convert convert) {
  std::vector<std::byte> bytes(kBlockElements * sizeof(Element));
  for (std::size_t i = 0; i < static_cast<std::size_t>(kBlockElements); ++i) {
    const Element element = convert(static_cast<float>(i * 37 % 101) / 50 - 1);
    std::memcpy(bytes.data() + i * sizeof(Element), &element, sizeof(Element));
  }
  return bytes;
}

std::vector<std::byte> block_of(DType dtype) {
  if (dtype == DType::kF64) return block_of<double>([](float value) { return static_cast<double>(value); });
  if (dtype == DType::kBf16) return block_of<bf16>([](float value) { return to_bf16(value); });
  if (dtype == DType::kF16) return block_of<f16>([](float value) { return to_f16(value); });
  expects(dtype == DType::kF32, "probes are of floats");
  return block_of<float>([](float value) { return value; });
}

/// Device memory of numbers between -1 and 1.
class Filled {
 public:
  Status fit(Backend& backend, std::int64_t elements, DType dtype) {
    const std::int64_t blocks = (elements + kBlockElements - 1) / kBlockElements;
    const auto bytes = static_cast<std::size_t>(blocks * kBlockElements) * dtype_bytes(dtype);
    if (bytes <= memory_.bytes()) return {};
    memory_ = {};
    Result<DeviceBuffer> memory = backend.allocate(bytes);
    if (!memory.ok()) return memory.error();
    memory_ = std::move(*memory);
    void* const page = memory_.data();
    const KeyRows rows{.pages = &page,
                       .page_rows = static_cast<int>(blocks),
                       .row_stride = kBlockElements,
                       .rows = static_cast<int>(blocks),
                       .dtype = dtype};
    const std::vector<std::byte> block = block_of(dtype);
    for (int row = 0; row < rows.rows; ++row) backend.write_rows(block, rows, row, row + 1, kBlockElements);
    return {};
  }
  void* data() const { return memory_.data(); }

 private:
  DeviceBuffer memory_;
};

/// W_UK and W_UV of the heads, as a kv_b_proj holds them.
std::pair<ConstStackRef, ConstStackRef> expansion_stacks(const void* weights, DType dtype, const MlaGeometry& g,
                                                         int heads) {
  const std::int64_t stack = std::int64_t{g.expanded_width()} * g.r;
  const auto* values =
      static_cast<const std::byte*>(weights) + static_cast<std::size_t>(g.n) * g.r * dtype_bytes(dtype);
  return {{weights, dtype, heads, g.n, g.r, stack, g.r}, {values, dtype, heads, g.v, g.r, stack, g.r}};
}

KeyRows latent_rows(const std::vector<void*>& pages, DType dtype, const MlaGeometry& g, int rows) {
  return {.pages = pages.data(), .page_rows = kPageRows, .row_stride = g.latent_width(), .rows = rows, .dtype = dtype};
}

}  // namespace

struct DeviceProbes::Memory {
  Filled weights;          ///< [H, n + v, r]
  Filled latent;           ///< [T, r + p] in pages
  Filled queries, packed;  ///< [L * H, n + p], [L * H, r + p]
  Filled context, out;     ///< [L * H, r], [L * H, v]
  Filled keys, values;     ///< [H * 256, n + p], [H * 256, v]
  Filled partial_o, partial_sums;
  std::vector<void*> pages;
  StepPlan plan;
  std::vector<KvChunk> chunks;
  int slots = 0;
};

DeviceProbes::DeviceProbes(Backend& backend, const MlaGeometry& geometry, ProbeTypes types)
    : backend_(backend), geometry_(geometry), types_(types), memory_(std::make_unique<Memory>()) {}
DeviceProbes::~DeviceProbes() = default;

/// Memory of every matrix that the probe touches, and the division of its keys.
Status DeviceProbes::make_room(const Probe& probe) {
  const MlaGeometry& g = geometry_;
  const DType activation = backend_.info().activation;
  const std::int64_t heads = probe.heads, packed = heads * std::max(1, probe.rows);
  Memory& m = *memory_;
  m.chunks.clear();
  m.slots = 1;
  const bool absorbed = probe.part == Part::kAbsorbedCore;
  if (absorbed) {
    // The division that the whole model's step has.
    plan_step(g, probe.keys - probe.rows, probe.rows, Role::kPrompt, MlaPath::kAbsorbed, m.plan);
    const AttendCall& call = m.plan.calls.front();
    m.slots = call.slots;
    m.chunks.assign(m.plan.chunks.begin() + call.first_chunk,
                    m.plan.chunks.begin() + call.first_chunk + call.chunk_count);
  } else if (probe.part == Part::kOrdinaryCore) {
    m.chunks.push_back({.sequence = 0, .begin = 0, .end = probe.keys, .slot = 0, .opens_slot = true});
  }

  const auto fit = [&](Filled& memory, std::int64_t elements, DType dtype) {
    return memory.fit(backend_, elements, dtype);
  };
  const std::int64_t results = packed * m.slots;
  const std::pair<Filled*, std::int64_t> needed[] = {
      {&m.queries, probe.part == Part::kFold || probe.part == Part::kOrdinaryCore ? packed * g.key_width() : 0},
      {&m.packed, probe.part == Part::kFold || absorbed ? packed * g.latent_width() : 0},
      {&m.context, probe.part == Part::kFold || absorbed ? packed * g.r : 0},
      {&m.out, probe.part == Part::kFold || probe.part == Part::kOrdinaryCore ? packed * g.v : 0},
      {&m.keys,
       probe.part == Part::kExpansion || probe.part == Part::kOrdinaryCore ? heads * probe.keys * g.key_width() : 0},
      {&m.values, probe.part == Part::kExpansion || probe.part == Part::kOrdinaryCore ? heads * probe.keys * g.v : 0},
      {&m.partial_o, absorbed                            ? results * g.r
                     : probe.part == Part::kOrdinaryCore ? results * g.v
                                                         : 0},
      {&m.partial_sums, results}};
  for (const auto& [memory, elements] : needed) {
    if (Status room = fit(*memory, elements, activation); !room.ok()) return room;
  }
  if (probe.part == Part::kFold || probe.part == Part::kExpansion) {
    if (Status room = fit(m.weights, heads * g.expanded_width() * g.r, types_.weights); !room.ok()) return room;
  }
  if (absorbed || probe.part == Part::kExpansion) {
    const int pages = (probe.keys + kPageRows - 1) / kPageRows;
    if (Status room = fit(m.latent, std::int64_t{pages} * kPageRows * g.latent_width(), types_.cache); !room.ok())
      return room;
    m.pages.clear();
    const std::size_t page_bytes =
        std::size_t{kPageRows} * static_cast<std::size_t>(g.latent_width()) * dtype_bytes(types_.cache);
    for (int page = 0; page < pages; ++page)
      m.pages.push_back(static_cast<std::byte*>(m.latent.data()) + static_cast<std::size_t>(page) * page_bytes);
  }
  return {};
}

void DeviceProbes::fold(const Probe& probe) {
  const MlaGeometry& g = geometry_;
  const DType activation = backend_.info().activation;
  const std::int64_t packed = std::int64_t{probe.heads} * probe.rows;
  const auto [w_uk, w_uv] = expansion_stacks(memory_->weights.data(), types_.weights, g, probe.heads);
  const MatRef queries{memory_->queries.data(), activation, packed, g.key_width(), g.key_width()};
  const MatRef folded{memory_->packed.data(), activation, packed, g.latent_width(), g.latent_width()};
  const MatRef context{memory_->context.data(), activation, packed, g.r, g.r};
  const MatRef out{memory_->out.data(), activation, packed, g.v, g.v};
  backend_.head_matmul({StepClass::kPrompt, queries.cols_from(0, g.n), w_uk, HeadSum::kRows, folded.cols_from(0, g.r)});
  if (g.p > 0) backend_.copy(queries.cols_from(g.n, g.p), folded.cols_from(g.r, g.p));
  backend_.head_matmul({StepClass::kPrompt, context, w_uv, HeadSum::kCols, out});
}

void DeviceProbes::absorbed_core(const Probe& probe) {
  const MlaGeometry& g = geometry_;
  const DType activation = backend_.info().activation;
  const std::int64_t packed = std::int64_t{probe.heads} * probe.rows;
  const KeyRows latent = latent_rows(memory_->pages, types_.cache, g, probe.keys);
  const AttendSequence sequence{
      .q_WK = {memory_->packed.data(), activation, packed, g.latent_width(), g.latent_width()},
      .keys = latent,
      .values = latent,
      .first_query_pos = probe.keys - probe.rows};
  const Partials partials{.o = memory_->partial_o.data(),
                          .log2_sums = memory_->partial_sums.data(),
                          .dtype = activation,
                          .slots = memory_->slots,
                          .lanes = 1,
                          .rows = packed,
                          .width = g.r};
  backend_.attend_partial({.step_class = StepClass::kPrompt,
                           .sequences = {&sequence, 1},
                           .lanes = 1,
                           .rows_per_query = probe.heads,
                           .key_width = g.latent_width(),
                           .value_width = g.r,
                           .scale_log2 = 1 / std::sqrt(static_cast<double>(g.latent_width())),
                           .chunks = memory_->chunks,
                           .partials = partials});
  const MergeRange range{.slot_count = memory_->slots, .row_count = packed};
  const MatRef context{memory_->context.data(), activation, packed, g.r, g.r};
  backend_.merge_partials({partials, {&range, 1}, context, 0});
}

void DeviceProbes::expansion(const Probe& probe) {
  const MlaGeometry& g = geometry_;
  const DType activation = backend_.info().activation;
  const auto [w_uk, w_uv] = expansion_stacks(memory_->weights.data(), types_.weights, g, probe.heads);
  const KeyRows latent = latent_rows(memory_->pages, types_.cache, g, probe.keys);
  void* const key_page = memory_->keys.data();
  void* const value_page = memory_->values.data();
  backend_.expand_latent({latent, 0, probe.keys, w_uk, w_uv, g.p,
                          workspace_rows(&key_page, activation, probe.keys, g.key_width(), probe.keys),
                          workspace_rows(&value_page, activation, probe.keys, g.v, probe.keys)});
}

void DeviceProbes::ordinary_core(const Probe& probe) {
  const MlaGeometry& g = geometry_;
  const DType activation = backend_.info().activation;
  void* const key_page = memory_->keys.data();
  void* const value_page = memory_->values.data();
  const std::int64_t width = std::int64_t{probe.heads} * g.key_width();
  const AttendSequence sequence{.q_WK = {memory_->queries.data(), activation, probe.rows, g.key_width(), width},
                                .q_lane_stride = g.key_width(),
                                .keys = workspace_rows(&key_page, activation, probe.keys, g.key_width(), probe.keys),
                                .values = workspace_rows(&value_page, activation, probe.keys, g.v, probe.keys),
                                .first_query_pos = probe.keys};
  const Partials partials{.o = memory_->partial_o.data(),
                          .log2_sums = memory_->partial_sums.data(),
                          .dtype = activation,
                          .slots = 1,
                          .lanes = probe.heads,
                          .rows = probe.rows,
                          .width = g.v};
  backend_.attend_partial({.step_class = StepClass::kPrompt,
                           .sequences = {&sequence, 1},
                           .lanes = probe.heads,
                           .rows_per_query = 1,
                           .key_width = g.key_width(),
                           .value_width = g.v,
                           .scale_log2 = 1 / std::sqrt(static_cast<double>(g.key_width())),
                           .chunks = memory_->chunks,
                           .partials = partials});
}

Result<double> DeviceProbes::run(const Probe& probe) {
  if (Status room = make_room(probe); !room.ok()) return room.error();
  const Stopwatch clock;
  switch (probe.part) {
    case Part::kFold:
      fold(probe);
      break;
    case Part::kAbsorbedCore:
      absorbed_core(probe);
      break;
    case Part::kExpansion:
      expansion(probe);
      break;
    case Part::kOrdinaryCore:
      ordinary_core(probe);
      break;
  }
  if (Status done = backend_.synchronize(); !done.ok()) return done.error();
  return clock.seconds();
}

Result<CostProfile> calibrate(Backend& backend, const MlaGeometry& geometry, ProbeTypes types,
                              const MeasureLimits& limits) {
  DeviceProbes probes(backend, geometry, types);
  const Stopwatch clock;
  return measure_profile(
      geometry, backend.info().threads, [&](const Probe& probe) { return probes.run(probe); },
      [&] { return clock.seconds(); }, limits);
}

}  // namespace latte
