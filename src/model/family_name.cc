#include "model/family_name.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/fail.h"
#include "io/json_file.h"

namespace latte {
namespace {

constexpr std::size_t kLongestName = 64;  // longer words are nobody's family; keeps the comparison cheap

std::string_view first_of(std::span<const std::string> architectures) {
  return architectures.empty() ? std::string_view() : std::string_view(architectures[0]);
}

/// The entry of a list one of whose words is said; model_type goes before architecture.
template <class Entry>
const Entry* entry_of(std::span<const Entry> entries, std::string_view model_type, std::string_view architecture) {
  for (const std::string_view said : {model_type, architecture}) {
    for (const Entry& entry : entries) {
      if (std::find(entry.words.begin(), entry.words.end(), said) != entry.words.end()) return &entry;
    }
  }
  return nullptr;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Result<const Family*> resolve_family(std::string_view model_type, std::span<const std::string> architectures,
                                     std::string_view source) {
  const std::string_view architecture = first_of(architectures);
  if (const Family* known = entry_of(families(), model_type, architecture); known != nullptr) return known;
  if (model_type.empty() && architecture.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "{}: neither model_type nor architectures, expected the config.json of a model: they name its family",
                source);
  }
  const std::string_view asked = (model_type.empty() ? architecture : model_type).substr(0, kLongestName);
  std::string_view nearest;
  int least = std::numeric_limits<int>::max();
  for (const Family& family : families()) {
    for (const std::string_view word : family.words) {
      const int distance = edit_distance(asked, word);
      if (distance >= least) continue;
      least = distance;
      nearest = word;
    }
  }
  // A word that shares less than half its letters with any name resembles none.
  std::string known;
  if (least * 2 <= static_cast<int>(std::max(asked.size(), nearest.size()))) {
    known = fmt::format("the nearest is \"{}\"", nearest);
  } else {
    std::vector<std::string_view> names;
    for (const Family& family : families()) names.push_back(family.name);
    known = fmt::format("it knows {}", fmt::join(names, ", "));
  }
  return fail(ErrorKind::kUnsupported, "{}: model_type {} (architecture {}) is not a family latte knows; {}", source,
              quote_name(model_type), quote_name(architecture), known);
}

bool names_a_family(std::string_view word) { return entry_of(families(), word, {}) != nullptr; }

Status refuse_known(std::string_view model_type, std::span<const std::string> architectures, std::string_view source) {
  const std::string_view architecture = first_of(architectures);
  if (entry_of(families(), model_type, {}) != nullptr) return {};
  const RefusedFamily* refused = entry_of(refused_families(), model_type, architecture);
  if (refused == nullptr) return {};
  return fail(ErrorKind::kUnsupported,
              "{}: model_type {} (architecture {}) is family {}, which latte does not run: {}; the nearest that it "
              "runs is \"{}\"",
              source, quote_name(model_type), quote_name(architecture), refused->name, refused->reason,
              refused->nearest);
}

}  // namespace latte
