#include "device/cpu/dispatch.h"

#include <array>

#include "base/fail.h"
#include "device/cpu/amx_permission.h"
#include "device/cpu/processor_model.h"
#include "plan/choose_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace latte {
namespace {

#if defined(__x86_64__)
/// Conversions of halves, which one of the compilers' feature tests does not know.
bool processor_has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kF16c = 1u << 29;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kF16c) != 0;
}
#endif

struct InstructionSet {
  std::string_view name;
  const KernelTable* kernels;  // null: not in this build
  bool processor_has_it;
  bool system_refuses_it = false;

  bool usable() const { return kernels != nullptr && processor_has_it && !system_refuses_it; }
  std::string_view reason() const {
    return kernels == nullptr  ? "known, but not in this build"
           : !processor_has_it ? "not in this processor"
                               : "in this processor, but the system refuses its use (arch_prctl)";
  }
};

/// Narrowest first; those of other processors are named so that a request for one gets a true answer. The processor's
/// word includes that the system saves the wide registers.
std::array<InstructionSet, 7> instruction_sets() {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && processor_has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx512_vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  const bool avx512_bf16 = avx512_vnni && __builtin_cpu_supports("avx512bf16");
  const bool amx = avx512_bf16 && amx_access() != AmxAccess::kNone;
  const bool neon = false;
#else  // AArch64 has NEON always
  const bool avx2 = false;
  const bool avx512 = false;
  const bool avx512_bf16 = false;
  const bool avx512_vnni = false;
  const bool amx = false;
  const bool neon = neon_kernels() != nullptr;
#endif
  return {{{"scalar", scalar_kernels(), true},
           {"neon", neon_kernels(), neon},
           {"avx2", avx2_kernels(), avx2},
           {"avx512", avx512_kernels(), avx512},
           {"avx512_vnni", avx512_vnni_kernels(), avx512_vnni},
           {"avx512_bf16", avx512_bf16_kernels(), avx512_bf16},
           {"amx", amx_kernels(), amx, amx_access() == AmxAccess::kRefused}}};
}

}  // namespace

std::vector<IsaReport> isa_reports() {
  std::vector<IsaReport> reports;
  for (const InstructionSet& set : instruction_sets())
    reports.push_back({std::string(set.name), set.kernels != nullptr, set.processor_has_it, set.system_refuses_it});
  return reports;
}

std::vector<const KernelTable*> usable_kernels() {
  std::vector<const KernelTable*> tables;
  for (const InstructionSet& set : instruction_sets())
    if (set.usable()) tables.push_back(set.kernels);
  return tables;
}

std::string supported_isas() {
  std::string names;
  for (const KernelTable* kernels : usable_kernels()) {
    if (!names.empty()) names += ", ";
    names += kernels->isa;
  }
  return names;
}

Result<const KernelTable*> find_kernels(std::string_view isa) {
  if (isa == "auto") {
    std::vector<std::string_view> usable;
    for (const KernelTable* kernels : usable_kernels()) usable.push_back(kernels->isa);
    isa = choose_isa(usable, processor_model());
  }
  for (const InstructionSet& set : instruction_sets()) {
    if (set.name != isa) continue;
    if (set.usable()) return set.kernels;
    return fail(ErrorKind::kUnsupported,
                "instruction set \"{}\" is {}: this machine runs {}; use one of those or \"auto\"", isa, set.reason(),
                supported_isas());
  }
  return fail(ErrorKind::kInvalidInput, "unknown instruction set \"{}\", expected auto or one of {}; pass one of those",
              isa, supported_isas());
}

}  // namespace latte
