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

/// to[k, :] = column k of a vector of rows; those past `rows` are 0.
template <class S>
void put_columns(const float* from, std::int64_t stride, int rows, int width, float* to, int to_stride) {
  constexpr int kWidth = S::kWidth;
  int k = 0;
  for (; k + kWidth <= width; k += kWidth) {
    typename S::Vec block[kWidth], next[kWidth];
#pragma GCC unroll 16
    for (int row = 0; row < kWidth; ++row) block[row] = row < rows ? S::load(from + row * stride + k) : S::zero();
    for (int apart = kWidth; apart > 1; apart /= 2) {  // rows and columns change places, a bit of their numbers a time
#pragma GCC unroll 16
      for (int i = 0; i < kWidth / 2; ++i) {
        next[2 * i] = block[i];
        next[2 * i + 1] = block[i + kWidth / 2];
        S::zip(next[2 * i], next[2 * i + 1]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kWidth; ++i) block[i] = next[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) S::store(to + static_cast<std::int64_t>(k + i) * to_stride, block[i]);
  }
  for (; k < width; ++k) {
    for (int row = 0; row < kWidth; ++row)
      to[static_cast<std::int64_t>(k) * to_stride + row] = row < rows ? from[row * stride + k] : 0.0f;
  }
}

template <class S>
void prepare_queries(const QueryRows& q, float* to) {
  constexpr int kTile = kTileVecs * S::kWidth;
  for (int first = 0; first < q.rows; first += kTile) {
    const int tile = q.rows - first > S::kWidth ? kTile : S::kWidth;
    for (int row = 0; row < tile; row += S::kWidth) {
      put_columns<S>(q.q + (first + row) * q.stride, q.stride, q.rows - first - row, q.key_width, to + row, tile);
    }
    to += static_cast<std::int64_t>(tile) * q.key_width;
  }
}

/// Rows of keys or values as f32, `stride` floats apart.
struct RowBlock {
  const float* first = nullptr;
  std::int64_t stride = 0;

  RowBlock from(int row) const { return {first + row * stride, stride}; }
};

/// The columns of keys that a pass sums over: the sums lie among the scores between passes.
struct ScorePass {
  int begin = 0;
  int end = 0;
  bool first = true;
  bool last = true;
};

/// Cached rows that come next, to be fetched while these are multiplied: what they hold for kStep columns, a line of
/// most types, lies `step` bytes on.
struct RowsAhead {
  static constexpr int kStep = 32;
  const char* first = nullptr;  ///< null: none
  std::int64_t stride = 0;      ///< bytes
  int step = 0;

  RowsAhead from(int row) const { return {first == nullptr ? nullptr : first + row * stride, stride, step}; }
};

/// scores[t, :] = scale * sum over k of keys[t][k] * q_KW[k, :] for kKeys keys and kVecs vectors of rows.
template <class S, int kVecs, int kKeys>
void score_tile(const float* q_KW, RowBlock keys, const ScorePass& pass, typename S::Vec scale, float* scores,
                int score_stride, const RowsAhead& ahead) {
  constexpr int kShare = 4;  // keys read from one pointer: with one each, g++ runs out of registers
  typename S::Vec sums[kKeys][kVecs];
  const float* from[(kKeys + kShare - 1) / kShare];
#pragma GCC unroll 32
  for (int t = 0; t < kKeys; ++t) {
    if (t % kShare == 0) from[t / kShare] = read_anew(keys.first + t * keys.stride + pass.begin);
    for (int v = 0; v < kVecs; ++v)
      sums[t][v] = pass.first ? S::zero() : S::load(scores + t * score_stride + v * S::kWidth);
  }
  q_KW += static_cast<std::int64_t>(pass.begin) * kVecs * S::kWidth;
#pragma GCC unroll 1
  for (int begin = pass.begin; begin < pass.end; begin += RowsAhead::kStep) {
    for (int t = 0; ahead.first != nullptr && t < kKeys; ++t)
      S::prefetch(ahead.first + t * ahead.stride + begin / RowsAhead::kStep * ahead.step);
    const int end = pass.end - begin < RowsAhead::kStep ? pass.end : begin + RowsAhead::kStep;
#pragma GCC unroll 1
    for (int k = begin; k < end; ++k) {
      typename S::Vec q[kVecs];
      for (int v = 0; v < kVecs; ++v) q[v] = S::load(q_KW + v * S::kWidth);
#pragma GCC unroll 32
      for (int t = 0; t < kKeys; ++t) {
        const auto key = S::set1(from[t / kShare][t % kShare * keys.stride]);
        for (int v = 0; v < kVecs; ++v) sums[t][v] = S::fma(key, q[v], sums[t][v]);
      }
#pragma GCC unroll 8
      for (const float*& at : from) at = read_anew(at + 1);
      q_KW += kVecs * S::kWidth;
    }
  }
#pragma GCC unroll 32
  for (int t = 0; t < kKeys; ++t) {
    for (int v = 0; v < kVecs; ++v) {
      S::store(scores + t * score_stride + v * S::kWidth, pass.last ? S::mul(sums[t][v], scale) : sums[t][v]);
    }
  }
}

/// Passes are short enough for the queries to stay in the first-level cache. One vector of them would gain nothing.
template <class S, int kVecs>
void score_block(const float* q_KW, RowBlock keys, int count, int key_width, typename S::Vec scale, float* scores,
                 int score_stride, const RowsAhead& ahead) {
  constexpr int kKeys = S::kScoreKeys[kVecs];
  const int step = kVecs == 1 || key_width == 0 ? key_width + 1 : 192;
  for (int begin = 0; begin == 0 || begin < key_width; begin += step) {
    const int end = key_width - begin < step ? key_width : begin + step;
    const ScorePass pass{begin, end, begin == 0, end == key_width};
    int t = 0;
    const auto tiles = [&]<int kTile>() {
      for (; t + kTile <= count; t += kTile) {
        score_tile<S, kVecs, kTile>(q_KW, keys.from(t), pass, scale, scores + t * score_stride, score_stride,
                                    ahead.from(t));
      }
    };
    tiles.template operator()<kKeys>();
    tiles.template operator()<4>();
    tiles.template operator()<1>();
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
void value_tile(const float* p, int p_stride, RowBlock values, int column, int begin, int end, float* o,
                std::int64_t o_stride, int rest) {
  typename S::Vec sums[kRows][kVecs];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVecs; ++v) {
      const float* from = o + r * o_stride + column + v * S::kWidth;
      sums[r][v] = rest > 0 ? S::load_first(from, rest) : S::load(from);
    }
  }
  const float* from = values.from(begin).first + column;
  const float* weights = p + static_cast<std::int64_t>(begin) * p_stride;
#pragma GCC unroll 1
  for (int t = begin; t < end; ++t, from += values.stride, weights += p_stride) {
    typename S::Vec value[kVecs];
    for (int v = 0; v < kVecs; ++v) value[v] = rest > 0 ? S::load_first(from, rest) : S::load(from + v * S::kWidth);
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
      const auto weight = S::set1(weights[r]);
      for (int v = 0; v < kVecs; ++v) sums[r][v] = S::fma(weight, value[v], sums[r][v]);
    }
  }
#pragma GCC unroll 32
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

/// kRows rows of a group: they share what all of them see, and read the rest one by one: a key that a row may not see
/// never touches it, not even as 0 * NaN.
template <class S, int kRows, int kVecs>
void value_rows(const float* p, int p_stride, RowBlock values, int column, const int* seen, float* o,
                std::int64_t o_stride, int rest) {
  int shared = seen[0];
  for (int r = 1; r < kRows; ++r) shared = seen[r] < shared ? seen[r] : shared;
  value_tile<S, kRows, kVecs>(p, p_stride, values, column, 0, shared, o, o_stride, rest);
  for (int r = 0; r < kRows; ++r) {
    if (seen[r] == shared) continue;
    value_tile<S, 1, kVecs>(p + r, p_stride, values, column, shared, seen[r], o + r * o_stride, o_stride, rest);
  }
}

/// Columns [column, column + vecs * width) of every row of a group.
template <class S, int kVecs>
void value_columns(const float* p, int p_stride, RowBlock values, int column, const int* seen, int rows, float* o,
                   std::int64_t o_stride, int rest) {
  constexpr int kRows = S::kValueRows;
  int row = 0;
  for (; row + kRows <= rows; row += kRows) {
    value_rows<S, kRows, kVecs>(p + row, p_stride, values, column, seen + row, o + row * o_stride, o_stride, rest);
  }
  for (; row + 4 <= rows; row += 4) {
    value_rows<S, 4, kVecs>(p + row, p_stride, values, column, seen + row, o + row * o_stride, o_stride, rest);
  }
  for (; row < rows; ++row) {
    value_rows<S, 1, kVecs>(p + row, p_stride, values, column, seen + row, o + row * o_stride, o_stride, rest);
  }
}

template <class S>
void value_block(const float* p, int p_stride, RowBlock values, const int* seen, const LeafArgs& args) {
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

/// A line more than whole lines: keys a power of two apart would share a few lines of the first-level cache.
constexpr int block_stride(int width) { return (width + 15) / 16 * 16 + 16; }

/// `count` rows from row `first` on, `width` columns each: in place when they are f32 of one page, else in `scratch`.
template <class S>
RowBlock rows_as_floats(const LaneRows& from, std::int64_t first, int count, int width, float* scratch) {
  std::int64_t page = first / from.page_rows;
  std::int64_t row = first % from.page_rows;
  const bool floats = from.type == RowType::kF32;
  if (floats && row + count <= from.page_rows) {
    return {static_cast<const float*>(from.pages[page]) + row * from.row_stride + from.lane_offset, from.row_stride};
  }
  const int stride = block_stride(width);
  for (int t = 0; t < count; ++t, ++row) {
    if (row == from.page_rows) {
      ++page;
      row = 0;
    }
    float* to = scratch + t * stride;
    if (floats) {
      const float* at = static_cast<const float*>(from.pages[page]) + row * from.row_stride + from.lane_offset;
      __builtin_memcpy(to, at, static_cast<std::size_t>(width) * sizeof(float));
    } else {
      widen_row<S>(from, from.pages[page], row, width, to);
    }
  }
  return {scratch, stride};
}

inline void clear_rows(const LeafArgs& args) {
  for (int row = 0; row < args.rows; ++row) {
    float* o = args.o + row * args.o_stride;
    for (int v = 0; v < args.value_width; ++v) o[v] = 0;
  }
}

/// The block of rows from `row` on, of `width` columns, where all of it exists on one page and floats are made of it.
inline RowsAhead rows_ahead(const LaneRows& of, std::int64_t row, std::int64_t rows, int width) {
  const std::int64_t on_page = row % of.page_rows;
  if (of.type == RowType::kF32 || row + kKeyBlock > rows || on_page + kKeyBlock > of.page_rows) return {};
  const bool coded = of.type == RowType::kQ8;
  const int element = coded ? 1 : 2;
  const int bytes = coded && width > of.coded ? of.exact_at + (width - of.coded) * 2 : width * element;
  return {static_cast<const char*>(of.pages[row / of.page_rows]) + (on_page * of.row_stride + of.lane_offset) * element,
          of.row_stride * element, bytes * RowsAhead::kStep / (width > 0 ? width : 1)};
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
  float* value_block_rows = key_block + kKeyBlock * block_stride(args.key_width);
  float* scores = value_block_rows + kKeyBlock * block_stride(args.value_width);
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
    const int first = begin - args.first_key_pos;
    const RowBlock keys = rows_as_floats<S>(args.keys, first, count, args.key_width, key_block);
    const RowBlock values =
        args.values_are_keys ? keys : rows_as_floats<S>(args.values, first, count, args.value_width, value_block_rows);

    int seen[kGroupRows];
    for (int row = 0; row < lanes; ++row) {
      const int visible = (row < args.rows ? args.visible[row] : last_visible) - begin;
      const int bounded = visible < 0 ? 0 : visible < count ? visible : count;
      softmax.seen[row] = static_cast<float>(bounded);
      seen[row] = bounded;
    }
    RowsAhead ahead = rows_ahead(args.keys, first + count, args.cached, args.key_width);
    const float* q = args.q_KW;
    for (int v = 0; v < vecs; v += kTileVecs) {
      const int tile = vecs - v >= kTileVecs ? kTileVecs : 1;
      if (tile == kTileVecs) {
        score_block<S, kTileVecs>(q, keys, count, args.key_width, scale, scores + v * kWidth, lanes, ahead);
      } else {
        score_block<S, 1>(q, keys, count, args.key_width, scale, scores + v * kWidth, lanes, ahead);
      }
      ahead = {};
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
