#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_file.h"
#include "latte/error.h"

namespace latte {

/// Reads keys of one JSON object with their limits. The first thing that does not hold is kept as the error and the
/// reader goes on with defaults, so that reading a configuration is a list of lines with one check at the end. A
/// missing key and an explicit null both give the default.
class KeyReader {
 public:
  /// `prefix` stands before key names in errors ("rope_scaling."). `object` must outlive the reader.
  KeyReader(const Json& object, std::string_view source, std::string prefix = "");

  int integer(const char* key, int otherwise, int least, int most);
  /// A number of things, from 1 to `most`; `otherwise` 0 means that the key must be there.
  int size(const char* key, int otherwise, int most);
  /// Null, unlike missing, means "none".
  int integer_or_none(const char* key, int otherwise, int none, int least, int most);
  /// A number above 0 and at most `most`.
  double positive(const char* key, double otherwise, double most);
  /// A number from 0 to `most`.
  double non_negative(const char* key, double otherwise, double most);
  bool boolean(const char* key, bool otherwise);
  std::string text(const char* key, std::string otherwise);
  /// A list of exactly `count` numbers above 0 and at most `most`; it must be there.
  std::vector<double> positives(const char* key, std::size_t count, double most);
  /// One of `words`, the first where the key is missing; another one is refused, naming these.
  std::string one_of(const char* key, std::initializer_list<const char*> words);
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

  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  double number(const char* key, double otherwise, double most, bool zero_allowed);

  const Json& object_;
  std::string source_;
  std::string prefix_;
  std::optional<Error> error_;
};

}  // namespace latte
