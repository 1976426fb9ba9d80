#pragma once

#include <cstdint>

namespace latte {
namespace {

/// The same pointer, of which a compiler knows nothing: what is read through it is read where it is needed, a constant
/// away. g++ else reads the codes of all rows first, or makes an address of every one, and keeps them on the stack:
/// half the speed.
template <class T>
[[gnu::always_inline]] inline const T* read_anew(const T* p) {
  asm volatile("" : "+r"(p));
  return p;
}

/// 2^x to about an ulp: exactly 1 at 0, 0 below -126, NaN for NaN; x above 127 counts as 127.
template <class S>
typename S::Vec exp2(typename S::Vec x) {
  const auto lowest = S::set1(-126.0f);
  const auto at_most = S::min(S::set1(127.0f), x);
  const auto bounded = S::max(lowest, at_most);
  const auto whole = S::round(bounded);
  const auto f = S::sub(bounded, whole);  // in [-0.5, 0.5]: (2^f - 1) / f by interpolation at Chebyshev nodes
  auto p = S::set1(0x1.44138ap-13f);
  p = S::fma(p, f, S::set1(0x1.5f0890p-10f));
  p = S::fma(p, f, S::set1(0x1.3b2a54p-7f));
  p = S::fma(p, f, S::set1(0x1.c6af6cp-5f));
  p = S::fma(p, f, S::set1(0x1.ebfbe0p-3f));
  p = S::fma(p, f, S::set1(0x1.62e430p-1f));
  p = S::fma(p, f, S::set1(1.0f));
  return S::select_less(at_most, lowest, S::zero(), S::mul(p, S::power_of_two(whole)));
}

/// x / (1 + exp(-x)).
template <class S>
typename S::Vec silu(typename S::Vec x) {
  const auto decay = exp2<S>(S::mul(x, S::set1(-1.44269504f)));
  return S::div(x, S::add(S::set1(1.0f), decay));
}

/// gate = silu(gate) * up.
template <class S>
void gate_rows(float* gate, const float* up, std::int64_t n) {
  constexpr int kWidth = S::kWidth;
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) S::store(gate + i, S::mul(silu<S>(S::load(gate + i)), S::load(up + i)));
  if (i == n) return;
  const int rest = static_cast<int>(n - i);
  const auto last = S::mul(silu<S>(S::load_first(gate + i, rest)), S::load_first(up + i, rest));
  S::store_first(gate + i, last, rest);
}

template <class S>
void scale(float* to, const float* from, float factor, std::int64_t n) {
  constexpr int kWidth = S::kWidth;
  const auto by = S::set1(factor);
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) S::store(to + i, S::mul(by, S::load(from + i)));
  if (i == n) return;
  const int rest = static_cast<int>(n - i);
  S::store_first(to + i, S::mul(by, S::load_first(from + i, rest)), rest);
}

template <class S>
void combine(float* into, const float* b, float b_share, float a_weight, float b_weight, std::int64_t n) {
  constexpr int kWidth = S::kWidth;
  const auto share = S::set1(b_share);
  const auto wa = S::set1(a_weight);
  const auto wb = S::set1(b_weight);
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    S::store(into + i, S::fma(wb, S::mul(share, S::load(b + i)), S::mul(wa, S::load(into + i))));
  }
  if (i == n) return;
  const int rest = static_cast<int>(n - i);
  const auto last = S::fma(wb, S::mul(share, S::load_first(b + i, rest)), S::mul(wa, S::load_first(into + i, rest)));
  S::store_first(into + i, last, rest);
}

template <class S>
void add_scaled(float* into, const float* x, float weight, std::int64_t n) {
  constexpr int kWidth = S::kWidth;
  const auto w = S::set1(weight);
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) S::store(into + i, S::fma(w, S::load(x + i), S::load(into + i)));
  if (i == n) return;
  const int rest = static_cast<int>(n - i);
  S::store_first(into + i, S::fma(w, S::load_first(x + i, rest), S::load_first(into + i, rest)), rest);
}

template <class S>
void rms_norm(const float* x, const float* weight, float* y, std::int64_t n, double eps) {
  constexpr int kWidth = S::kWidth;
  auto even = S::zero();
  auto odd = S::zero();
  std::int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    const auto a = S::load(x + i);
    const auto b = S::load(x + i + kWidth);
    even = S::fma(a, a, even);
    odd = S::fma(b, b, odd);
  }
  for (; i < n; i += kWidth) {
    const auto a = i + kWidth <= n ? S::load(x + i) : S::load_first(x + i, static_cast<int>(n - i));
    even = S::fma(a, a, even);
  }
  const double mean = static_cast<double>(S::hsum(S::add(even, odd))) / static_cast<double>(n);
  const auto inverse = S::set1(static_cast<float>(1.0 / __builtin_sqrt(mean + eps)));
  i = 0;
  for (; i + kWidth <= n; i += kWidth) S::store(y + i, S::mul(S::mul(S::load(x + i), inverse), S::load(weight + i)));
  if (i == n) return;
  const int rest = static_cast<int>(n - i);
  S::store_first(y + i, S::mul(S::mul(S::load_first(x + i, rest), inverse), S::load_first(weight + i, rest)), rest);
}

}  // namespace
}  // namespace latte
