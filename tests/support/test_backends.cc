#include "support/test_backends.h"

#include <fmt/format.h>

#include <ostream>

#include "device/open_backend.h"

namespace latte::test {

std::string CpuChoice::name() const {
  return fmt::format("{}_{}thread{}{}", isa, threads, threads == 1 ? "" : "s", compute == DType::kBf16 ? "_bf16" : "");
}

void PrintTo(const CpuChoice& choice, std::ostream* out) { *out << choice.name(); }

std::vector<CpuChoice> cpu_choices() {
  std::vector<CpuChoice> choices;
  for (const char* isa : {"scalar", "neon", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}) {
    for (const int threads : {1, 2}) choices.push_back({isa, threads});
  }
  for (const char* isa : {"avx512_bf16", "amx"}) {
    for (const int threads : {1, 2}) choices.push_back({isa, threads, DType::kBf16});
  }
  return choices;
}

Result<std::unique_ptr<Backend>> open_cpu(const CpuChoice& choice) {
  return open_backend({.device = "cpu", .isa = choice.isa, .threads = choice.threads, .compute = choice.compute});
}

}  // namespace latte::test
