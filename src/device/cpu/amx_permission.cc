#include "device/cpu/amx_permission.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace latte {
namespace {

#if defined(__x86_64__) && defined(__linux__)
AmxAccess ask() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // CPUID leaf 7: the compilers' feature test may not know them.
  constexpr unsigned kNeeded = 1u << 24 | 1u << 22 | 1u << 25;  // tiles, bf16, int8
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kNeeded) != kNeeded) return AmxAccess::kNone;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? AmxAccess::kGranted : AmxAccess::kRefused;
}
#else
AmxAccess ask() { return AmxAccess::kNone; }
#endif

}  // namespace

AmxAccess amx_access() {
  static const AmxAccess kAccess = ask();
  return kAccess;
}

}  // namespace latte
