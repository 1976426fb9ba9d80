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

/// How the words of a vocabulary write the bytes they stand for.
enum class WordForm {
  kByteLevel,      ///< one printable character per byte, as GPT-2 has them
  kBytes,          ///< the bytes themselves
  kMetaspace,      ///< text with U+2581 for the space
  kMetaspaceBytes  ///< the same, and <0xHH> stands for a byte
};

/// The metaspace, U+2581: a space in the words of SentencePiece.
inline constexpr std::string_view kMetaspaceText = "\xE2\x96\x81";

/// A byte that a word of the form <0xHH> stands for.
std::optional<unsigned char> byte_of_word(std::string_view word);

/// Token strings, their ids and their bytes. Ids may have gaps.
class Vocabulary {
 public:
  /// Takes the words of `source`, such as "model.vocab". Errors name the token: an id outside [0, kMaxTokenId], an id
  /// or a token given twice.
  Status add_words(std::vector<std::pair<std::string, std::int64_t>> words, WordForm form, std::string_view file,
                   std::string_view source = "model.vocab");

  /// Takes an added token, which may also be a word of the vocabulary. Errors: its id or its content belongs to
  /// another.
  Status add_token(const AddedToken& token, std::string_view file);

  std::optional<std::int32_t> find(std::string_view token) const;
  bool contains(std::int32_t id) const { return id >= 0 && id < size() && entries_[id].present; }
  bool is_special(std::int32_t id) const { return contains(id) && entries_[id].special; }
  bool is_added(std::int32_t id) const { return contains(id) && entries_[id].added; }
  std::string_view bytes(std::int32_t id) const;

  /// Calls `visit(token, id)` for every token, in no order.
  template <class Visit>
  void for_each_word(Visit visit) const {
    for (const auto& [word, id] : ids_) visit(std::string_view(word), id);
  }

  /// Largest id + 1.
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }

 private:
  struct Entry {
    std::size_t offset = 0;  // into pool_
    std::uint32_t length = 0;
    bool present = false;
    bool special = false;
    bool added = false;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  void set_bytes(std::int32_t id, std::string_view bytes);

  WordForm form_ = WordForm::kByteLevel;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::vector<Entry> entries_;
  std::string pool_;
};

}  // namespace latte
