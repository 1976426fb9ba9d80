#include "device/open_backend.h"

#include "base/fail.h"
#include "device/cpu/cpu_backend.h"
#include "device/cpu/dispatch.h"
#include "device/cpu/dot_rates.h"
#include "device/reference/reference_backend.h"

namespace latte {

std::vector<InstructionSetReport> instruction_set_reports() {
  std::vector<InstructionSetReport> reports;
  for (const IsaReport& isa : isa_reports()) reports.push_back({isa.name, isa.in_build, isa.in_processor, isa.refused});
  return reports;
}

std::vector<std::string_view> usable_instruction_sets() {
  std::vector<std::string_view> names;
  for (const KernelTable* kernels : usable_kernels()) names.push_back(kernels->isa);
  return names;
}

Result<std::vector<DotRate>> measure_dot_rates(int threads, double seconds, DotRates which) {
  std::vector<const KernelTable*> kernels = usable_kernels();
  if (which == DotRates::kOfChoice) std::erase(kernels, scalar_kernels());
  return dot_rates_of(kernels, threads, seconds);
}

Result<std::unique_ptr<Backend>> open_backend(const BackendOptions& options) {
  if (options.device == "reference") return make_reference_backend();
  if (options.device == "auto" || options.device == "cpu") {
    return CpuBackend::open({.isa = options.isa, .threads = options.threads, .compute = options.compute});
  }
  if (options.device == "cuda" || options.device == "mlx") {
    return fail(ErrorKind::kUnsupported,
                "device \"{}\" is known, but not in this build, expected auto, cpu or reference; pass one of those",
                options.device);
  }
  return fail(ErrorKind::kInvalidInput, "unknown device \"{}\", expected auto, cpu or reference; pass one of those",
              options.device);
}

}  // namespace latte
