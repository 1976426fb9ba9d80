// Feeds a tokenizer_config.json and a SentencePiece model, cut from the input at the first byte FF, to their reader.
// What loads then encodes and decodes a short text, which takes the library through the model.
#include <cstddef>
#include <cstdint>

#include "text/sentencepiece_proto.h"
#include "try_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\xFF');
  if (cut == std::string_view::npos) return 0;
  const std::string_view model = input.substr(cut + 1);
  const auto tokenizer =
      latte::Tokenizer::parse(latte::TokenizerKind::kSentencePiece, model, input.substr(0, cut), "tokenizer.model");
  if (!tokenizer.ok()) {
    latte::expect_one_line(tokenizer.error());
    return 0;
  }
  const auto proto = latte::SentencePieceProto::parse(model, "tokenizer.model");
  latte::expects(proto.ok(), "a model that loads can be read again");
  std::int32_t unknown = 0;
  while (proto->pieces[static_cast<std::size_t>(unknown)].type != latte::SentencePieceProto::Type::kUnknown) ++unknown;
  latte::try_tokenizer(*tokenizer, unknown);
  return 0;
}
