#include "io/json_file.h"

#include <utility>
#include <vector>

#include "base/fail.h"
#include "io/file_map.h"

namespace latte {
namespace {

/// Builds the tree from parser events, so that depth and repeated keys are seen while parsing.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::string_view source, int max_depth) : source_(source), max_depth_(max_depth) {}

  bool null() override { return place(Json(nullptr)) != nullptr; }
  bool boolean(bool value) override { return place(Json(value)) != nullptr; }
  bool number_integer(number_integer_t value) override { return place(Json(value)) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return place(Json(value)) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override { return place(Json(value)) != nullptr; }
  bool string(string_t& value) override { return place(Json(std::move(value))) != nullptr; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return enter(Json::object()); }
  bool start_array(std::size_t) override { return enter(Json::array()); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }

  bool key(string_t& name) override {
    const auto [slot, inserted] = open_.back()->get_ref<Json::object_t&>().try_emplace(name, nullptr);
    if (!inserted) {
      error_ = fail(ErrorKind::kInvalidInput, "{}: key {} is given twice in one object, expected once", source_,
                    quote_name(name));
      return false;
    }
    slot_ = &slot->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& cause) override {
    // The library's text is "[json.exception...] parse error at line 1, column 2: reason; last read: '...'": keep the
    // reason.
    std::string_view reason = cause.what();
    if (const auto tag = reason.find("] "); tag != std::string_view::npos) reason.remove_prefix(tag + 2);
    if (const auto place = reason.find(": "); reason.starts_with("parse error") && place != std::string_view::npos) {
      reason.remove_prefix(place + 2);
    }
    reason = reason.substr(0, reason.find("; last read"));
    error_ = fail(ErrorKind::kInvalidInput, "{}: not valid JSON at byte {}: {}; correct it or fetch it again", source_,
                  position, quote_name(reason));
    return false;
  }

  Error take_error() { return std::move(error_); }
  Json take_root() { return std::move(root_); }

 private:
  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json* parent = open_.back();
    if (parent->is_array()) {
      parent->push_back(std::move(value));
      return &parent->back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool enter(Json container) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      error_ = fail(ErrorKind::kInvalidInput, "{}: JSON nested deeper than {} levels", source_, max_depth_);
      return false;
    }
    open_.push_back(place(std::move(container)));
    return true;
  }
  bool leave() {
    open_.pop_back();
    return true;
  }

  std::string_view source_;
  int max_depth_;
  Error error_;
  Json root_;
  Json* slot_ = nullptr;     // where the value of the last key goes
  std::vector<Json*> open_;  // containers not yet closed, outermost first
};

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view source, int max_depth) {
  // The parser takes a NUL byte for the end of the text.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    return fail(ErrorKind::kInvalidInput, "{}: NUL byte at byte {}, expected JSON; fetch it again", source, nul);
  TreeBuilder builder(source, max_depth);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return builder.take_error();
  return builder.take_root();
}

Result<Json> read_json_file(const std::string& path, int max_depth) {
  const Result<FileMap> file = FileMap::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  if (bytes.empty())
    return fail(ErrorKind::kInvalidInput, "{}: the file has 0 bytes, expected JSON; fetch it again", path);
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, max_depth);
}

std::string quote_name(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  const bool cut = text.size() > kLongest;
  const Json value(std::string(text.substr(0, kLongest)) + (cut ? "..." : ""));
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string cut_json(const Json& value) {
  constexpr std::size_t kLongest = 60;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);  // ASCII: cut anywhere
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::string brief_json(const Json& value) {
  if (value.is_string()) return quote_name(value.get_ref<const std::string&>());
  if (value.is_object()) return "{...}";
  if (value.is_array()) return "[...]";
  return value.dump();
}

}  // namespace latte
