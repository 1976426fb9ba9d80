#include "text/tokenizer_json.h"

#include <limits>
#include <optional>

#include "base/fail.h"
#include "text/json_text.h"

namespace latte {
namespace {

using nlohmann::json;

// The event handler of nlohmann's SAX parser. Its method names are the library's. A method that returns false ends the
// parse; the reason is in error_.
class Reader {
 public:
  Reader(TokenizerJson& out, std::string_view file) : out_(out), file_(file) {}

  std::optional<Error> take_error() { return std::move(error_); }

  bool null() { return value(nullptr); }
  bool boolean(bool b) { return value(b); }
  bool number_float(double number, const std::string&) { return value(number); }
  bool binary(json::binary_t&) { return false; }

  bool number_integer(std::int64_t number) { return mode_ == Mode::kVocab ? vocab_id(number) : value(number); }

  bool number_unsigned(std::uint64_t number) {
    if (mode_ != Mode::kVocab) return value(number);
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return vocab_id(static_cast<std::int64_t>(number > kLargest ? kLargest : number));
  }

  bool string(std::string& text) { return mode_ == Mode::kMerges ? merge_text(text) : value(std::move(text)); }

  bool start_object(std::size_t) {
    if (entering("vocab")) return enter(Mode::kVocab, seen_vocab_, "model.vocab");
    if (mode_ != Mode::kDocument) return unexpected("an object");
    return open(json::object());
  }

  bool start_array(std::size_t) {
    if (entering("merges")) return enter(Mode::kMerges, out_.has_merges, "model.merges");
    if (mode_ == Mode::kMerges && !in_pair_) {
      in_pair_ = true;
      pair_.clear();
      return true;
    }
    if (mode_ != Mode::kDocument) return unexpected("a list");
    return open(json::array());
  }

  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }

  bool end_object() { return mode_ == Mode::kVocab ? leave() : close(); }

  bool end_array() {
    if (mode_ != Mode::kMerges) return close();
    if (!in_pair_) return leave();
    in_pair_ = false;
    if (pair_.size() != 2) return bad_merge(fmt::format("a list of {}", pair_.size()));
    out_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    if (error.id == 406)
      return refuse(fmt::format("a number is out of range at byte {}, expected what fits 64 bits", position));
    return refuse(fmt::format("broken JSON at byte {}; the file may be truncated, fetch it again", position));
  }

 private:
  enum class Mode { kDocument, kVocab, kMerges };

  // The value about to start is a member of the root's "model" under this key.
  bool entering(std::string_view name) const {
    return mode_ == Mode::kDocument && stack_.size() == 2 && model_ != nullptr && stack_.back() == model_ &&
           key_ == name;
  }

  bool enter(Mode mode, bool& seen, std::string_view name) {
    if (seen) return refuse(fmt::format("{} stands there twice, expected it once", name));
    seen = true;
    mode_ = mode;
    return true;
  }

  bool leave() {
    mode_ = Mode::kDocument;
    return true;
  }

  bool open(json container) {
    json* placed = place(std::move(container));
    if (placed == nullptr) return false;
    if (stack_.size() == 1 && stack_[0]->is_object() && key_ == "model") model_ = placed;
    stack_.push_back(placed);
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  json* place(json item) {
    if (stack_.empty()) {
      out_.document = std::move(item);
      return &out_.document;
    }
    json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(item));
      return &parent.back();
    }
    const auto [member, fresh] = parent.emplace(key_, std::move(item));
    if (fresh) return &*member;
    refuse(fmt::format("key {} stands twice in one object, expected it once", quote_for_error(key_)));
    return nullptr;
  }

  bool value(json item) {
    if (mode_ == Mode::kDocument) return place(std::move(item)) != nullptr;
    return unexpected(item.type_name());
  }

  bool vocab_id(std::int64_t id) {
    out_.vocab.emplace_back(std::move(key_), id);
    return true;
  }

  bool merge_text(std::string& text) {
    if (in_pair_) {
      if (pair_.size() >= 2) return bad_merge("a list of more than 2");
      pair_.push_back(std::move(text));
      return true;
    }
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      return bad_merge(quote_for_error(text));
    }
    out_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return true;
  }

  bool unexpected(std::string_view what) {
    if (mode_ == Mode::kMerges) return bad_merge(what);
    return refuse(
        fmt::format("model.vocab: the id of token {} is {}, expected a whole number", quote_for_error(key_), what));
  }

  bool bad_merge(std::string_view what) {
    return refuse(fmt::format("model.merges[{}] is {}, expected \"left right\" or [\"left\", \"right\"]",
                              out_.merges.size(), what));
  }

  bool refuse(std::string_view message) {
    error_ = fail(ErrorKind::kInvalidInput, "{}: {}", file_, message);
    return false;
  }

  TokenizerJson& out_;
  std::string_view file_;
  std::optional<Error> error_;
  Mode mode_ = Mode::kDocument;
  std::vector<json*>
      stack_;  // the open containers; a parent does not grow while its child is open, so these stay valid
  const json* model_ = nullptr;
  std::string key_;
  bool seen_vocab_ = false;
  bool in_pair_ = false;
  std::vector<std::string> pair_;
};

}  // namespace

Result<TokenizerJson> parse_tokenizer_json(std::string_view text, std::string_view file) {
  const Status checked = check_json_text(text, file);
  if (!checked.ok()) return checked.error();
  TokenizerJson result;
  Reader reader(result, file);
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    if (auto error = reader.take_error()) return std::move(*error);
    return fail(ErrorKind::kInvalidInput, "{}: broken JSON; fetch the file again", file);
  }
  return result;
}

}  // namespace latte
