// Matrix products by rows of x: weights from memory (matrices take turns, together far beyond any cache) and the same
// matrix again, beside what memory gives and what the dot instruction reaches in registers. One more arm is a block of
// experts. Cells take turns within a round. Machines change their speed under others' work: like the rates of
// registers, times are the least of all rounds, and the median stands beside them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "api/onednn_gemm.h"
#include "api/read_bandwidth.h"
#include "device/open_backend.h"
#include "measure.h"
#include "tensor/grouped.h"
#include "tensor/half.h"

namespace latte::bench {
namespace {

constexpr std::int64_t kOutputs = 4096, kInputs = 2048;
constexpr std::size_t kColdBytes = std::size_t{640} << 20;
constexpr std::array kTypes = {DType::kBf16, DType::kQ8, DType::kQ4};
constexpr std::array<std::int64_t, 8> kRows = {1, 2, 4, 8, 16, 48, 128, 512};
// The experts of DeepSeek-V2-Lite.
constexpr std::int64_t kHidden = 1408, kExperts = 64, kChosen = 6, kShared = 2;

/// Numbers that are the same in every run.
class Numbers {
 public:
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33);
  }

 private:
  std::uint64_t state_ = 1;
};

/// Matrices [outputs, inputs] one after the other: codes at random, one scale.
class Matrices {
 public:
  static Matrices make(Backend& backend, DType type, std::int64_t count, std::int64_t outputs, std::int64_t inputs) {
    Matrices made;
    made.type_ = type;
    made.outputs_ = outputs;
    made.inputs_ = inputs;
    made.count_ = count;
    made.bytes_ = static_cast<std::size_t>(matrix_bytes(type, outputs, inputs));
    made.memory_ = std::move(*backend.allocate(made.bytes_ * static_cast<std::size_t>(count)));
    auto* at = static_cast<std::byte*>(made.memory_.data());
    Numbers numbers;
    const bf16 scale = to_bf16(0.01f);
    const std::size_t block = is_grouped(type) ? static_cast<std::size_t>(block_bytes(type)) : 4096;
    for (std::size_t done = 0; done < made.bytes_; done += block) {
      for (std::size_t i = 0; i < block; i += 2) {
        const bool is_scale = is_grouped(type) && i < std::size_t{kBlockScaleBytes};
        const auto code = static_cast<std::uint16_t>(numbers.next());
        const bf16 value = to_bf16(static_cast<float>(code) * 0x1p-20f);
        std::memcpy(at + done + i,
                    is_scale           ? static_cast<const void*>(&scale)
                    : is_grouped(type) ? static_cast<const void*>(&code)
                                       : static_cast<const void*>(&value),
                    2);
      }
    }
    for (std::int64_t i = 1; i < count; ++i)
      std::memcpy(at + made.bytes_ * static_cast<std::size_t>(i), at, made.bytes_);
    return made;
  }
  ConstMatRef operator[](std::int64_t i) const {
    return {static_cast<const std::byte*>(memory_.data()) + bytes_ * static_cast<std::size_t>(i % count_), type_,
            outputs_, inputs_, inputs_};
  }
  std::int64_t count() const { return count_; }
  std::size_t bytes() const { return bytes_; }

 private:
  DeviceBuffer memory_;
  DType type_ = DType::kF32;
  std::int64_t outputs_ = 0, inputs_ = 0, count_ = 0;
  std::size_t bytes_ = 0;
};

/// Floats [rows, cols].
class Rows {
 public:
  Rows(Backend& backend, std::int64_t rows, std::int64_t cols)
      : memory_(std::move(*backend.allocate(static_cast<std::size_t>(rows * cols) * sizeof(float)))),
        ref_{memory_.data(), DType::kF32, rows, cols, cols} {
    Numbers numbers;
    std::vector<double> values(static_cast<std::size_t>(rows * cols));
    for (double& value : values) value = static_cast<double>(numbers.next()) * 0x1p-30 - 1;
    backend.upload(values, ref_);
  }
  MatRef first(std::int64_t rows) const { return ref_.rows_from(0, rows); }

 private:
  DeviceBuffer memory_;
  MatRef ref_;
};

StepClass class_of(std::int64_t rows) { return rows <= 8 ? StepClass::kDecode : StepClass::kPrompt; }

struct Cell {
  std::string name;
  double operations = 0, bytes = 0;
  std::function<void()> cold, warm;
  std::vector<double> cold_seconds = {}, warm_seconds = {};
};

void add_products(Backend& backend, const Matrices& w, DType type, const Rows& x, const Rows& y,
                  std::vector<Cell>& cells) {
  // One turn for all rows: a matrix is met again only after all others, though its last-level cache may be large.
  const auto turn = std::make_shared<std::int64_t>(0);
  for (const std::int64_t rows : kRows) {
    const auto run = [&backend, &w, &x, &y, rows](std::int64_t i) {
      const std::array product = {Projection{w[i], y.first(rows)}};
      backend.matmul({class_of(rows), x.first(rows), product});
    };
    cells.push_back({.name = fmt::format("{} | {}", dtype_name(type), rows),
                     .operations = 2.0 * static_cast<double>(rows * kOutputs * kInputs),
                     .bytes = static_cast<double>(w.bytes()),
                     .cold = [run, turn] { run((*turn)++); },
                     .warm = [run] { run(0); }});
  }
}

/// A block of experts of 512 rows that choose at random.
class Experts {
 public:
  static constexpr std::int64_t kStep = 512;

  Experts(Backend& backend, DType type)
      : backend_(backend),
        up_(Matrices::make(backend, type, 2 * kExperts, kHidden, kInputs)),
        down_(Matrices::make(backend, type, kExperts, kInputs, kHidden)),
        shared_up_(Matrices::make(backend, type, 2, kShared * kHidden, kInputs)),
        shared_down_(Matrices::make(backend, type, 1, kInputs, kShared * kHidden)),
        x_(backend, kStep, kInputs),
        y_(backend, kStep, kInputs),
        weights_(backend, kStep, kChosen),
        shared_{shared_up_[0], shared_up_[1], shared_down_[0]} {
    for (std::int64_t e = 0; e < kExperts; ++e) experts_.push_back({up_[2 * e], up_[2 * e + 1], down_[e]});
    Numbers numbers;
    for (std::int64_t row = 0; row < kStep; ++row) {
      const std::int64_t first = numbers.next() % kExperts;
      for (std::int64_t i = 0; i < kChosen; ++i) ids_.push_back(static_cast<std::int32_t>((first + 7 * i) % kExperts));
    }
  }
  void run() const {
    backend_.experts({.step_class = StepClass::kPrompt,
                      .x_LD = x_.first(kStep),
                      .experts = experts_,
                      .shared = &shared_,
                      .weights_Lk = weights_.first(kStep),
                      .ids_Lk = {ids_.data(), kStep, kChosen, kChosen},
                      .y_LD = y_.first(kStep)});
  }
  double operations() const { return 6.0 * static_cast<double>(kStep * (kChosen + kShared) * kHidden * kInputs); }
  double bytes() const {
    return static_cast<double>(up_.bytes() * 2 * kExperts + down_.bytes() * kExperts + shared_up_.bytes() * 2 +
                               shared_down_.bytes());
  }

 private:
  Backend& backend_;
  Matrices up_, down_, shared_up_, shared_down_;
  Rows x_, y_, weights_;
  ExpertWeights shared_;
  std::vector<ExpertWeights> experts_;
  std::vector<std::int32_t> ids_;
};

int run(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  auto opened =
      open_backend({.device = "cpu", .isa = argc > 2 ? argv[2] : "auto", .threads = threads, .compute = DType::kBf16});
  if (!opened.ok()) {
    fmt::print(stderr, "error: {}\n", opened.error().message);
    return 1;
  }
  Backend& backend = **opened;
  Result<ReadBandwidth> reading = ReadBandwidth::open(backend, std::size_t{256} << 20);
  if (!reading.ok()) {
    fmt::print(stderr, "error: {}\n", reading.error().message);
    return 1;
  }
  const Rows x(backend, kRows.back(), kInputs), y(backend, kRows.back(), kOutputs);
  std::vector<Matrices> weights;
  std::vector<std::unique_ptr<Experts>> experts;
  for (const DType type : kTypes) {
    const auto count = static_cast<std::int64_t>(kColdBytes) / matrix_bytes(type, kOutputs, kInputs);
    weights.push_back(Matrices::make(backend, type, count, kOutputs, kInputs));
    experts.push_back(std::make_unique<Experts>(backend, type));
  }
  std::vector<Cell> cells;
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    add_products(backend, weights[i], kTypes[i], x, y, cells);
    const Experts* const block = experts[i].get();
    cells.push_back({.name = fmt::format("{} | 512, experts", dtype_name(kTypes[i])),
                     .operations = block->operations(),
                     .bytes = block->bytes(),
                     .cold = [block] { block->run(); },
                     .warm = {}});
  }
  std::vector<double> roofs;
  for (int round = -1; round < rounds; ++round) {
    roofs.push_back(reading->pass());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Cell& cell = cells[round % 2 == 0 ? i : cells.size() - 1 - i];
      const double cold = seconds_of(cell.cold);
      if (round >= 0) cell.cold_seconds.push_back(cold);
      if (!cell.warm) continue;
      cell.warm();
      const double warm = seconds_of(cell.warm);
      if (round >= 0) cell.warm_seconds.push_back(warm);
    }
  }
  const double roof = *std::max_element(roofs.begin(), roofs.end());
  fmt::print(
      "Products with weights [{}, {}], and a block of {} experts of {} of which a row chooses {} beside {} shared.\n\n"
      "command: `bench_products {} {} {}`; machine: {}; reading {:.1f} GB/s at best, {:.1f} in the median\n\n",
      kOutputs, kInputs, kExperts, kHidden, kChosen, kShared, threads, backend.info().isa, rounds,
      machine_line(backend.info()), roof, median(roofs));
  if (const Result<std::vector<DotRate>> rates = measure_dot_rates(threads, 0.06, DotRates::kAll); rates.ok()) {
    fmt::print("In registers, GOP/s a core:");
    for (const DotRate& rate : *rates)
      fmt::print(" {} {} {:.0f};", rate.isa, dot_type_name(rate.type), rate.gops / threads);
    fmt::print("\n\n");
  }
  if (const OneDnnReport onednn = measure_onednn(threads, 0.3); onednn.installed) {
    fmt::print("oneDNN {}, products of 512 x 512 matrices, GOP/s a core:", onednn.version);
    for (const OneDnnRate& rate : onednn.gemm) fmt::print(" {} {:.0f};", rate.type, rate.gops / threads);
    fmt::print("\n\n");
  }
  fmt::print(
      "| weights | rows | ms, median | ms, least | GB/s of weights | of reading | GOP/s a core | ms, weights in cache "
      "| "
      "GOP/s a core |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Cell& cell : cells) {
    const double cold = *std::min_element(cell.cold_seconds.begin(), cell.cold_seconds.end());
    const auto gops = [&](double seconds) { return cell.operations / seconds * 1e-9 / threads; };
    fmt::print("| {} | {:.3f} | {:.3f} | {:.2f} | {:.0f}% | {:.0f} |", cell.name, median(cell.cold_seconds) * 1e3,
               cold * 1e3, cell.bytes / cold * 1e-9, cell.bytes / cold * 1e-7 / roof, gops(cold));
    if (cell.warm) {
      const double warm = *std::min_element(cell.warm_seconds.begin(), cell.warm_seconds.end());
      fmt::print(" {:.3f} | {:.0f} |\n", warm * 1e3, gops(warm));
    } else {
      fmt::print(" | |\n");
    }
  }
  return 0;
}

}  // namespace
}  // namespace latte::bench

int main(int argc, char** argv) { return latte::bench::run(argc, argv); }
