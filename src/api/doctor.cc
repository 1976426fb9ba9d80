#include "latte/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "api/best_seconds.h"
#include "api/machine.h"
#include "api/model_lookup.h"
#include "api/onednn_gemm.h"
#include "api/out_of_memory.h"
#include "api/read_bandwidth.h"
#include "base/fail.h"
#include "decode/isa_choice.h"
#include "device/open_backend.h"

namespace latte {
namespace {

constexpr double kSecondsOfARate = 0.06;
constexpr double kSecondsOfAGemm = 0.1;

/// Reads a buffer far beyond any cache.
Result<double> measure_reading(Backend& backend) {
  Result<ReadBandwidth> reading = ReadBandwidth::open(backend, std::size_t{256} << 20);
  if (!reading.ok()) return reading.error();
  return reading->best_of(0.3);
}

/// Products of a prompt step's shape.
Result<double> measure_products(Backend& backend, DType weights) {
  constexpr std::int64_t kRows = 128, kWidth = 1024;
  std::vector<std::byte> stored(static_cast<std::size_t>(kWidth * kWidth) * dtype_bytes(weights));
  const std::size_t floats = static_cast<std::size_t>(kRows * kWidth);
  const std::size_t bytes = floats * dtype_bytes(backend.info().activation);
  Result<DeviceBuffer> x = backend.allocate(bytes), y = backend.allocate(bytes);
  if (!x.ok()) return x.error();
  if (!y.ok()) return y.error();
  const DType activation = backend.info().activation;
  const MatRef x_LK{x->data(), activation, kRows, kWidth, kWidth}, y_LN{y->data(), activation, kRows, kWidth, kWidth};
  backend.upload(std::vector<double>(floats, 0.5), x_LK);
  const std::array product = {Projection{ConstMatRef{stored.data(), weights, kWidth, kWidth, kWidth}, y_LN}};
  const double seconds = best_seconds(0.25, [&] { backend.matmul({StepClass::kPrompt, x_LK, product}); });
  return 2.0 * static_cast<double>(kRows * kWidth * kWidth) / seconds * 1e-9;
}

std::string why_unused(const InstructionSetReport& isa, const std::string& used, bool passed_over) {
  if (!isa.in_processor) return "the processor lacks it";
  if (!isa.in_build) return "this build has no code for it";
  if (isa.refused) return "the system does not let this process use it (arch_prctl)";
  if (passed_over) return fmt::format("its dot instruction is slower than what {} does instead", used);
  return fmt::format("{} is in use", used);
}

/// Rates of the instructions over registers, beside which products are judged.
Status add_rates(DoctorReport& report) {
  const Result<std::vector<DotRate>> rates = measure_dot_rates(report.threads, kSecondsOfARate, DotRates::kAll);
  if (!rates.ok()) return rates.error();
  for (const DotRate& rate : *rates) {
    report.rates.push_back({.isa = std::string(rate.isa),
                            .type = std::string(dot_type_name(rate.type)),
                            .instruction = std::string(rate.instruction),
                            .gops = rate.gops,
                            .gops_per_core = rate.gops / report.threads});
  }
  report.onednn = measure_onednn(report.threads, kSecondsOfAGemm);
  return {};
}

void list_missing(DoctorReport& report) {
  if (!report.onednn.installed)
    report.missing.push_back(
        {"oneDNN, optional", "apt install libdnnl-dev, and its products are measured beside those of latte"});
  if (report.models.empty())
    report.missing.push_back({"embedded models", "run ./quickstart or tools/unpack_models.sh, or set LATTE_MODELS"});
  if (!huge_pages_possible()) {
    report.missing.push_back(
        {"huge pages for weights", "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"});
  }
  for (const GpuState& gpu : report.gpus) {
    if (gpu.driver.empty()) report.missing.push_back({"a driver for " + gpu.name, "install NVIDIA's driver"});
  }
  if (!report.gpus.empty()) {
    report.missing.push_back({"the cuda device", "this version of latte has none: models run on the processor"});
  }
  for (const IsaState& isa : report.isas) {
    if (isa.in_processor && !isa.in_build) {
      report.missing.push_back(
          {fmt::format("code for {}", isa.name), "this version of latte has none; " + report.isa_used + " serves"});
    }
  }
}

Result<DoctorReport> examine(const DoctorOptions& options) {
  const FoundIsa isa =
      find_isa(this_machine(), {.isa = options.isa, .device = "cpu", .threads = options.threads}, IsaSource::kStored);
  const BackendOptions asked{.device = "cpu", .isa = isa.isa, .threads = options.threads, .compute = DType::kBf16};
  Result<std::unique_ptr<Backend>> backend = open_backend(asked);
  if (!backend.ok()) return backend.error();
  DoctorReport report;
  report.processor = processor_name();
  report.isa_used = (*backend)->info().isa;
  report.isa_chosen_by = isa.source;
  report.threads = (*backend)->info().threads;
  report.logical_cores = static_cast<int>(std::thread::hardware_concurrency());
  report.load_average = load_average();
  report.busy = is_busy(report.load_average, report.threads);
  report.memory_bytes = memory_bytes();
  for (const InstructionSetReport& set : instruction_set_reports()) {
    const bool used = set.name == report.isa_used;
    const bool wider =
        std::any_of(report.isas.begin(), report.isas.end(), [](const IsaState& narrower) { return narrower.used; });
    report.isas.push_back({.name = set.name,
                           .in_processor = set.in_processor,
                           .in_build = set.in_build,
                           .used = used,
                           .reason = used ? "" : why_unused(set, report.isa_used, wider && isa.source != "asked")});
  }
  const Result<double> reading = measure_reading(**backend);
  if (!reading.ok()) return reading.error();
  report.read_gbytes_per_second = *reading;
  for (const DType type : {DType::kF32, DType::kBf16}) {
    const Result<double> rate = measure_products(**backend, type);
    if (!rate.ok()) return rate.error();
    const bool bf16 = type == DType::kBf16 && (*backend)->info().products == DType::kBf16;
    report.matmul.push_back(
        {.type = type == DType::kF32 ? "f32" : "bf16", .compute = bf16 ? "bf16" : "f32", .gflops = *rate});
  }
  if (Status measured = add_rates(report); !measured.ok()) return measured.error();
  report.gpus = find_gpus();
  report.models = embedded_models();
  list_missing(report);
  return report;
}

}  // namespace

Result<DoctorReport> examine_machine(const DoctorOptions& options) {
  return reporting_no_memory([&] { return examine(options); });
}

}  // namespace latte
