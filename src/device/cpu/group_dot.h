#pragma once

#include <cstdint>

#include "tensor/grouped.h"

namespace latte {
namespace {

/// Exact products of codes one by one, eight outputs at a time; `F` is the unit's SIMD type. For instruction sets
/// without a dot product of bytes.
template <class F>
struct PlainGroupDot {
  using Floats = F;
  static constexpr int kOutputs = F::kWidth;
  static constexpr int kPartBytes = 4 * kOutputs;
  static constexpr int kMostRows = 4;
  struct Bytes {
    unsigned char at[kPartBytes];
  };
  struct Sums {
    std::int32_t at[kOutputs];
  };
  struct Q8 {
    explicit Q8(const Bytes& b) : bytes(b) {}
    Bytes bytes;
  };

  /// Rounded once, as the vector units do it.
  static typename F::Vec fma(typename F::Vec a, typename F::Vec b, typename F::Vec c) {
    float x[kOutputs], y[kOutputs], z[kOutputs];
    F::store(x, a);
    F::store(y, b);
    F::store(z, c);
    for (int i = 0; i < kOutputs; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
    return F::load(z);
  }
  static Bytes load(const unsigned char* p) {
    Bytes bytes;
    __builtin_memcpy(bytes.at, p, sizeof(bytes.at));
    return bytes;
  }
  static Bytes low_halves(Bytes b) {
    for (unsigned char& byte : b.at) byte &= 15;
    return b;
  }
  static Bytes high_halves(Bytes b) {
    for (unsigned char& byte : b.at) byte = static_cast<unsigned char>(byte >> 4);
    return b;
  }
  static Sums begin_q4(std::int32_t offset) {
    Sums sums;
    for (std::int32_t& sum : sums.at) sum = offset;
    return sums;
  }
  static Sums begin_q8(std::int32_t) { return {}; }
  static Sums add_q4(Sums sums, const Bytes& w, std::int32_t quad) {
    for (int i = 0; i < kPartBytes; ++i) sums.at[i / 4] += int{w.at[i]} * code(quad, i % 4);
    return sums;
  }
  static Sums add_q8(Sums sums, const Q8& w, std::int32_t quad) {
    for (int i = 0; i < kPartBytes; ++i)
      sums.at[i / 4] += int{static_cast<std::int8_t>(w.bytes.at[i])} * code(quad, i % 4);
    return sums;
  }
  static void settle(Sums&) {}
  static typename F::Vec finish_q4(const Sums& sums, std::int32_t) { return finish_q8(sums); }
  static typename F::Vec finish_q8(const Sums& sums) {
    float values[kOutputs];
    for (int i = 0; i < kOutputs; ++i) values[i] = static_cast<float>(sums.at[i]);
    return F::load(values);
  }

 private:
  static int code(std::int32_t quad, int i) { return static_cast<std::int8_t>(quad >> (8 * i)); }
};

}  // namespace
}  // namespace latte
