#include "model/key_reader.h"

#include <algorithm>
#include <utility>

#include "base/contract.h"
#include "base/fail.h"

namespace latte {

KeyReader::KeyReader(const Json& object, std::string_view source, std::string prefix)
    : object_(object), source_(source), prefix_(std::move(prefix)) {
  expects(object.is_object(), "a key reader reads an object");
}

const Json* KeyReader::find(const char* key) const {
  const auto entry = object_.find(key);
  return entry == object_.end() || entry->is_null() ? nullptr : &*entry;
}

void KeyReader::refuse(const char* key, std::string_view arrived, std::string_view expected, ErrorKind kind) {
  if (error_.has_value()) return;
  error_ = fail(kind, "{}: key \"{}{}\": arrived {}, expected {}", source_, prefix_, key, arrived, expected);
}

void KeyReader::absorb(const KeyReader& part) {
  if (!error_.has_value()) error_ = part.error_;
}

int KeyReader::integer(const char* key, int otherwise, int least, int most) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  const bool fits_signed = value->is_number_integer() && !value->is_number_unsigned() &&
                           value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most;
  const bool fits_unsigned = value->is_number_unsigned() && value->get<std::uint64_t>() <= INT64_MAX &&
                             value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most;
  if (fits_signed || fits_unsigned) return value->get<int>();
  refuse(key, brief_json(*value), fmt::format("an integer from {} to {}", least, most));
  return otherwise;
}

int KeyReader::integer_or_none(const char* key, int otherwise, int none, int least, int most) {
  const auto entry = object_.find(key);
  if (entry != object_.end() && entry->is_null()) return none;
  return integer(key, otherwise, least, most);
}

int KeyReader::size(const char* key, int otherwise, int most) {
  if (otherwise == 0 && find(key) == nullptr) {
    refuse(key, has(key) ? "null" : "nothing", fmt::format("an integer from 1 to {}", most));
    return 1;
  }
  return std::max(1, integer(key, otherwise, 1, most));
}

double KeyReader::number(const char* key, double otherwise, double most, bool zero_allowed) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_number()) {
    const double number = value->get<double>();
    if ((number > 0 || (zero_allowed && number == 0)) && number <= most) return number;
  }
  refuse(key, brief_json(*value),
         fmt::format("a number {} {}", zero_allowed ? "from 0 to" : "above 0 and at most", most));
  return otherwise;
}

double KeyReader::positive(const char* key, double otherwise, double most) {
  return number(key, otherwise, most, false);
}

double KeyReader::non_negative(const char* key, double otherwise, double most) {
  return number(key, otherwise, most, true);
}

bool KeyReader::boolean(const char* key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  refuse(key, brief_json(*value), "true or false");
  return otherwise;
}

std::string KeyReader::text(const char* key, std::string otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  refuse(key, brief_json(*value), "a string");
  return otherwise;
}

std::vector<double> KeyReader::positives(const char* key, std::size_t count, double most) {
  const Json* list = find(key);
  const bool fits = list != nullptr && list->is_array() && list->size() == count &&
                    std::all_of(list->begin(), list->end(), [most](const Json& value) {
                      return value.is_number() && value.get<double>() > 0 && value.get<double>() <= most;
                    });
  if (fits) return list->get<std::vector<double>>();
  const std::string arrived = list == nullptr    ? "nothing"
                              : list->is_array() ? fmt::format("{} entries", list->size())
                                                 : brief_json(*list);
  refuse(key, arrived, fmt::format("a list of {} numbers above 0", count));
  return std::vector<double>(count, 1.0);
}

std::string KeyReader::one_of(const char* key, std::initializer_list<const char*> words) {
  const std::string word = text(key, *words.begin());
  std::string expected;
  for (const char* known : words) {
    if (word == known) return word;
    const bool last = known == *(words.end() - 1);
    expected += fmt::format("{}{}", expected.empty() ? "" : last ? " or " : ", ", quote_name(known));
  }
  refuse(key, quote_name(word), expected, ErrorKind::kUnsupported);
  return *words.begin();
}

void KeyReader::only(const char* key, bool state) {
  if (boolean(key, state) != state)
    refuse(key, state ? "false" : "true", state ? "true" : "false", ErrorKind::kUnsupported);
}

}  // namespace latte
