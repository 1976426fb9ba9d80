#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/sentencepiece_proto.h"

namespace latte {
namespace {

constexpr std::size_t kMostLeaves = 31;  // that the library has room for on one walk

std::uint32_t read_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  return value;
}

// A double-array trie in the layout of darts-clone: units of 32 bits, a child at (place of the children) ^ (its byte).
class Trie {
 public:
  Trie(std::string_view bytes, std::string_view texts) : texts_(texts) {
    for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) units_.push_back(read_u32(bytes, at));
    leaves_.assign(units_.size(), kUnseen);
  }

  // Every walk from the root stays inside, ends, and meets few leaves with sound values.
  bool is_safe() {
    if (units_.empty() || !enter(0)) return false;
    while (!open_.empty()) {
      if (!advance()) return false;
    }
    return true;
  }

 private:
  // A unit that the walk is at, with the next byte to try.
  struct Place {
    std::size_t unit;
    std::size_t next_byte = 0;
    std::size_t leaves_below = 0;
  };
  static constexpr std::uint8_t kUnseen = 255;
  static constexpr std::uint8_t kOpen = 254;

  std::size_t children_of(std::size_t unit) const {
    const std::uint32_t value = units_[unit];
    return unit ^ (static_cast<std::size_t>(value >> 10) << ((value & (1u << 9)) >> 6));
  }
  bool has_leaf(std::size_t unit) const { return (units_[unit] >> 8 & 1) != 0; }
  std::uint32_t label(std::size_t unit) const { return units_[unit] & ((1u << 31) | 0xFF); }

  bool enter(std::size_t unit) {
    const std::size_t children = children_of(unit);
    if ((children | 0xFF) >= units_.size()) return false;
    if (has_leaf(unit) && (units_[children] & 0x7FFFFFFF) >= texts_.size()) return false;
    leaves_[unit] = kOpen;
    open_.push_back({.unit = unit});
    return true;
  }

  // One step of a depth-first walk that sees each unit once.
  bool advance() {
    Place& place = open_.back();
    const std::size_t children = children_of(place.unit);
    while (place.next_byte < 256) {
      const std::size_t byte = place.next_byte;
      const std::size_t child = children ^ byte;
      if (label(child) != byte) {
        ++place.next_byte;
        continue;
      }
      if (leaves_[child] == kOpen) return false;  // the walk would go round
      if (leaves_[child] == kUnseen) return enter(child);
      place.leaves_below = std::max<std::size_t>(place.leaves_below, leaves_[child]);
      ++place.next_byte;
    }
    const std::size_t leaves = place.leaves_below + (has_leaf(place.unit) ? 1 : 0);
    if (leaves > kMostLeaves) return false;
    leaves_[place.unit] = static_cast<std::uint8_t>(leaves);
    open_.pop_back();
    return true;
  }

  std::string_view texts_;
  std::vector<std::uint32_t> units_;
  std::vector<std::uint8_t> leaves_;  // most leaves of a walk from a unit on
  std::vector<Place> open_;
};

}  // namespace

bool is_safe_charsmap(std::string_view charsmap) {
  if (charsmap.empty()) return true;
  if (charsmap.size() <= 4) return false;
  const std::size_t size = read_u32(charsmap, 0);
  charsmap.remove_prefix(4);
  if (size % 4 != 0 || size >= charsmap.size() || charsmap.back() != '\0') return false;
  return Trie(charsmap.substr(0, size), charsmap.substr(size)).is_safe();
}

}  // namespace latte
