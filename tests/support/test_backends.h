#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "support/tolerance.h"

namespace latte::test {

/// A way to open the cpu backend.
struct CpuChoice {
  std::string isa;
  int threads = 1;
  DType compute = DType::kF32;

  Rounding rounding() const {
    const bool bf16 = compute == DType::kBf16;
    return {.to_bf16 = bf16 && isa == "avx512_bf16", .tiles = bf16 && isa == "amx"};
  }
  /// "avx2_2threads", for the name of a test.
  std::string name() const;
};

/// How a failing test shows its parameter.
void PrintTo(const CpuChoice& choice, std::ostream* out);

/// Every instruction set there is, whether or not this processor has it, on 1 and 2 threads.
std::vector<CpuChoice> cpu_choices();

/// The backend, or why this machine lacks it: tests skip with the message.
Result<std::unique_ptr<Backend>> open_cpu(const CpuChoice& choice);

}  // namespace latte::test
