#pragma once

#include <string>
#include <string_view>

#include "device/cpu/kernel_table.h"
#include "latte/error.h"

namespace latte {

/// The kernels of the instruction set called `isa`, or the widest one this processor has for "auto".
/// Names: "scalar", "avx2", "avx512", "avx512_bf16". Errors: an unknown name, or a set this processor or build lacks.
Result<const KernelTable*> find_kernels(std::string_view isa);

/// Names of the instruction sets that find_kernels would give here, narrowest first, comma separated.
std::string supported_isas();

}  // namespace latte
