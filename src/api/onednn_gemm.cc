#include "api/onednn_gemm.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/best_seconds.h"

// The few functions of oneDNN's C interface (dnnl.h) that need no descriptors; versions 2 and 3 have them alike.

namespace latte {
namespace {

constexpr std::int64_t kWidth = 512;

using GemmStatus = int;  // dnnl_status_t
constexpr GemmStatus kDone = 0;

struct Version {
  int major, minor, patch;
};
using FloatGemm = GemmStatus(char trans_a, char trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                             const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                             std::int64_t ldc);
using Bf16Gemm = GemmStatus(char trans_a, char trans_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                            const std::uint16_t* a, std::int64_t lda, const std::uint16_t* b, std::int64_t ldb,
                            float beta, float* c, std::int64_t ldc);
using ByteGemm = GemmStatus(char trans_a, char trans_b, char offset_c, std::int64_t m, std::int64_t n, std::int64_t k,
                            float alpha, const std::uint8_t* a, std::int64_t lda, std::uint8_t offset_a,
                            const std::int8_t* b, std::int64_t ldb, std::int8_t offset_b, float beta, std::int32_t* c,
                            std::int64_t ldc, const std::int32_t* offsets_c);

/// A function of the library or of what it is linked with; null when there is none of this name.
template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

/// Null where it is not installed. It stays loaded: its threads outlive the calls.
void* open_library() {
  for (const char* name : {"libdnnl.so.3", "libdnnl.so.2"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
  }
  return nullptr;
}

/// Sets how many threads OpenMP takes, where the library uses it, for as long as it lives.
class OpenMpThreads {
 public:
  OpenMpThreads(void* library, int threads) : set_(find<void(int)>(library, "omp_set_num_threads")) {
    auto* most = find<int()>(library, "omp_get_max_threads");
    if (set_ == nullptr || most == nullptr) return;
    before_ = most();
    set_(threads);
  }
  ~OpenMpThreads() {
    if (before_ > 0) set_(before_);
  }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  void (*set_)(int);
  int before_ = 0;
};

template <class T>
std::vector<T> square(T value) {
  return std::vector<T>(static_cast<std::size_t>(kWidth * kWidth), value);
}

/// Adds what `multiply` reaches; nothing where it refuses or gives something else than the product.
template <class Multiply>
void add_rate(std::string_view type, std::string_view call, double seconds, OneDnnReport& report,
              const Multiply& multiply) {
  if (!multiply()) return;  // it also compiles its kernel here
  const double least = best_seconds(seconds, multiply);
  const double operations = 2.0 * static_cast<double>(kWidth * kWidth * kWidth);
  report.gemm.push_back({.type = std::string(type), .call = std::string(call), .gops = operations / least * 1e-9});
}

}  // namespace

OneDnnReport measure_onednn(int threads, double seconds) {
  OneDnnReport report;
  void* const library = open_library();
  if (library == nullptr) return report;
  auto* version = find<const Version*()>(library, "dnnl_version");
  auto* floats = find<FloatGemm>(library, "dnnl_sgemm");
  auto* bytes = find<ByteGemm>(library, "dnnl_gemm_u8s8s32");
  auto* pairs = find<Bf16Gemm>(library, "dnnl_gemm_bf16bf16f32");  // for the library's own tests, but exported
  if (version == nullptr) return report;
  report.installed = true;
  report.version = fmt::format("{}.{}.{}", version()->major, version()->minor, version()->patch);
  const OpenMpThreads limit(library, threads);
  std::vector<float> c = square(0.0f);
  if (floats != nullptr) {
    const std::vector<float> a = square(0.5f), b = square(0.25f);
    add_rate("f32", "dnnl_sgemm", seconds, report, [&] {
      return floats('N', 'T', kWidth, kWidth, kWidth, 1, a.data(), kWidth, b.data(), kWidth, 0, c.data(), kWidth) ==
                 kDone &&
             c.back() == 0.125f * kWidth;
    });
  }
  if (pairs != nullptr) {
    const std::vector<std::uint16_t> a = square(std::uint16_t{0x3f00}), b = square(std::uint16_t{0x3e80});
    add_rate("bf16", "dnnl_gemm_bf16bf16f32", seconds, report, [&] {
      return pairs('N', 'T', kWidth, kWidth, kWidth, 1, a.data(), kWidth, b.data(), kWidth, 0, c.data(), kWidth) ==
                 kDone &&
             c.back() == 0.125f * kWidth;
    });
  }
  if (bytes != nullptr) {
    const std::vector<std::uint8_t> a = square(std::uint8_t{7});
    const std::vector<std::int8_t> b = square(std::int8_t{-3});
    std::vector<std::int32_t> sums = square(std::int32_t{0});
    const std::int32_t offset = 0;
    add_rate("int8", "dnnl_gemm_u8s8s32", seconds, report, [&] {
      return bytes('N', 'T', 'F', kWidth, kWidth, kWidth, 1, a.data(), kWidth, 0, b.data(), kWidth, 0, 0, sums.data(),
                   kWidth, &offset) == kDone &&
             sums.back() == -21 * kWidth;
    });
  }
  return report;
}

}  // namespace latte
