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
  assumed_.insert(assumed_.end(), part.assumed_.begin(), part.assumed_.end());
}

template <class T>
const Json* KeyReader::find_or(const char* key, const Absent<T>& absent, std::string_view expected) {
  using Rule = typename Absent<T>::Rule;
  const Json* value = find(key);
  if (value != nullptr || absent.rule == Rule::kMeans) return value;
  if (absent.rule == Rule::kAssumed && !has(key)) {
    assumed_.push_back(fmt::format("{}{} {}", prefix_, key, absent.value));
  } else {
    refuse(key, has(key) ? "null" : "nothing",
           fmt::format("{}: no value can be assumed for it, fetch the file again or ask who made it", expected));
  }
  return nullptr;
}

int KeyReader::integer(const char* key, const Absent<int>& absent, int least, int most) {
  const std::string expected = fmt::format("an integer from {} to {}", least, most);
  const Json* value = find_or(key, absent, expected);
  if (value == nullptr) return std::clamp(absent.value, least, most);
  const bool fits_signed = value->is_number_integer() && !value->is_number_unsigned() &&
                           value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most;
  const bool fits_unsigned = value->is_number_unsigned() && value->get<std::uint64_t>() <= INT64_MAX &&
                             value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most;
  if (fits_signed || fits_unsigned) return value->get<int>();
  refuse(key, brief_json(*value), expected);
  return std::clamp(absent.value, least, most);
}

int KeyReader::integer_or_none(const char* key, const Absent<int>& absent, int none, int least, int most) {
  return has(key) && find(key) == nullptr ? none : integer(key, absent, least, most);
}

int KeyReader::size(const char* key, const Absent<int>& absent, int most) { return integer(key, absent, 1, most); }

double KeyReader::number(const char* key, const Absent<double>& absent, double most, bool zero_allowed) {
  const std::string expected = fmt::format("a number {} {}", zero_allowed ? "from 0 to" : "above 0 and at most", most);
  const double otherwise = zero_allowed || absent.value > 0 ? absent.value : most;
  const Json* value = find_or(key, absent, expected);
  if (value == nullptr) return otherwise;
  if (value->is_number()) {
    const double number = value->get<double>();
    if ((number > 0 || (zero_allowed && number == 0)) && number <= most) return number;
  }
  refuse(key, brief_json(*value), expected);
  return otherwise;
}

double KeyReader::positive(const char* key, const Absent<double>& absent, double most) {
  return number(key, absent, most, false);
}

double KeyReader::non_negative(const char* key, const Absent<double>& absent, double most) {
  return number(key, absent, most, true);
}

bool KeyReader::boolean(const char* key, const Absent<bool>& absent) {
  const Json* value = find_or(key, absent, "true or false");
  if (value == nullptr) return absent.value;
  if (value->is_boolean()) return value->get<bool>();
  refuse(key, brief_json(*value), "true or false");
  return absent.value;
}

std::string KeyReader::text(const char* key, const Absent<std::string>& absent) {
  const Json* value = find_or(key, absent, "a string");
  if (value == nullptr) return absent.value;
  if (value->is_string()) return value->get<std::string>();
  refuse(key, brief_json(*value), "a string");
  return absent.value;
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

std::string KeyReader::one_of(const char* key, const Absent<std::string>& absent,
                              std::initializer_list<const char*> words) {
  std::string expected;
  for (const char* known : words) {
    const bool last = known == *(words.end() - 1);
    expected += fmt::format("{}{}", expected.empty() ? "" : last ? " or " : ", ", quote_name(known));
  }
  const Json* value = find_or(key, absent, expected);
  if (value == nullptr) return absent.value;
  if (value->is_string()) {
    for (const char* known : words) {
      if (value->get_ref<const std::string&>() == known) return known;
    }
  }
  refuse(key, brief_json(*value), expected, ErrorKind::kUnsupported);
  return absent.value;
}

void KeyReader::only(const char* key, bool state) {
  if (boolean(key, means(state)) != state)
    refuse(key, state ? "false" : "true", state ? "true" : "false", ErrorKind::kUnsupported);
}

}  // namespace latte
