#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace latte {

/// Words repeat within a text: the ids of a piece seen before are copied from where they stand. The pieces' text must
/// outlive it, and `ids` must only grow.
class PieceCache {
 public:
  explicit PieceCache(std::vector<std::int32_t>& ids) : ids_(ids) {}

  /// Appends the ids of `piece`; `encode` does so for one that was not seen yet.
  template <class Encode>
  void append(std::string_view piece, Encode encode) {
    const auto [known, fresh] = seen_.try_emplace(piece, Range{ids_.size(), 0});
    if (fresh) {
      encode(piece);
      known->second.count = ids_.size() - known->second.begin;
      return;
    }
    for (std::size_t i = 0; i < known->second.count; ++i) {
      const std::int32_t id = ids_[known->second.begin + i];
      ids_.push_back(id);
    }
  }

 private:
  struct Range {
    std::size_t begin, count;
  };

  std::vector<std::int32_t>& ids_;
  std::unordered_map<std::string_view, Range> seen_;
};

}  // namespace latte
