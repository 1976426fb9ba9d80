#include "device/cpu/dispatch.h"

#include <array>

#include "base/fail.h"

namespace latte {
namespace {

struct InstructionSet {
  std::string_view name;
  const KernelTable* kernels;  // null: not in this build
  bool processor_has_it;
};

/// Narrowest first. The processor's word includes that the system saves the wide registers.
std::array<InstructionSet, 4> instruction_sets() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx512_bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
#else
  const bool avx2 = false;
  const bool avx512 = false;
  const bool avx512_bf16 = false;
#endif
  return {{{"scalar", scalar_kernels(), true},
           {"avx2", avx2_kernels(), avx2},
           {"avx512", avx512_kernels(), avx512},
           {"avx512_bf16", avx512_bf16_kernels(), avx512_bf16}}};
}

}  // namespace

std::string supported_isas() {
  std::string names;
  for (const InstructionSet& set : instruction_sets()) {
    if (set.kernels == nullptr || !set.processor_has_it) continue;
    if (!names.empty()) names += ", ";
    names += set.name;
  }
  return names;
}

Result<const KernelTable*> find_kernels(std::string_view isa) {
  const KernelTable* widest = nullptr;
  for (const InstructionSet& set : instruction_sets()) {
    const bool usable = set.kernels != nullptr && set.processor_has_it;
    if (usable) widest = set.kernels;
    if (set.name != isa) continue;
    if (usable) return set.kernels;
    return fail(ErrorKind::kUnsupported,
                "instruction set \"{}\" is not available: this {} has {}; use one of those or \"auto\"", isa,
                set.processor_has_it ? "build" : "processor", supported_isas());
  }
  if (isa == "auto") return widest;
  return fail(ErrorKind::kInvalidInput, "unknown instruction set \"{}\", expected auto or one of {}; pass one of those",
              isa, supported_isas());
}

}  // namespace latte
