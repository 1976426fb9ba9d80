#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace latte {
namespace {

/// Four floats of Advanced SIMD (NEON) as every AArch64 processor has it; 32 registers.
struct Neon {
  using Vec = float32x4_t;
  static constexpr int kWidth = 4;
  static constexpr int kWeightRows[9] = {0, 16, 10, 7, 5};  ///< weight rows of a dot tile, by rows of x
  static constexpr int kRowSumVecs[5] = {0, 16, 8, 6, 4};   ///< column vectors of a row-sum tile, by rows of x
  static constexpr int kScoreKeys[3] = {0, 20, 12};         ///< keys of a score tile, by query vectors
  static constexpr int kValueRows = 4;                      ///< rows of a value tile
  static constexpr int kValueVecs = 6;                      ///< its value vectors
  static constexpr int kGroupVecs = 4;                      ///< query vectors of an attention task

  static Vec zero() { return vdupq_n_f32(0); }
  static Vec set1(float value) { return vdupq_n_f32(value); }
  static Vec load(const float* p) { return vld1q_f32(p); }
  static Vec load(const std::uint16_t* p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
  template <class T>
  static Vec load_first(const T* p, int n) {
    T padded[kWidth] = {};
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    return load(padded);
  }
  static Vec load_f16(const std::uint16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
  static Vec load_codes(const std::int8_t* p) {
    std::int32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
  }
  static void store(float* p, Vec v) { vst1q_f32(p, v); }
  static void zip(Vec& a, Vec& b) {
    const Vec low = vzip1q_f32(a, b);
    b = vzip2q_f32(a, b);
    a = low;
  }
  static void store_first(float* p, Vec v, int n) {
    float padded[kWidth];
    store(padded, v);
    for (int i = 0; i < n; ++i) p[i] = padded[i];
  }
  static Vec fma(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }
  static Vec add(Vec a, Vec b) { return vaddq_f32(a, b); }
  static Vec sub(Vec a, Vec b) { return vsubq_f32(a, b); }
  static Vec mul(Vec a, Vec b) { return vmulq_f32(a, b); }
  static Vec div(Vec a, Vec b) { return vdivq_f32(a, b); }
  /// The second operand where either is NaN, as on x86: FMAX would give NaN.
  static Vec max(Vec a, Vec b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static Vec min(Vec a, Vec b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static Vec select_less(Vec a, Vec b, Vec yes, Vec no) { return vbslq_f32(vcltq_f32(a, b), yes, no); }
  static float hsum(Vec v) { return vaddvq_f32(v); }
  static Vec round(Vec v) { return vrndnq_f32(v); }
  /// 2^v for integers v in [-126, 127].
  static Vec power_of_two(Vec v) {
    const int32x4_t biased = vaddq_s32(vcvtnq_s32_f32(v), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
  }
  static void prefetch(const void* p) { __builtin_prefetch(p); }
};

}  // namespace
}  // namespace latte
