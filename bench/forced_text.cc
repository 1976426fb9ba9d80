#include "forced_text.h"

#include <fstream>
#include <iterator>

#include "base/fail.h"

namespace latte::bench {

Result<std::vector<std::vector<TokenId>>> read_documents(const Tokenizer& tokenizer, const std::string& path,
                                                         std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorKind::kNotFound, "{}: cannot be opened, expected a text file", path);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::vector<TokenId>> documents;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\0', at), all.size());
    auto ids = tokenizer.encode(std::string_view(all).substr(at, end - at), {.match_special = false, .add_bos = true});
    if (!ids.ok()) return ids.error();
    if (ids->size() > most) ids->resize(most);
    if (ids->size() > 1) documents.push_back(std::move(*ids));
    at = end + 1;
  }
  return documents;
}

}  // namespace latte::bench
