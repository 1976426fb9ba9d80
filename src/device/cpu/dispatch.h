#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/cpu/kernel_table.h"
#include "latte/error.h"

namespace latte {

/// The kernels of the instruction set called `isa`, or for "auto" those that plan/choose_isa.h takes on this processor
/// without a measurement. Names: those of isa_reports(). Errors: an unknown name, or a set this processor or build
/// lacks.
Result<const KernelTable*> find_kernels(std::string_view isa);

/// The kernels of every instruction set that find_kernels would give here, narrowest first.
std::vector<const KernelTable*> usable_kernels();

/// Names of the instruction sets that find_kernels would give here, narrowest first, comma separated.
std::string supported_isas();

/// An instruction set that latte knows of.
struct IsaReport {
  std::string name;
  bool in_build = false;
  bool in_processor = false;
  bool refused = false;  ///< the processor has it, but the system does not let this process use it
};

/// All of them, narrowest first.
std::vector<IsaReport> isa_reports();

}  // namespace latte
