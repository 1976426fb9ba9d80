#include <algorithm>
#include <vector>

#include "device/reference/double_softmax.h"
#include "device/reference/operations.h"
#include "device/reference/panel.h"
#include "device/reference/rows_of_doubles.h"

namespace latte::reference {
namespace {

constexpr std::int64_t kRowBlock = 32;   // packed rows that share one reading of a tile
constexpr std::int64_t kTileRows = 256;  // keys whose softmax is taken at once

/// Cached rows [begin, end) of one lane, read into doubles, and the panels over them.
class Tile {
 public:
  /// begin and end are row numbers of `rows`.
  void take(const KeyRows& rows, std::int64_t lane, std::int64_t begin, std::int64_t end, int width) {
    values_.resize(static_cast<std::size_t>((end - begin) * width));
    for (std::int64_t t = begin; t < end; ++t) {
      read_cached(rows, t, lane, width, values_.data() + (t - begin) * width);
    }
    matrix_ = {values_.data(), DType::kF64, end - begin, width, width};
  }
  ConstMatRef matrix() const { return matrix_; }

 private:
  std::vector<double> values_;
  ConstMatRef matrix_;
};

DoubleState state_of(const Partials& partials, std::int64_t slot, std::int64_t lane, std::int64_t row) {
  const std::int64_t index = (slot * partials.lanes + lane) * partials.rows + row;
  return {static_cast<double*>(partials.o) + index * partials.width,
          static_cast<DoubleLog2Sum*>(partials.log2_sums) + index};
}

void clear(DoubleState state, int width) {
  std::fill_n(state.o, width, 0.0);
  *state.log2_sum = DoubleLog2Sum{};
}

/// The attention of some packed rows of one lane to one chunk, tile by tile.
class ChunkAttention {
 public:
  ChunkAttention(const AttendArgs& args, const AttendSequence& sequence, std::int64_t lane, std::int64_t first_row,
                 std::int64_t row_count)
      : args_(args), sequence_(sequence), lane_(lane), first_row_(first_row), row_count_(row_count) {}

  /// Replaces what the chunk's slot holds of these rows, or folds into it.
  void run(const KvChunk& chunk) {
    o_wV_.assign(static_cast<std::size_t>(row_count_ * args_.value_width), 0.0);
    sums_w_.assign(static_cast<std::size_t>(row_count_), DoubleLog2Sum{});
    for (std::int64_t begin = chunk.begin; begin < chunk.end; begin += kTileRows) {
      const std::int64_t end = std::min<std::int64_t>(begin + kTileRows, chunk.end);
      if (visible_end(row_count_ - 1) <= begin) break;  // the last row sees furthest
      run_tile(begin, end);
    }
    for (std::int64_t w = 0; w < row_count_; ++w) {
      const DoubleState slot = state_of(args_.partials, chunk.slot, lane_, sequence_.first_row + first_row_ + w);
      if (chunk.opens_slot) clear(slot, args_.value_width);
      fold(slot, o_wV_.data() + w * args_.value_width, sums_w_[w], args_.value_width);
    }
  }

 private:
  /// One past the last cache index that row w of the block sees.
  std::int64_t visible_end(std::int64_t w) const {
    return sequence_.first_query_pos + (first_row_ + w) / args_.rows_per_query + 1;
  }

  const double* query(std::int64_t w) const {
    return double_row(sequence_.q_WK, first_row_ + w) + lane_ * sequence_.q_lane_stride;
  }

  void run_tile(std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin - sequence_.first_key_pos;
    const std::int64_t tile_rows = end - begin;
    keys_.take(sequence_.keys, lane_, first, first + tile_rows, args_.key_width);
    values_.take(sequence_.values, lane_, first, first + tile_rows, args_.value_width);

    // scores[w, t] = scale q_w . k_t, in powers of two.
    scores_wt_.resize(static_cast<std::size_t>(row_count_ * kTileRows));
    for (std::int64_t t = 0; t < tile_rows; t += kPanelWidth) {
      panel_.take_rows(keys_.matrix(), t);
      for (std::int64_t w = 0; w < row_count_; ++w) {
        double sums[kPanelWidth];
        panel_.multiply(query(w), args_.key_width, sums);
        for (std::int64_t j = 0; j < kPanelWidth; ++j) scores_wt_[w * kTileRows + t + j] = sums[j] * args_.scale_log2;
      }
    }

    // scores become weights 2^score / sum; a row reads only what it sees.
    tile_sums_w_.assign(static_cast<std::size_t>(row_count_), DoubleLog2Sum{});
    for (std::int64_t w = 0; w < row_count_; ++w) {
      const std::int64_t seen = std::clamp<std::int64_t>(visible_end(w) - begin, 0, tile_rows);
      tile_sums_w_[w] = softmax(scores_wt_.data() + w * kTileRows, seen);
    }

    // o[w] = sum over t of weight[w, t] value_t.
    tile_o_wV_.resize(static_cast<std::size_t>(row_count_ * args_.value_width));
    for (std::int64_t i = 0; i < args_.value_width; i += kPanelWidth) {
      panel_.take_cols(values_.matrix(), i);
      for (std::int64_t w = 0; w < row_count_; ++w) {
        const std::int64_t seen = std::clamp<std::int64_t>(visible_end(w) - begin, 0, tile_rows);
        double sums[kPanelWidth];
        panel_.multiply(scores_wt_.data() + w * kTileRows, seen, sums);
        std::copy_n(sums, std::min<std::int64_t>(kPanelWidth, args_.value_width - i),
                    tile_o_wV_.data() + w * args_.value_width + i);
      }
    }
    for (std::int64_t w = 0; w < row_count_; ++w) {
      fold({o_wV_.data() + w * args_.value_width, &sums_w_[w]}, tile_o_wV_.data() + w * args_.value_width,
           tile_sums_w_[w], args_.value_width);
    }
  }

  /// Turns scores into weights that add up to 1, and returns log2 of the sum of 2^score.
  static DoubleLog2Sum softmax(double* scores_t, std::int64_t count) {
    if (count == 0) return {};
    const double top = *std::max_element(scores_t, scores_t + count);
    double sum = 0;
    for (std::int64_t t = 0; t < count; ++t) {
      scores_t[t] = std::exp2(scores_t[t] - top);
      sum += scores_t[t];
    }
    for (std::int64_t t = 0; t < count; ++t) scores_t[t] /= sum;
    return {top + std::log2(sum)};
  }

  const AttendArgs& args_;
  const AttendSequence& sequence_;
  std::int64_t lane_;
  std::int64_t first_row_;
  std::int64_t row_count_;

  Tile keys_, values_;
  Panel panel_;
  std::vector<double> scores_wt_, tile_o_wV_, o_wV_;
  std::vector<DoubleLog2Sum> tile_sums_w_, sums_w_;
};

/// The tree of MergeArgs over one lane and row.
void merge_row(const MergeArgs& args, const MergeRange& range, std::int64_t lane, std::int64_t row, double* out) {
  const int width = args.partials.width;
  std::vector<double> o_SV(static_cast<std::size_t>(range.slot_count) * width);
  std::vector<DoubleLog2Sum> sums_S(static_cast<std::size_t>(range.slot_count));
  for (int s = 0; s < range.slot_count; ++s) {
    const DoubleState slot = state_of(args.partials, range.first_slot + s, lane, row);
    std::copy_n(slot.o, width, o_SV.data() + static_cast<std::int64_t>(s) * width);
    sums_S[s] = *slot.log2_sum;
  }
  for (std::int64_t count = range.slot_count; count > 1; count = (count + kMergeFanIn - 1) / kMergeFanIn) {
    for (std::int64_t group = 0; group * kMergeFanIn < count; ++group) {
      const std::int64_t first = group * kMergeFanIn;
      std::copy_n(o_SV.data() + first * width, width, o_SV.data() + group * width);
      sums_S[group] = sums_S[first];
      for (std::int64_t s = first + 1; s < std::min(first + kMergeFanIn, count); ++s) {
        fold({o_SV.data() + group * width, &sums_S[group]}, o_SV.data() + s * width, sums_S[s], width);
      }
    }
  }
  const bool empty = sums_S.empty() || sums_S[0].empty();
  for (int i = 0; i < width; ++i) out[i] = empty ? 0.0 : o_SV[i];
}

}  // namespace

void attend_partial(const AttendArgs& args) {
  expects(args.partials.dtype == DType::kF64, "partials of the reference backend are F64");
  expects(args.partials.lanes == args.lanes && args.partials.width == args.value_width,
          "partials have the call's shape");
  for (std::size_t s = 0; s < args.sequences.size(); ++s) {
    const AttendSequence& sequence = args.sequences[s];
    const std::int64_t packed_rows = sequence.q_WK.rows;
    double pairs = 0;
    std::vector<KvChunk> chunks;
    for (const KvChunk& chunk : args.chunks) {
      if (std::cmp_not_equal(chunk.sequence, s)) continue;
      expects(chunk.slot >= 0 && chunk.slot < args.partials.slots, "a chunk's slot exists");
      expects(chunk.begin >= sequence.first_key_pos && chunk.end - sequence.first_key_pos <= sequence.keys.rows &&
                  chunk.end - sequence.first_key_pos <= sequence.values.rows,
              "a chunk's rows exist");
      chunks.push_back(chunk);
      pairs += static_cast<double>(chunk.end - chunk.begin) * static_cast<double>(packed_rows * args.lanes);
    }
    const std::int64_t blocks = (packed_rows + kRowBlock - 1) / kRowBlock;
    for_blocks(blocks * args.lanes, 1, pairs * (args.key_width + args.value_width),
               [&](std::int64_t item, std::int64_t) {
                 const std::int64_t first_row = item / args.lanes * kRowBlock;
                 ChunkAttention attention(args, sequence, item % args.lanes, first_row,
                                          std::min(kRowBlock, packed_rows - first_row));
                 for (const KvChunk& chunk : chunks) attention.run(chunk);
               });
  }
}

void merge_partials(const MergeArgs& args) {
  for (const MergeRange& range : args.ranges) {
    expects(range.first_slot >= 0 && range.first_slot + range.slot_count <= args.partials.slots, "merged slots exist");
    for (std::int64_t w = range.first_row; w < range.first_row + range.row_count; ++w) {
      for (std::int64_t lane = 0; lane < args.partials.lanes; ++lane) {
        merge_row(args, range, lane, w, double_row(args.out, w) + lane * args.out_lane_stride);
      }
    }
  }
}

}  // namespace latte::reference
