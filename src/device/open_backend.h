#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "latte/error.h"
#include "plan/dot_rate.h"
#include "tensor/dtype.h"

namespace latte {

/// Which device computes, and how.
struct BackendOptions {
  std::string device = "auto";  ///< "auto", "cpu" or "reference" (double precision, one slow loop after another)
  /// cpu: "scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"; "auto" by a table of processors
  std::string isa = "auto";
  int threads = 0;              ///< cpu: 0 is one per physical core available to the process
  DType compute = DType::kF32;  ///< cpu: kF32, or kBf16 where the processor multiplies bf16 pairs
};

/// An instruction set of the cpu device that latte knows of.
struct InstructionSetReport {
  std::string name;
  bool in_build = false;
  bool in_processor = false;
  bool refused = false;  ///< the processor has it, but the system does not let this process use it
};

/// All of them, narrowest first.
std::vector<InstructionSetReport> instruction_set_reports();

/// Names of those that can be used here, narrowest first; they live as long as the program.
std::vector<std::string_view> usable_instruction_sets();

/// Which dot instructions are measured: all, or those that an instruction set is chosen by (scalar is no choice).
enum class DotRates : std::uint8_t { kAll, kOfChoice };

/// The rates of the dot instructions of the sets that can be used here, narrowest first, on `threads` threads (0: the
/// physical cores), each measured for about `seconds`. Errors: an impossible thread count.
Result<std::vector<DotRate>> measure_dot_rates(int threads, double seconds, DotRates which);

/// Opens a device. Errors: an unknown name, one that this build lacks, or what the device itself refuses.
Result<std::unique_ptr<Backend>> open_backend(const BackendOptions& options);

}  // namespace latte
