#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "latte/error.h"
#include "tensor/dtype.h"

namespace latte {

/// Which device computes, and how.
struct BackendOptions {
  std::string device = "auto";  ///< "auto", "cpu" or "reference" (double precision, one slow loop after another)
  std::string isa = "auto";     ///< cpu: "auto", "scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"
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

/// Opens a device. Errors: an unknown name, one that this build lacks, or what the device itself refuses.
Result<std::unique_ptr<Backend>> open_backend(const BackendOptions& options);

}  // namespace latte
