#include "weights/quantise.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tensor/grouped.h"
#include "tensor/half.h"

namespace latte {
namespace {

/// A stored matrix and what it becomes.
struct Conversion {
  ConstMatRef from;
  ConstMatRef to;  ///< data follows when all sizes are known
  std::size_t offset = 0;
};

/// Lists the matrices of a model; a matrix met twice (a head that the MTP layer shares) is made once.
class ConversionList {
 public:
  void add(ConstMatRef& matrix, DType type) {
    if (matrix.empty() || is_grouped(matrix.dtype)) return;
    const auto [known, fresh] = index_.try_emplace({matrix.data, type}, conversions_.size());
    if (fresh) {
      conversions_.push_back(
          {.from = matrix, .to = {nullptr, type, matrix.rows, matrix.cols, matrix.cols}, .offset = bytes_});
      constexpr std::size_t kLine = 64;
      const auto size = static_cast<std::size_t>(matrix_bytes(type, matrix.rows, matrix.cols));
      bytes_ += (size + kLine - 1) / kLine * kLine;
    }
    uses_.push_back({&matrix, known->second});
  }
  void add(ExpertWeights& block, DType type) {
    add(block.gate, type);
    add(block.up, type);
    add(block.down, type);
  }
  void add(LayerWeights& layer, const QuantisePlan& plan) {
    for (ConstMatRef* m :
         {&layer.attention.q_proj, &layer.attention.q_a, &layer.attention.q_b, &layer.attention.kv_a,
          &layer.attention.o_proj, &layer.gqa.q_proj, &layer.gqa.k_proj, &layer.gqa.v_proj, &layer.gqa.o_proj})
      add(*m, plan.attention);
    add(layer.ffn.dense, plan.ffn);
    for (ExpertWeights& expert : layer.ffn.experts) add(expert, plan.ffn);
    add(layer.ffn.shared, plan.ffn);
  }

  std::size_t bytes() const { return bytes_; }
  std::vector<Conversion>& conversions() { return conversions_; }
  /// Gives every use its converted matrix.
  void put_back() const {
    for (const auto& [matrix, index] : uses_) *matrix = conversions_[index].to;
  }

 private:
  std::map<std::pair<const void*, DType>, std::size_t> index_;
  std::vector<Conversion> conversions_;
  std::vector<std::pair<ConstMatRef*, std::size_t>> uses_;
  std::size_t bytes_ = 0;
};

void read_row(ConstMatRef m, std::int64_t row, float* to) {
  if (m.dtype == DType::kF32) {
    std::copy_n(static_cast<const float*>(m.at(row, 0)), m.cols, to);
  } else {
    const auto* from = static_cast<const bf16*>(m.at(row, 0));
    for (std::int64_t k = 0; k < m.cols; ++k) to[k] = to_float(from[k]);
  }
}

void convert_panel(const Conversion& conversion, std::int64_t panel, std::byte* arena, std::vector<float>& rows) {
  const ConstMatRef& from = conversion.from;
  const std::int64_t first = panel * kPanelOutputs;
  const int outputs = static_cast<int>(std::min<std::int64_t>(kPanelOutputs, from.rows - first));
  rows.resize(static_cast<std::size_t>(outputs * from.cols));
  for (int n = 0; n < outputs; ++n) read_row(from, first + n, rows.data() + n * from.cols);
  quantise_panel(rows, from.cols, outputs, from.cols, conversion.to.dtype,
                 arena + conversion.offset + panel * panel_bytes(conversion.to.dtype, from.cols));
}

/// Whole pages inside the matrix: a mapped file's are read anew should somebody ask for them again.
void give_back_pages(ConstMatRef m) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(m.data) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(m.at(m.rows, 0)) / page * page;
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

Status quantise_weights(ModelWeights& weights, const QuantisePlan& plan, int threads,
                        const std::function<void(double)>& on_progress) {
  ConversionList list;
  list.add(weights.head, plan.head);
  for (LayerWeights& layer : weights.layers) list.add(layer, plan);
  for (MtpWeights& mtp : weights.mtp) {
    list.add(mtp.head, plan.head);
    list.add(mtp.eh_proj, plan.ffn);
    list.add(mtp.layer, plan);
  }
  if (list.conversions().empty()) return {};  // random weights are made in groups
  Result<WeightArena> arena = WeightArena::make(list.bytes());
  if (!arena.ok()) return arena.error();
  std::vector<Conversion>& conversions = list.conversions();
  std::vector<std::pair<std::size_t, std::int64_t>> panels;
  std::vector<std::atomic<std::int64_t>> left(conversions.size());
  for (std::size_t i = 0; i < conversions.size(); ++i) {
    conversions[i].to.data = arena->data() + conversions[i].offset;
    left[i] = panel_count(conversions[i].from.rows);
    for (std::int64_t panel = 0; panel < left[i]; ++panel) panels.emplace_back(i, panel);
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&](bool tells) {
    std::vector<float> rows;
    for (std::size_t at = next.fetch_add(1); at < panels.size(); at = next.fetch_add(1)) {
      const auto [index, panel] = panels[at];
      const Conversion& conversion = conversions[index];
      convert_panel(conversion, panel, arena->data(), rows);
      const bool embeds = conversion.from.data == weights.embed.data;
      if (left[index].fetch_sub(1) == 1 && !embeds && weights.checkpoint.is_mapped(conversion.from.data))
        give_back_pages(conversion.from);
      if (tells && on_progress) on_progress(static_cast<double>(at + 1) / static_cast<double>(panels.size()));
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int i = 1; i < threads; ++i) others.emplace_back(work, false);
    } catch (const std::system_error&) {  // no more threads to be had: those there are share the work
    }
    work(true);
  }
  list.put_back();
  LoadReport& report = weights.report;
  report.quantised_bytes = static_cast<std::int64_t>(list.bytes());
  report.bytes += report.quantised_bytes;
  for (const Conversion& conversion : conversions) {
    if (conversion.from.data != weights.embed.data)
      report.bytes -= matrix_bytes(conversion.from.dtype, conversion.from.rows, conversion.from.cols);
  }
  weights.made = std::move(*arena);
  return {};
}

}  // namespace latte
