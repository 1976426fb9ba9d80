#pragma once

#include <cstdint>

namespace latte {
namespace {

/// Four floats in the compiler's portable vector type: what every processor can do, without fused multiply-add.
struct Scalar {
  using Vec = float __attribute__((vector_size(16)));
  using Ints = std::int32_t __attribute__((vector_size(16)));
  static constexpr int kWidth = 4;
  static constexpr int kWeightRows[9] = {0, 4, 4, 2, 2};
  static constexpr int kRowSumVecs[5] = {0, 8, 4, 2, 2};
  static constexpr int kScoreKeys[3] = {0, 4, 4};
  static constexpr int kValueRows = 4;
  static constexpr int kValueVecs = 2;
  static constexpr int kGroupVecs = 4;

  static Vec zero() { return Vec{0, 0, 0, 0}; }
  static Vec set1(float value) { return Vec{value, value, value, value}; }
  static Vec load(const float* p) { return Vec{p[0], p[1], p[2], p[3]}; }
  static Vec load(const std::uint16_t* p) { return Vec{expand(p[0]), expand(p[1]), expand(p[2]), expand(p[3])}; }
  template <class T>
  static Vec load_first(const T* p, int n) {
    T padded[kWidth] = {};
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    return load(padded);
  }
  static Vec load_f16(const std::uint16_t* p) { return Vec{half(p[0]), half(p[1]), half(p[2]), half(p[3])}; }
  static Vec load_codes(const std::int8_t* p) {
    return Vec{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]), static_cast<float>(p[3])};
  }
  static void store(float* p, Vec v) {
    for (int i = 0; i < kWidth; ++i) p[i] = v[i];
  }
  static void store_first(float* p, Vec v, int n) {
    for (int i = 0; i < n; ++i) p[i] = v[i];
  }
  /// The lanes of both in turn: of their lower halves in a, of their upper halves in b.
  static void zip(Vec& a, Vec& b) {
    const Vec low{a[0], b[0], a[1], b[1]};
    b = Vec{a[2], b[2], a[3], b[3]};
    a = low;
  }
  static Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
  static Vec add(Vec a, Vec b) { return a + b; }
  static Vec sub(Vec a, Vec b) { return a - b; }
  static Vec mul(Vec a, Vec b) { return a * b; }
  static Vec div(Vec a, Vec b) { return a / b; }
  /// The second operand where either is NaN, as on x86.
  static Vec max(Vec a, Vec b) { return a > b ? a : b; }
  static Vec min(Vec a, Vec b) { return a < b ? a : b; }
  static Vec select_less(Vec a, Vec b, Vec yes, Vec no) { return a < b ? yes : no; }
  static float hsum(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
  /// Adding and taking away 1.5 * 2^23 leaves the nearest integer for |v| < 2^22.
  static Vec round(Vec v) {
    const Vec magic = set1(0x1.8p23f);
    return (v + magic) - magic;
  }
  /// 2^v for integers v in [-126, 127].
  static Vec power_of_two(Vec v) {
    const Vec shifted = v + set1(0x1.8p23f + 127.0f);
    return reinterpret_cast<Vec>(reinterpret_cast<Ints>(shifted) << 23);
  }
  static void prefetch(const void*) {}

 private:
  /// IEEE binary16: its exponent and mantissa moved into place and scaled by what the two biases differ; infinity and
  /// NaN take the greatest exponent.
  static float half(std::uint16_t bits) {
    const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
    const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
    const std::uint32_t finite = __builtin_bit_cast(std::uint32_t, scaled);
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    return __builtin_bit_cast(float, sign | (magnitude < 0x0f800000u ? finite : magnitude | 0x7f800000u));
  }
  static float expand(std::uint16_t bits) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16); }
};

}  // namespace
}  // namespace latte
