#include "model/family_name.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/fail.h"
#include "io/json_file.h"

namespace latte {
namespace {

struct KnownName {
  std::string_view word;  // a model_type or an architecture
  std::string_view family;
};

constexpr std::array kKnownNames = {
    KnownName{"deepseek_v3", "deepseek_v3"},
    KnownName{"kimi_k2", "deepseek_v3"},
    KnownName{"joyai_llm_flash", "deepseek_v3"},
    KnownName{"DeepseekV3ForCausalLM", "deepseek_v3"},
};

constexpr std::size_t kLongestName = 64;  // longer words are nobody's family; keeps the comparison cheap

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

Result<std::string> resolve_family(std::string_view model_type, std::span<const std::string> architectures,
                                   std::string_view source) {
  const std::string_view architecture = architectures.empty() ? std::string_view() : std::string_view(architectures[0]);
  for (const std::string_view word : {model_type, architecture}) {
    for (const KnownName& known : kKnownNames) {
      if (known.word == word) return std::string(known.family);
    }
  }
  const std::string_view asked = (model_type.empty() ? architecture : model_type).substr(0, kLongestName);
  const auto nearest =
      std::min_element(kKnownNames.begin(), kKnownNames.end(), [asked](const KnownName& a, const KnownName& b) {
        return edit_distance(asked, a.word) < edit_distance(asked, b.word);
      });
  // A word that shares less than half its letters with any name resembles none.
  std::string known;
  if (edit_distance(asked, nearest->word) * 2 <= static_cast<int>(std::max(asked.size(), nearest->word.size()))) {
    known = fmt::format("the nearest is \"{}\"", nearest->word);
  } else {
    std::vector<std::string_view> words;
    for (const KnownName& name : kKnownNames) words.push_back(name.word);
    known = fmt::format("it knows {}", fmt::join(words, ", "));
  }
  return fail(ErrorKind::kUnsupported, "{}: model_type {} (architecture {}) is not a family latte knows; {}", source,
              quote_name(model_type), quote_name(architecture), known);
}

}  // namespace latte
