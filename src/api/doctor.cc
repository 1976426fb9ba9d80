#include "latte/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "api/machine.h"
#include "api/model_lookup.h"
#include "api/out_of_memory.h"
#include "api/read_bandwidth.h"
#include "base/fail.h"
#include "device/open_backend.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The best of several runs, for about `budget` seconds.
double best_seconds(double budget, const std::function<void()>& work) {
  double best = seconds_of(work), spent = best;
  while (spent < budget) {
    const double seconds = seconds_of(work);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

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

std::string why_unused(const InstructionSetReport& isa, const std::string& used) {
  if (!isa.in_processor) return "the processor lacks it";
  if (!isa.in_build) return "this build has no code for it";
  if (isa.refused) return "the system does not let this process use it (arch_prctl)";
  return fmt::format("{} is in use", used);
}

void list_missing(DoctorReport& report) {
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
  const BackendOptions asked{.device = "cpu", .isa = options.isa, .threads = options.threads, .compute = DType::kBf16};
  Result<std::unique_ptr<Backend>> backend = open_backend(asked);
  if (!backend.ok()) return backend.error();
  DoctorReport report;
  report.processor = processor_name();
  report.isa_used = (*backend)->info().isa;
  report.threads = (*backend)->info().threads;
  report.logical_cores = static_cast<int>(std::thread::hardware_concurrency());
  report.load_average = load_average();
  report.busy = report.load_average > report.threads;
  report.memory_bytes = memory_bytes();
  for (const InstructionSetReport& isa : instruction_set_reports()) {
    const bool used = isa.name == report.isa_used;
    report.isas.push_back({.name = isa.name,
                           .in_processor = isa.in_processor,
                           .in_build = isa.in_build,
                           .used = used,
                           .reason = used ? "" : why_unused(isa, report.isa_used)});
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
