#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "latte/error.h"
#include "text/added_tokens.h"

namespace latte {

/// Largest token id that is read; the largest vocabularies in use have 2^18 tokens. A table of ids may not grow by the
/// number that a file happens to hold.
inline constexpr std::int64_t kMaxTokenId = (1 << 21) - 1;

/// Token strings, their ids and their bytes. Ids may have gaps.
class Vocabulary {
 public:
  /// Takes model.vocab. Errors name the token: an id outside [0, kMaxTokenId], an id or a token given twice.
  Status add_words(std::vector<std::pair<std::string, std::int64_t>> words, std::string_view file);

  /// Takes an added token, which may also be a word of the vocabulary. Errors: its id or its content belongs to
  /// another.
  Status add_token(const AddedToken& token, std::string_view file);

  std::optional<std::int32_t> find(std::string_view token) const;
  bool contains(std::int32_t id) const { return id >= 0 && id < size() && entries_[id].present; }
  bool is_special(std::int32_t id) const { return contains(id) && entries_[id].special; }
  std::string_view bytes(std::int32_t id) const;

  /// Largest id + 1.
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }

 private:
  struct Entry {
    std::size_t offset = 0;  // into pool_
    std::uint32_t length = 0;
    bool present = false;
    bool special = false;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  void set_bytes(std::int32_t id, std::string_view bytes);

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::vector<Entry> entries_;
  std::string pool_;
};

}  // namespace latte
