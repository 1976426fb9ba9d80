#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json_file.h"
#include "latte/error.h"

namespace latte {

/// What it means that a key is not there. Every reading of a key says it, so that no number of one model slips into
/// another unseen.
template <class T>
struct Absent {
  enum class Rule : std::uint8_t {
    kRefused,  ///< there is no default: missing and null are errors
    kAssumed,  ///< the family documents a value: it is taken and listed; null is an error
    kMeans,    ///< missing and null are ways to say this value
  };
  Rule rule = Rule::kRefused;
  T value{};
};

template <class T>
Absent<T> refused() {
  return {};
}
template <class T>
Absent<T> assumed(T value) {
  return {Absent<T>::Rule::kAssumed, std::move(value)};
}
template <class T>
Absent<T> means(T value) {
  return {Absent<T>::Rule::kMeans, std::move(value)};
}

/// Reads keys of one JSON object with their limits. The first thing that does not hold is kept as the error and the
/// reader goes on, so that reading a configuration is a list of lines with one check at the end.
class KeyReader {
 public:
  /// `prefix` stands before key names in errors ("rope_scaling."). `object` must outlive the reader.
  KeyReader(const Json& object, std::string_view source, std::string prefix = "");

  int integer(const char* key, const Absent<int>& absent, int least, int most);
  /// A number of things, from 1 to `most`.
  int size(const char* key, const Absent<int>& absent, int most);
  /// Null, unlike missing, means "none".
  int integer_or_none(const char* key, const Absent<int>& absent, int none, int least, int most);
  /// A number above 0 and at most `most`.
  double positive(const char* key, const Absent<double>& absent, double most);
  /// A number from 0 to `most`.
  double non_negative(const char* key, const Absent<double>& absent, double most);
  bool boolean(const char* key, const Absent<bool>& absent);
  std::string text(const char* key, const Absent<std::string>& absent);
  /// A list of exactly `count` numbers above 0 and at most `most`; it must be there.
  std::vector<double> positives(const char* key, std::size_t count, double most);
  /// One of `words`; another one is refused, naming these.
  std::string one_of(const char* key, const Absent<std::string>& absent, std::initializer_list<const char*> words);
  /// What the family has one word for, which need not be said.
  void only_word(const char* key, const char* word) { one_of(key, means(std::string(word)), {word}); }
  /// What the family has in one state only: refuses a boolean key that says otherwise.
  void only(const char* key, bool state);

  /// nullptr when the key is missing or null.
  const Json* find(const char* key) const;
  /// Whether the key is there, even as null.
  bool has(const char* key) const { return object_.contains(key); }
  const std::string& source() const { return source_; }

  /// Keeps the first error only: `key "x": arrived ..., expected ...`.
  void refuse(const char* key, std::string_view arrived, std::string_view expected,
              ErrorKind kind = ErrorKind::kInvalidInput);
  /// Takes over what another reader of the same file found.
  void absorb(const KeyReader& part);
  /// Keys that were not there with the values taken for them: "num_experts_per_tok 8".
  const std::vector<std::string>& assumed_keys() const { return assumed_; }

  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  double number(const char* key, const Absent<double>& absent, double most, bool zero_allowed);
  /// The value of a key. Where there is none the rule is followed, and `expected` is what a refusal asks for.
  template <class T>
  const Json* find_or(const char* key, const Absent<T>& absent, std::string_view expected);

  const Json& object_;
  std::string source_;
  std::string prefix_;
  std::optional<Error> error_;
  std::vector<std::string> assumed_;
};

}  // namespace latte
