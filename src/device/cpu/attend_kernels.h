#pragma once

#include <cstdint>

#include "device/cpu/cached_row_kernels.h"
#include "device/cpu/kernel_table.h"
#include "device/cpu/row_kernels.h"

// The attention core. Lanes of a vector are packed rows, so every sum of a row runs in one order (key column by column,
// key by key) wherever the row stands in its group and whatever stands beside it.

namespace latte {
namespace {

inline constexpr float kNothingSeen = -__builtin_inff();

/// Query vectors that a score tile holds at once.
inline constexpr int kTileVecs = 2;

template <class S>
void prepare_queries(const QueryRows& q, float* to) {
  constexpr int kTile = kTileVecs * S::kWidth;
  for (int first = 0; first < q.rows; first += kTile) {
    const int tile = q.rows - first > S::kWidth ? kTile : S::kWidth;
    for (int row = 0; row < tile; ++row) {
      const bool real = first + row < q.rows;
      const float* from = q.q + (first + row) * q.stride;
      for (int k = 0; k < q.key_width; ++k) to[k * tile + row] = real ? from[k] : 0.0f;
    }
    to += static_cast<std::int64_t>(tile) * q.key_width;
  }
}

/// scores[t, :] = scale * sum over k of keys[t][k] * q_KW[k, :] for kKeys keys and kVecs vectors of rows.
template <class S, int kVecs, int kKeys>
void score_tile(const float* q_KW, const float* const* keys, int key_width, typename S::Vec scale, float* scores,
                int score_stride) {
  typename S::Vec sums[kKeys][kVecs];
  const float* from[kKeys];
  for (int t = 0; t < kKeys; ++t) {
    from[t] = keys[t];
    for (int v = 0; v < kVecs; ++v) sums[t][v] = S::zero();
  }
  for (std::int64_t k = 0; k < key_width; ++k) {
    typename S::Vec q[kVecs];
    for (int v = 0; v < kVecs; ++v) q[v] = S::load(q_KW + v * S::kWidth);
    for (int t = 0; t < kKeys; ++t) {
      const auto key = S::set1(from[t][k]);
      for (int v = 0; v < kVecs; ++v) sums[t][v] = S::fma(key, q[v], sums[t][v]);
    }
    q_KW += kVecs * S::kWidth;
  }
  for (int t = 0; t < kKeys; ++t) {
    for (int v = 0; v < kVecs; ++v) S::store(scores + t * score_stride + v * S::kWidth, S::mul(sums[t][v], scale));
  }
}

template <class S, int kVecs>
void score_block(const float* q_KW, const float* const* keys, int count, int key_width, typename S::Vec scale,
                 float* scores, int score_stride) {
  constexpr int kKeys = S::kScoreKeys[kVecs];
  int t = 0;
  for (; t + kKeys <= count; t += kKeys) {
    score_tile<S, kVecs, kKeys>(q_KW, keys + t, key_width, scale, scores + t * score_stride, score_stride);
  }
  for (; t + 4 <= count; t += 4) {
    score_tile<S, kVecs, 4>(q_KW, keys + t, key_width, scale, scores + t * score_stride, score_stride);
  }
  for (; t < count; ++t) {
    score_tile<S, kVecs, 1>(q_KW, keys + t, key_width, scale, scores + t * score_stride, score_stride);
  }
}

/// The state of a group's rows during the online softmax, one float per row.
struct SoftmaxRows {
  float* top = nullptr;    ///< greatest score so far
  float* mass = nullptr;   ///< sum of 2^(score - top)
  float* alpha = nullptr;  ///< what the block multiplies earlier results by
  float* seen = nullptr;   ///< keys of the block that the row sees
};

/// Turns one vector of rows' scores of a block into 2^(score - top), in place, and moves the rows' state on.
template <class S>
void softmax_block(float* scores, int score_stride, int count, bool all_seen, const SoftmaxRows& rows) {
  const auto nothing = S::set1(kNothingSeen);
  const auto seen = S::load(rows.seen);
  const auto old_top = S::load(rows.top);
  auto top = old_top;
  for (int t = 0; t < count; ++t) {
    auto score = S::load(scores + t * score_stride);
    if (!all_seen) {
      score = S::select_less(S::set1(static_cast<float>(t)), seen, score, nothing);
      S::store(scores + t * score_stride, score);
    }
    top = S::max(top, score);
  }
  const auto base =
      S::select_less(top, S::set1(-__FLT_MAX__), S::zero(), top);  // rows that saw nothing: avoid inf - inf
  const auto alpha = exp2<S>(S::sub(old_top, base));
  auto mass = S::mul(S::load(rows.mass), alpha);
  for (int t = 0; t < count; ++t) {
    const auto p = exp2<S>(S::sub(S::load(scores + t * score_stride), base));
    S::store(scores + t * score_stride, p);
    mass = S::add(mass, p);
  }
  S::store(rows.top, top);
  S::store(rows.mass, mass);
  S::store(rows.alpha, alpha);
}

/// o[row, columns] += sum over t in [begin, end) of p[t, row] * values[t][columns], t ascending.
template <class S, int kRows, int kVecs>
void value_tile(const float* p, int p_stride, const float* const* values, int column, int begin, int end, float* o,
                std::int64_t o_stride, int rest) {
  typename S::Vec sums[kRows][kVecs];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVecs; ++v) {
      const float* from = o + r * o_stride + column + v * S::kWidth;
      sums[r][v] = rest > 0 ? S::load_first(from, rest) : S::load(from);
    }
  }
  for (int t = begin; t < end; ++t) {
    typename S::Vec value[kVecs];
    const float* from = values[t] + column;
    for (int v = 0; v < kVecs; ++v) value[v] = rest > 0 ? S::load_first(from, rest) : S::load(from + v * S::kWidth);
    for (int r = 0; r < kRows; ++r) {
      const auto weight = S::set1(p[t * p_stride + r]);
      for (int v = 0; v < kVecs; ++v) sums[r][v] = S::fma(weight, value[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVecs; ++v) {
      float* to = o + r * o_stride + column + v * S::kWidth;
      if (rest > 0) {
        S::store_first(to, sums[r][v], rest);
      } else {
        S::store(to, sums[r][v]);
      }
    }
  }
}

/// Columns [column, column + vecs * width) of every row of a group. Rows that see different parts of the block share
/// what all of four see, and read the rest one by one: a key that a row may not see never touches it, not even as 0 *
/// NaN.
template <class S, int kVecs>
void value_columns(const float* p, int p_stride, const float* const* values, int column, const int* seen, int rows,
                   float* o, std::int64_t o_stride, int rest) {
  int row = 0;
  for (; row + 4 <= rows; row += 4) {
    int shared = seen[row];
    for (int r = 1; r < 4; ++r) shared = seen[row + r] < shared ? seen[row + r] : shared;
    float* to = o + row * o_stride;
    value_tile<S, 4, kVecs>(p + row, p_stride, values, column, 0, shared, to, o_stride, rest);
    for (int r = 0; r < 4; ++r) {
      if (seen[row + r] == shared) continue;
      value_tile<S, 1, kVecs>(p + row + r, p_stride, values, column, shared, seen[row + r], to + r * o_stride, o_stride,
                              rest);
    }
  }
  for (; row < rows; ++row) {
    value_tile<S, 1, kVecs>(p + row, p_stride, values, column, 0, seen[row], o + row * o_stride, o_stride, rest);
  }
}

template <class S>
void value_block(const float* p, int p_stride, const float* const* values, const int* seen, const LeafArgs& args) {
  const int rows = args.rows, value_width = args.value_width;
  constexpr int kVecs = S::kValueVecs;
  constexpr int kWidth = S::kWidth;
  int column = 0;
  for (; column + kVecs * kWidth <= value_width; column += kVecs * kWidth) {
    value_columns<S, kVecs>(p, p_stride, values, column, seen, rows, args.o, args.o_stride, 0);
  }
  for (; column + kWidth <= value_width; column += kWidth) {
    value_columns<S, 1>(p, p_stride, values, column, seen, rows, args.o, args.o_stride, 0);
  }
  if (column < value_width) {
    value_columns<S, 1>(p, p_stride, values, column, seen, rows, args.o, args.o_stride, value_width - column);
  }
}

/// Pointers to `count` rows from row `first` on, `width` columns each, as f32: in place when they are f32, else
/// made f32 in `scratch`.
template <class S>
void point_to_rows(const LaneRows& from, std::int64_t first, int count, int width, float* scratch, const float** rows) {
  const int stride = (width + 15) / 16 * 16;
  std::int64_t page = first / from.page_rows;
  std::int64_t row = first % from.page_rows;
  for (int t = 0; t < count; ++t, ++row) {
    if (row == from.page_rows) {
      ++page;
      row = 0;
    }
    const void* start = from.pages[page];
    if (from.type == RowType::kF32) {
      rows[t] = static_cast<const float*>(start) + row * from.row_stride + from.lane_offset;
      continue;
    }
    float* to = scratch + t * stride;
    rows[t] = to;
    widen_row<S>(from, start, row, width, to);
  }
}

inline void clear_rows(const LeafArgs& args) {
  for (int row = 0; row < args.rows; ++row) {
    float* o = args.o + row * args.o_stride;
    for (int v = 0; v < args.value_width; ++v) o[v] = 0;
  }
}

/// Multiplies the rows' results by what the block's new maxima ask for.
template <class S>
void rescale_rows(const float* alpha, const LeafArgs& args) {
  constexpr int kWidth = S::kWidth;
  const int value_width = args.value_width;
  float* o = args.o;
  for (int row = 0; row < args.rows; ++row, o += args.o_stride) {
    if (alpha[row] == 1.0f) continue;
    const auto factor = S::set1(alpha[row]);
    int v = 0;
    for (; v + kWidth <= value_width; v += kWidth) S::store(o + v, S::mul(S::load(o + v), factor));
    for (; v < value_width; ++v) o[v] *= alpha[row];
  }
}

/// What the rows' states leave behind; a row that saw nothing gets an empty sum.
inline void finish_rows(const SoftmaxRows& state, int rows, float* shares, float* log2_sums) {
  for (int row = 0; row < rows; ++row) {
    const float mass = state.mass[row];
    const bool nothing = mass == 0.0f;
    shares[row] = nothing ? 0.0f : 1.0f / mass;
    log2_sums[row] = nothing ? kNothingSeen : state.top[row] + __builtin_log2f(mass);
  }
}

template <class S>
void attend_leaf(const LeafArgs& args) {
  constexpr int kWidth = S::kWidth;
  constexpr int kGroupRows = S::kGroupVecs * kWidth;
  const int vecs = (args.rows + kWidth - 1) / kWidth;
  const int lanes = vecs * kWidth;
  float* key_block = args.scratch;
  float* value_block_rows = key_block + kKeyBlock * (args.key_width + 16);
  float* scores = value_block_rows + kKeyBlock * (args.value_width + 16);
  float* state = scores + kKeyBlock * lanes;
  const SoftmaxRows softmax{state, state + lanes, state + 2 * lanes, state + 3 * lanes};
  for (int row = 0; row < lanes; ++row) {
    softmax.top[row] = kNothingSeen;
    softmax.mass[row] = 0;
  }
  clear_rows(args);

  const auto scale = S::set1(args.scale_log2);
  const int last_visible = args.visible[args.rows - 1];
  const int end = args.end < last_visible ? args.end : last_visible;
  for (int begin = args.begin; begin < end;) {
    const int next = (begin / kKeyBlock + 1) * kKeyBlock;
    const int count = (next < end ? next : end) - begin;
    const float* keys[kKeyBlock];
    const float* own_values[kKeyBlock];
    const float* const* values = keys;
    point_to_rows<S>(args.keys, begin - args.first_key_pos, count, args.key_width, key_block, keys);
    if (!args.values_are_keys) {
      point_to_rows<S>(args.values, begin - args.first_key_pos, count, args.value_width, value_block_rows, own_values);
      values = own_values;
    }

    int seen[kGroupRows];
    for (int row = 0; row < lanes; ++row) {
      const int visible = (row < args.rows ? args.visible[row] : last_visible) - begin;
      const int bounded = visible < 0 ? 0 : visible < count ? visible : count;
      softmax.seen[row] = static_cast<float>(bounded);
      seen[row] = bounded;
    }
    const float* q = args.q_KW;
    for (int v = 0; v < vecs; v += kTileVecs) {
      const int tile = vecs - v >= kTileVecs ? kTileVecs : 1;
      if (tile == kTileVecs) {
        score_block<S, kTileVecs>(q, keys, count, args.key_width, scale, scores + v * kWidth, lanes);
      } else {
        score_block<S, 1>(q, keys, count, args.key_width, scale, scores + v * kWidth, lanes);
      }
      q += static_cast<std::int64_t>(tile) * kWidth * args.key_width;
    }
    for (int v = 0; v < vecs; ++v) {
      const int at = v * kWidth;
      const bool all_seen =
          seen[at] == count && seen[at + kWidth - 1] == count;  // visible lengths ascend within a group
      softmax_block<S>(scores + at, lanes, count, all_seen,
                       {softmax.top + at, softmax.mass + at, softmax.alpha + at, softmax.seen + at});
    }
    rescale_rows<S>(softmax.alpha, args);
    value_block<S>(scores, lanes, values, seen, args);
    begin += count;
  }
  finish_rows(softmax, args.rows, args.shares, args.log2_sums);
}

}  // namespace
}  // namespace latte
