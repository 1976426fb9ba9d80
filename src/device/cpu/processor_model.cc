#include "device/cpu/processor_model.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstring>
#include <utility>

namespace latte {
namespace {

#if defined(__x86_64__)
struct Signature {
  char vendor[13] = {};
  int family = 0;
  int model = 0;
};

Signature ask() {
  Signature said;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return said;
  for (const auto& [word, at] : {std::pair{ebx, 0}, {edx, 4}, {ecx, 8}}) std::memcpy(said.vendor + at, &word, 4);
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return said;
  // The extended parts count from family 15 on, and for models of family 6, too.
  const unsigned family = eax >> 8 & 15, model = eax >> 4 & 15;
  said.family = static_cast<int>(family == 15 ? family + (eax >> 20 & 255) : family);
  said.model = static_cast<int>(family == 6 || family == 15 ? (eax >> 16 & 15) << 4 | model : model);
  return said;
}
#endif

}  // namespace

ProcessorModel processor_model() {
#if defined(__x86_64__)
  static const Signature kSaid = ask();
  return {kSaid.vendor, kSaid.family, kSaid.model};
#else
  return {};
#endif
}

}  // namespace latte
