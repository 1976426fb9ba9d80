#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace latte {

/// Byte-level byte pair encoding of one piece of text: adjacent symbols merge, lowest rank first, leftmost among
/// equals. Immutable once built, shared between threads.
class Bpe {
 public:
  /// What a pair of neighbouring tokens becomes, and how early.
  struct Merge {
    std::int32_t rank;
    std::int32_t merged;
  };

  /// Working memory of `encode_piece`, kept between calls to save allocations. One per thread.
  struct Scratch {
    struct Symbol {
      std::int32_t id;
      std::int32_t previous;  // -1 at the start
      std::int32_t next;      // -1 at the end
    };
    struct Candidate {
      std::int32_t rank;
      std::int32_t left;  // index of the left symbol
      std::int32_t merged;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  /// The token of each byte; -1 where the vocabulary has none.
  std::array<std::int32_t, 256> byte_ids{};
  /// Token for bytes without one; without it such bytes vanish, as they do in the tokenizers package.
  std::optional<std::int32_t> unknown_id;
  /// A run of unknown bytes gives one unknown token.
  bool fuse_unknown = false;

  void reserve_merges(std::size_t count) { merges_.reserve(count); }
  void add_merge(std::int32_t left, std::int32_t right, Merge merge) { merges_[pair_key(left, right)] = merge; }

  /// Appends the ids of a piece of at most 2^31 - 1 bytes. O(n log n) in its length.
  void encode_piece(std::string_view bytes, std::vector<std::int32_t>& ids, Scratch& scratch) const;

  /// The same for a piece that is already a row of at most 2^31 - 1 tokens.
  void encode_symbols(std::span<const std::int32_t> symbols, std::vector<std::int32_t>& ids, Scratch& scratch) const;

 private:
  // Ids of a pair fill the two halves of a word; the multiply spreads them over the buckets.
  struct PairHash {
    std::size_t operator()(std::uint64_t key) const {
      key *= 0x9E3779B97F4A7C15ull;
      return static_cast<std::size_t>(key ^ (key >> 32));
    }
  };

  static std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
  }

  const Merge* find_merge(std::int32_t left, std::int32_t right) const;
  void load_symbols(std::string_view bytes, Scratch& scratch) const;
  static void push_symbol(std::int32_t id, Scratch& scratch);
  void merge(std::vector<std::int32_t>& ids, Scratch& scratch) const;
  void push_candidate(std::int32_t left, Scratch& scratch) const;

  std::unordered_map<std::uint64_t, Merge, PairHash> merges_;
};

}  // namespace latte
