#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cpu/amx_tiles.h"
#include "device/cpu/attend_kernels.h"

// The attention core on AMX, for rows of bf16 or that may be rounded to it (Q8, a workspace of floats). Scores are keys
// times packed rows: a block of the cache is the tile operand as it lies in memory. The value product is probabilities
// times values, whose rows are interleaved in pairs, two tiles of columns at a time, for all packed rows. Queries and
// probabilities are rounded to bf16; the softmax is in f32.

namespace latte {
namespace {

static_assert(kKeyBlock == 64, "a block of keys is four tiles of scores and two of probabilities");

/// Keys of one online softmax, aligned to absolute multiples: results are rescaled and written once for all of them.
constexpr int kSpan = kAmxSpan;
constexpr int kSpanDepths = kSpan / kTileDepth;
constexpr int kBlockDepths = kKeyBlock / kTileDepth;
constexpr int kSpanBlocks = kSpan / kKeyBlock;
/// Packed rows whose scores of a span are made and used at a time: they stay in the first-level cache.
constexpr int kScoreRows = 2 * kTileRows;
/// Vectors of rows from which on it pays to keep keys in the first-level cache instead.
constexpr int kVecsForKeys = 4;
/// Depths of one pass over a key: two vectors' tiles of so many are 20 KB.
constexpr std::int64_t kScoreDepths = 10;

constexpr std::int64_t tiles_of_depth(std::int64_t width) { return (width + kTileDepth - 1) / kTileDepth; }

/// Memory of one leaf, cut from LeafArgs::scratch. Sizes in leaf_scratch_floats.
struct AmxLeafMemory {
  std::uint16_t* keys;         ///< [span][key tiles * 32]: blocks whose rows cannot be read in place
  std::uint16_t* values;       ///< [2 column tiles][32 keys of the span][16 pairs][16 columns][2]
  std::uint16_t* next_values;  ///< the same, of the next columns
  float* scores;               ///< [span][rows]: of two vectors, or where keys stay of all, a vector apart
  std::uint16_t* p;            ///< [vector of rows][32 keys of the span][16 rows][32 keys]
  float* state;                ///< [4][lanes]
};

/// q [rows, key_width] to tiles: [vector of rows][depth][16 pairs][16 rows][2], rounded to bf16; padding is 0. Rows are
/// read one after the other, which the processor fetches ahead; then tiles are turned in the first-level cache.
inline void prepare_pairs(const float* q, std::int64_t q_stride, int rows, int key_width, std::uint16_t* to) {
  const std::int64_t depths = tiles_of_depth(key_width);
  for (int first = 0; first < rows; first += kTileRows, to += depths * kTileElements) {
    for (int row = 0; row < kTileRows; ++row) {
      const float* from = q + (first + row) * q_stride;
      for (std::int64_t depth = 0; depth < depths; ++depth) {
        const std::int64_t k = depth * kTileDepth;
        const __m512i values = first + row < rows ? round_depth(from + k, key_width - k) : _mm512_setzero_si512();
        _mm512_storeu_si512(to + depth * kTileElements + row * kTileDepth, values);
      }
    }
    for (std::int64_t depth = 0; depth < depths; ++depth) {
      std::uint16_t* at = to + depth * kTileElements;
      __m512i tile[kTileRows];
      for (int row = 0; row < kTileRows; ++row) tile[row] = _mm512_loadu_si512(at + row * kTileDepth);
      transpose_16x16(tile);
      for (int pair = 0; pair < kTileRows; ++pair) _mm512_storeu_si512(at + pair * kTileDepth, tile[pair]);
    }
  }
}

inline void amx_prepare_queries(const QueryRows& q, float* to) {
  if (q.bf16) {
    prepare_pairs(q.q, q.stride, q.rows, q.key_width, reinterpret_cast<std::uint16_t*>(to));
  } else {
    prepare_queries<Avx512>(q, to);
  }
}

/// A row of a lane, or no row, 32 values of bf16 at a time: F32 and Q8 columns are rounded.
class RowOf {
 public:
  RowOf() = default;
  RowOf(const LaneRows& rows, std::int64_t t, bool exists) : rows_(&rows) {
    if (!exists) return;
    const std::int64_t offset = t % rows.page_rows * rows.row_stride + rows.lane_offset;
    const int element = rows.type == RowType::kBf16 ? 2 : rows.type == RowType::kF32 ? 4 : 1;
    row_ = static_cast<const std::byte*>(rows.pages[t / rows.page_rows]) + offset * element;
  }

  const std::uint16_t* bf16() const { return reinterpret_cast<const std::uint16_t*>(row_); }

  /// Values [0, width) and zeros to the end of a depth.
  void copy(std::int64_t width, std::uint16_t* to) const {
    std::int64_t at = 0;
    if (row_ != nullptr && rows_->type == RowType::kQ8) {
      const std::int64_t coded = rows_->coded < width ? rows_->coded : width;
      for (; at + kRowBlock <= coded; at += kRowBlock) {
        const auto factor = Avx512::set1(scale(at));
        _mm512_storeu_si512(to + at, scaled_codes(at, factor));
        _mm512_storeu_si512(to + at + kTileDepth, scaled_codes(at + kTileDepth, factor));
      }
    }
    for (; at < width; at += kTileDepth) _mm512_storeu_si512(to + at, load(at, width));
  }

  /// Values [at, at + 32) of `width`, those past it 0. `at` is a multiple of 32.
  [[gnu::always_inline]] __m512i load(std::int64_t at, std::int64_t width) const {
    if (row_ == nullptr) return _mm512_setzero_si512();
    if (rows_->type == RowType::kBf16) return load_depth(bf16() + at, width - at);
    if (rows_->type == RowType::kF32) return round_depth(reinterpret_cast<const float*>(row_) + at, width - at);
    if (at + kTileDepth <= width && at + kTileDepth <= rows_->coded) return scaled_codes(at, Avx512::set1(scale(at)));
    if (at >= rows_->coded) return load_depth(exact() + (at - rows_->coded), width - at);
    return mixed(at, width);
  }

 private:
  static_assert(kRowBlock == 2 * kTileDepth, "two depths of codes share a scale");

  float scale(std::int64_t column) const { return reinterpret_cast<const float*>(row_)[column / kRowBlock]; }
  const std::int8_t* codes() const { return reinterpret_cast<const std::int8_t*>(row_ + rows_->codes_at); }
  const std::uint16_t* exact() const { return reinterpret_cast<const std::uint16_t*>(row_ + rows_->exact_at); }

  [[gnu::always_inline]] __m512i scaled_codes(std::int64_t at, __m512 factor) const {
    const auto low = Avx512::mul(Avx512::load_codes(codes() + at), factor);
    const auto high = Avx512::mul(Avx512::load_codes(codes() + at + kTileDepth / 2), factor);
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
  }
  /// Where the codes end, or the width cuts them.
  __m512i mixed(std::int64_t at, std::int64_t width) const {
    float values[kTileDepth] = {};
    for (int i = 0; i < kTileDepth && at + i < width; ++i) {
      const std::int64_t column = at + i;
      if (column < rows_->coded) {
        values[i] = static_cast<float>(codes()[column]) * scale(column);
      } else {
        values[i] = __builtin_bit_cast(float, std::uint32_t{exact()[column - rows_->coded]} << 16);
      }
    }
    return round_depth(values, kTileDepth);
  }

  const LaneRows* rows_ = nullptr;  // outlives it
  const std::byte* row_ = nullptr;
};

/// A block of keys as tiles are loaded from it: in place where it is whole, else a copy padded with zeros.
struct KeyBlock {
  const std::uint16_t* rows = nullptr;
  std::int64_t stride = 0;  ///< elements
};

inline KeyBlock key_block(const LaneRows& keys, std::int64_t first, int count, int width, std::uint16_t* copy) {
  const bool in_place = keys.type == RowType::kBf16 && count == kKeyBlock && width % kTileDepth == 0 &&
                        first % keys.page_rows + kKeyBlock <= keys.page_rows;
  if (in_place) return {RowOf(keys, first, true).bf16(), keys.row_stride};
  const std::int64_t depths = tiles_of_depth(width);
  for (int t = 0; t < kKeyBlock; ++t) {
    RowOf(keys, first + t, t < count).copy(width, copy + t * depths * kTileDepth);
  }
  return {copy, depths * kTileDepth};
}

/// The keys of the next span, fetched into the second-level cache a few lines in every step of the work on this one, so
/// that memory is never idle. Tiles gather lines a row apart, which the processor's own prefetch does not follow.
class SpanAhead {
 public:
  /// `first`: the next span's row of all `cached`; `steps`: of this span's work. Blocks that do not lie in one piece
  /// are left out.
  SpanAhead(const LaneRows& keys, std::int64_t first, std::int64_t cached, int width, std::int64_t steps) {
    const bool coded = keys.type == RowType::kQ8;
    const std::int64_t stride = coded ? (keys.codes_at + keys.coded + 3) / 4 * 4 : width;
    if (keys.row_stride != stride || (!coded && keys.type != RowType::kBf16)) return;
    const std::int64_t row_bytes = coded ? stride : 2 * stride;
    for (int block = 0; block < kSpanBlocks; ++block) {
      const RowsAhead rows = rows_ahead(keys, first + block * kKeyBlock, cached, width);
      if (rows.first != nullptr) blocks_[count_++] = rows.first;
    }
    lines_ = (kKeyBlock * row_bytes + kLineBytes - 1) / kLineBytes;
    lines_of_step_ = (lines_ * count_ + steps - 1) / steps;
  }

  [[gnu::always_inline]] void step() {
    if (left_ == 0) {
      if (next_ == count_) return;
      at_ = blocks_[next_++];
      left_ = lines_;
    }
    const std::int64_t lines = left_ < lines_of_step_ ? left_ : lines_of_step_;
    for (std::int64_t i = 0; i < lines; ++i) _mm_prefetch(at_ + i * kLineBytes, _MM_HINT_T1);
    at_ += lines * kLineBytes;
    left_ -= lines;
  }

 private:
  static constexpr int kLineBytes = 64;
  const char* blocks_[kSpanBlocks] = {};
  int count_ = 0;
  int next_ = 0;
  std::int64_t lines_ = 0;  ///< of a block
  std::int64_t lines_of_step_ = 0;
  const char* at_ = nullptr;
  std::int64_t left_ = 0;
};

/// Steps of the work on a span: depths of score tiles and of value tiles.
inline std::int64_t span_steps(int vecs, std::int64_t depths, int value_width) {
  const std::int64_t pairs = (vecs + 1) / 2;
  const std::int64_t scores = kSpanBlocks * depths * (vecs == 1 ? 1 : 2 * pairs);
  const std::int64_t columns = (value_width + 2 * kTileRows - 1) / (2 * kTileRows);
  return scores + columns * kSpanDepths * pairs;
}

/// The value rows of a span, those past its keys absent, to the end of their block.
struct SpanRows {
  RowOf rows[kSpan];
  int count = 0;

  SpanRows(const LaneRows& values, std::int64_t first, int keys) {
    count = (keys + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
    for (int t = 0; t < count; ++t) rows[t] = RowOf(values, first + t, t < keys);
  }
};

/// Interleaves 32 columns of a span's rows in pairs: two column tiles that stay in the first-level cache while all
/// packed rows meet them.
class PairedColumns {
 public:
  /// The first `count` rows, in `steps` steps.
  PairedColumns(const SpanRows& span, int count, int column, int width, std::int64_t steps, std::uint16_t* to)
      : span_(span), count_(count), column_(column), width_(width), to_(to) {
    rows_of_step_ = static_cast<int>((count / 2 + steps - 1) / steps * 2);
  }

  [[gnu::always_inline]] void step() {
    const int end = row_ + rows_of_step_ < count_ ? row_ + rows_of_step_ : count_;
    for (; row_ < end; row_ += 2) {
      __m512i low, high;
      interleave(span_.rows[row_].load(column_, width_), span_.rows[row_ + 1].load(column_, width_), low, high);
      std::uint16_t* pair = to_ + row_ / kTileDepth * kTileElements + row_ % kTileDepth / 2 * kTileDepth;
      _mm512_storeu_si512(pair, low);
      _mm512_storeu_si512(pair + kSpanDepths * kTileElements, high);
    }
  }
  void finish() {
    while (row_ < count_) step();
  }

 private:
  const SpanRows& span_;
  int count_, column_, width_;
  std::uint16_t* to_;
  int row_ = 0;
  int rows_of_step_ = 0;
};

/// What is done in vectors, and asked of memory, while tiles are multiplied: those are units of their own.
struct BesideTiles {
  SpanAhead& ahead;
  PairedColumns& next_columns;

  [[gnu::always_inline]] void step() {
    ahead.step();
    next_columns.step();
  }
};

/// Depths [begin, end) of a sum over the key's columns; what lies before them is in the scores already.
struct DepthPass {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Reads the sums that a pass goes on with, or begins them.
[[gnu::always_inline]] inline void begin_scores(const DepthPass& pass, const float* (&sums)[4],
                                                std::int64_t row_bytes) {
  if (pass.begin == 0) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums[0], row_bytes);
    _tile_loadd(1, sums[1], row_bytes);
    _tile_loadd(2, sums[2], row_bytes);
    _tile_loadd(3, sums[3], row_bytes);
  }
}

/// Which operand of the scores stays in the first-level cache while the other goes by.
enum class Stays { kQueries, kKeys };

/// scores[t][row] of two vectors of rows and 32 keys of a block.
template <Stays kStays>
inline void score_two_by_two(const KeyBlock& keys, int first_key, const std::uint16_t* q, std::int64_t depths,
                             const DepthPass& pass, SpanAhead& ahead, float* scores, std::int64_t score_stride) {
  const std::uint16_t* near = keys.rows + first_key * keys.stride;
  const std::uint16_t* far = near + kTileRows * keys.stride;
  const std::uint16_t* next_q = q + depths * kTileElements;
  const std::int64_t row_bytes = 2 * keys.stride;
  const std::int64_t kToBytes = 4 * score_stride;
  float* to = scores + first_key * score_stride;
  float* far_to = to + kTileRows * score_stride;
  const float* sums[4] = {to, to + kTileRows, far_to, far_to + kTileRows};
  begin_scores(pass, sums, kToBytes);
  for (std::int64_t depth = pass.begin; depth < pass.end; ++depth) {
    if constexpr (kStays == Stays::kQueries) {
      _tile_stream_loadd(4, near + depth * kTileDepth, row_bytes);
      _tile_loadd(6, q + depth * kTileElements, 64);
      _tile_loadd(7, next_q + depth * kTileElements, 64);
    } else {
      _tile_loadd(4, near + depth * kTileDepth, row_bytes);
      _tile_stream_loadd(6, q + depth * kTileElements, 64);
      _tile_stream_loadd(7, next_q + depth * kTileElements, 64);
    }
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kStays == Stays::kQueries) {
      _tile_stream_loadd(5, far + depth * kTileDepth, row_bytes);
    } else {
      _tile_loadd(5, far + depth * kTileDepth, row_bytes);
    }
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    ahead.step();
  }
  _tile_stored(0, to, kToBytes);
  _tile_stored(1, to + kTileRows, kToBytes);
  _tile_stored(2, far_to, kToBytes);
  _tile_stored(3, far_to + kTileRows, kToBytes);
}

/// scores[t][row] of one vector of rows and a whole block of keys.
inline void score_one_by_four(const KeyBlock& keys, const std::uint16_t* q, std::int64_t depths, SpanAhead& ahead,
                              float* scores) {
  const std::int64_t row_bytes = 2 * keys.stride;
  const std::int64_t tile = kTileRows * keys.stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t depth = 0; depth < depths; ++depth) {
    const std::uint16_t* from = keys.rows + depth * kTileDepth;
    _tile_loadd(7, q + depth * kTileElements, 64);
    _tile_stream_loadd(4, from, row_bytes);
    _tile_dpbf16ps(0, 4, 7);
    _tile_stream_loadd(5, from + tile, row_bytes);
    _tile_dpbf16ps(1, 5, 7);
    _tile_stream_loadd(6, from + 2 * tile, row_bytes);
    _tile_dpbf16ps(2, 6, 7);
    _tile_stream_loadd(4, from + 3 * tile, row_bytes);
    _tile_dpbf16ps(3, 4, 7);
    ahead.step();
  }
  constexpr std::int64_t kToBytes = 4 * kScoreRows;
  _tile_stored(0, scores, kToBytes);
  _tile_stored(1, scores + kTileRows * kScoreRows, kToBytes);
  _tile_stored(2, scores + 2 * kTileRows * kScoreRows, kToBytes);
  _tile_stored(3, scores + 3 * kTileRows * kScoreRows, kToBytes);
}

/// scores[t][row] of one or two vectors of rows and the blocks of a span: two in passes over so many depths that their
/// tiles stay in the first-level cache while the keys go by.
inline void score_span(const KeyBlock (&keys)[kSpanBlocks], int blocks, const std::uint16_t* q, bool two_vectors,
                       std::int64_t depths, SpanAhead& ahead, float* scores) {
  constexpr std::int64_t kBlockScores = kKeyBlock * kScoreRows;
  if (!two_vectors) {
    for (int block = 0; block < blocks; ++block)
      score_one_by_four(keys[block], q, depths, ahead, scores + block * kBlockScores);
    return;
  }
  const std::int64_t passes = (depths + kScoreDepths - 1) / kScoreDepths;
  for (std::int64_t i = 0; i < passes; ++i) {
    const DepthPass pass{depths * i / passes, depths * (i + 1) / passes};
    for (int block = 0; block < blocks; ++block) {
      for (int t = 0; t < kKeyBlock; t += 2 * kTileRows)
        score_two_by_two<Stays::kQueries>(keys[block], t, q, depths, pass, ahead, scores + block * kBlockScores,
                                          kScoreRows);
    }
  }
}

/// scores[t][row] of all vectors of rows, an even number: 32 keys stay in the first-level cache while the queries,
/// which lie tile after tile, go by.
inline void score_all(const KeyBlock (&keys)[kSpanBlocks], int blocks, const std::uint16_t* q, int vecs,
                      std::int64_t depths, SpanAhead& ahead, float* scores, std::int64_t stride) {
  for (int block = 0; block < blocks; ++block) {
    for (int t = 0; t < kKeyBlock; t += 2 * kTileRows) {
      for (int v = 0; v < vecs; v += 2) {
        score_two_by_two<Stays::kKeys>(keys[block], t, q + v * depths * kTileElements, depths, {0, depths}, ahead,
                                       scores + block * kKeyBlock * stride + v * kTileRows, stride);
      }
    }
  }
}

/// 2^x, to 1e-7 of it; exactly 1 for 0, which leaves what is rescaled as it is; 0 for -infinity, NaN for NaN.
[[gnu::always_inline]] inline __m512 exp2_scaled(__m512 x) {
  const __m512 f = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);  // x - floor(x)
  __m512 p = _mm512_set1_ps(0x1.c72118p-13f);  // of the least relative error for 2^f on [0, 1]
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.461954p-10f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.3d28p-7f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.c685p-5f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.ebfd9ep-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.62e42ap-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, x);
}

/// Turns one vector of rows' scores of `blocks` blocks into probabilities as tiles, and moves the rows' state on. Top
/// and mass are of scaled scores. `scale` is above 0.
inline void amx_softmax(const float* scores, std::int64_t stride, int blocks, bool all_seen, float scale,
                        const SoftmaxRows& rows, std::uint16_t* p) {
  using S = Avx512;
  const auto nothing = S::set1(kNothingSeen);
  const auto seen = S::load(rows.seen);
  const auto factor = S::set1(scale);
  const auto score = [&](int t) {
    const auto raw = S::load(scores + t * stride);
    return all_seen ? raw : S::select_less(S::set1(static_cast<float>(t)), seen, raw, nothing);
  };
  const auto old_top = S::load(rows.top);
  auto highest = nothing;
  for (int t = 0; t < blocks * kKeyBlock; ++t) highest = S::max(highest, score(t));
  const auto top = S::max(old_top, S::mul(highest, factor));
  const auto base = S::select_less(top, S::set1(-__FLT_MAX__), S::zero(), top);
  const auto minus_base = S::sub(S::zero(), base);
  const auto alpha = exp2_scaled(S::sub(old_top, base));
  auto mass = S::mul(S::load(rows.mass), alpha);
  for (int depth = 0; depth < blocks * kBlockDepths; ++depth) {
    __m512i pairs[kTileRows];
    for (int pair = 0; pair < kTileRows; ++pair) {
      const int t = depth * kTileDepth + 2 * pair;
      const auto a = exp2_scaled(S::fma(score(t), factor, minus_base));
      const auto b = exp2_scaled(S::fma(score(t + 1), factor, minus_base));
      mass = S::add(S::add(mass, a), b);
      pairs[pair] = bf16_pairs(a, b);
    }
    transpose_16x16(pairs);
    for (int row = 0; row < kTileRows; ++row)
      _mm512_storeu_si512(p + depth * kTileElements + row * kTileDepth, pairs[row]);
  }
  S::store(rows.top, top);
  S::store(rows.mass, mass);
  S::store(rows.alpha, alpha);
}

/// o[two column tiles of one or two vectors of rows] += p * values over `depths`; `first`: o holds nothing yet.
inline void value_tiles(const std::uint16_t* p, const std::uint16_t* values, int depths, bool first, bool two_vectors,
                        BesideTiles& beside, float* o, std::int64_t o_stride) {
  const std::int64_t o_bytes = 4 * o_stride;
  float* const lower_o = o + kTileRows * o_stride;
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, o, o_bytes);
    _tile_loadd(1, o + kTileRows, o_bytes);
    if (two_vectors) {
      _tile_loadd(2, lower_o, o_bytes);
      _tile_loadd(3, lower_o + kTileRows, o_bytes);
    }
  }
  const std::uint16_t* lower = p + kSpanDepths * kTileElements;
  const std::uint16_t* right = values + kSpanDepths * kTileElements;
  for (int depth = 0; depth < depths; ++depth) {
    const int at = depth * kTileElements;
    _tile_stream_loadd(4, p + at, 64);
    _tile_loadd(6, values + at, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + at, 64);
    _tile_dpbf16ps(1, 4, 7);
    if (two_vectors) {
      _tile_stream_loadd(5, lower + at, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    beside.step();
  }
  _tile_stored(0, o, o_bytes);
  _tile_stored(1, o + kTileRows, o_bytes);
  if (two_vectors) {
    _tile_stored(2, lower_o, o_bytes);
    _tile_stored(3, lower_o + kTileRows, o_bytes);
  }
}

/// o += p * values of a span, or = where it is the first.
inline void add_values(AmxLeafMemory& memory, const SpanRows& span, const LeafArgs& args, int vecs, bool first,
                       SpanAhead& ahead) {
  constexpr int kColumns = 2 * kTileRows;
  const int depths = span.count / kTileDepth;
  const std::int64_t steps = std::int64_t{depths} * ((vecs + 1) / 2);
  PairedColumns(span, args.value_width > 0 ? span.count : 0, 0, args.value_width, 1, memory.values).finish();
  for (int column = 0; column < args.value_width; column += kColumns) {
    const bool more = column + kColumns < args.value_width;
    PairedColumns next_columns(span, more ? span.count : 0, column + kColumns, args.value_width, steps,
                               memory.next_values);
    BesideTiles beside{ahead, next_columns};
    before_tile_loads();
    for (int v = 0; v < vecs; v += 2) {
      value_tiles(memory.p + v * std::int64_t{kSpanDepths} * kTileElements, memory.values, depths, first, v + 1 < vecs,
                  beside, args.o + v * kTileRows * args.o_stride + column, args.o_stride);
    }
    next_columns.finish();
    std::uint16_t* const paired = memory.next_values;
    memory.next_values = memory.values;
    memory.values = paired;
  }
}

inline AmxLeafMemory amx_leaf_memory(const LeafArgs& args, int lanes) {
  float* at = args.scratch;
  const auto take = [&](std::int64_t floats) {
    float* const start = at;
    at += (floats + kTileRows - 1) / kTileRows * kTileRows;
    return start;
  };
  AmxLeafMemory memory;
  memory.keys = reinterpret_cast<std::uint16_t*>(take(kSpan * tiles_of_depth(args.key_width) * kTileDepth / 2));
  memory.values = reinterpret_cast<std::uint16_t*>(take(std::int64_t{kSpan} * kTileDepth / 2));
  memory.next_values = reinterpret_cast<std::uint16_t*>(take(std::int64_t{kSpan} * kTileDepth / 2));
  memory.scores = take(std::int64_t{kSpan} * (lanes + kTileRows));
  memory.p = reinterpret_cast<std::uint16_t*>(take(std::int64_t{kSpan} * lanes / 2));
  memory.state = take(4 * std::int64_t{lanes});
  return memory;
}

inline void amx_attend_leaf(const LeafArgs& args) {
  if (!args.bf16) return attend_leaf<Avx512>(args);
  const TileUse tiles;
  const int vecs = (args.rows + kTileRows - 1) / kTileRows;
  const int lanes = vecs * kTileRows;
  const std::int64_t depths = tiles_of_depth(args.key_width);
  AmxLeafMemory memory = amx_leaf_memory(args, lanes);
  const SoftmaxRows softmax{memory.state, memory.state + lanes, memory.state + 2 * lanes, memory.state + 3 * lanes};
  for (int row = 0; row < lanes; ++row) {
    softmax.top[row] = kNothingSeen;
    softmax.mass[row] = 0;
  }
  const auto* q = reinterpret_cast<const std::uint16_t*>(args.q_KW);
  // Codes become bf16 once for both products: the copies of a span's keys are then its values, too.
  const bool values_are_copies = args.values_are_keys && args.keys.type == RowType::kQ8;
  void* const copies = memory.keys;
  const LaneRows copied_rows{
      .pages = &copies, .page_rows = kSpan, .row_stride = depths * kTileDepth, .type = RowType::kBf16};
  const LaneRows& values = values_are_copies ? copied_rows : args.values_are_keys ? args.keys : args.values;
  const int last_visible = args.visible[args.rows - 1];
  const int end = args.end < last_visible ? args.end : last_visible;
  bool first = true;
  for (int begin = args.begin; begin < end;) {
    const int next = (begin / kSpan + 1) * kSpan;
    const int count = (next < end ? next : end) - begin;
    const int blocks = (count + kKeyBlock - 1) / kKeyBlock;
    const std::int64_t row = begin - args.first_key_pos;
    KeyBlock keys[kSpanBlocks];
    SpanAhead ahead(args.keys, row + kSpan, args.cached, args.key_width, span_steps(vecs, depths, args.value_width));
    for (int block = 0; block < blocks; ++block) {
      const int before = block * kKeyBlock;
      const int keys_left = count - before < kKeyBlock ? count - before : kKeyBlock;
      keys[block] =
          key_block(args.keys, row + before, keys_left, args.key_width, memory.keys + before * depths * kTileDepth);
    }
    const bool keys_stay = vecs >= kVecsForKeys && vecs % 2 == 0;
    const std::int64_t stride = keys_stay ? lanes + kTileRows : kScoreRows;
    if (keys_stay) {
      before_tile_loads();
      score_all(keys, blocks, q, vecs, depths, ahead, memory.scores, stride);
    }
    for (int v = 0; v < vecs; ++v) {
      const int at = v * kTileRows;
      const int scored = keys_stay ? v : v % 2;
      if (!keys_stay && scored == 0) {
        before_tile_loads();
        score_span(keys, blocks, q + v * depths * kTileElements, v + 1 < vecs, depths, ahead, memory.scores);
      }
      bool all_seen = count == blocks * kKeyBlock;
      for (int i = at; i < at + kTileRows; ++i) {
        const int visible = (i < args.rows ? args.visible[i] : last_visible) - begin;
        const int bounded = visible < 0 ? 0 : visible < count ? visible : count;
        softmax.seen[i] = static_cast<float>(bounded);
        all_seen = all_seen && bounded == count;
      }
      amx_softmax(memory.scores + scored * kTileRows, stride, blocks, all_seen, args.scale_log2,
                  {softmax.top + at, softmax.mass + at, softmax.alpha + at, softmax.seen + at},
                  memory.p + v * std::int64_t{kSpanDepths} * kTileElements);
    }
    if (!first) rescale_rows<Avx512>(softmax.alpha, args);
    add_values(memory, SpanRows(values, values_are_copies ? 0 : row, count), args, vecs, first, ahead);
    first = false;
    begin += count;
  }
  if (first) clear_rows(args);
  finish_rows(softmax, args.rows, args.shares, args.log2_sums);
}

}  // namespace
}  // namespace latte
