#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "commands.h"
#include "latte/text_codec.h"
#include "outcome.h"
#include "token_ids.h"

namespace latte::cli {

int run_tokenize(const Arguments& arguments) {
  if (!arguments.has("--model")) return misused("no model, expected latte tokenize -m DIR -p TEXT");
  if (arguments.has("--prompt") == arguments.has("--file"))
    return misused("tokenize expects exactly one of -p TEXT and -f FILE");
  const Result<TextCodec> codec = TextCodec::open(*arguments.text("--model"));
  if (!codec.ok()) return failed(codec.error());
  const Result<std::string> text =
      arguments.has("--file") ? read_file(*arguments.text("--file")) : *arguments.text("--prompt");
  if (!text.ok()) return failed(text.error());
  const auto ids =
      codec->encode(*text, {.match_special = arguments.flag("--special"), .add_bos = arguments.flag("--bos")});
  if (!ids.ok()) return failed(ids.error());
  if (arguments.flag("--json")) return finish_with(fmt::format("[{}]\n", fmt::join(*ids, ", ")));
  return finish_with(fmt::format("{}\n", fmt::join(*ids, ",")));
}

int run_detokenize(const Arguments& arguments) {
  if (!arguments.has("--model") || !arguments.has("--ids"))
    return misused("detokenize expects -m DIR and --ids 1,2,3 or --ids @file.json");
  const Result<TextCodec> codec = TextCodec::open(*arguments.text("--model"));
  if (!codec.ok()) return failed(codec.error());
  const Result<std::vector<std::int32_t>> ids = parse_token_ids(*arguments.text("--ids"));
  if (!ids.ok()) return ids_refused(*arguments.text("--ids"), ids.error());
  const Result<std::string> text = codec->decode(*ids);
  if (!text.ok()) return failed(text.error());
  return finish_with(*text);
}

int run_apply_template(const Arguments& arguments) {
  if (!arguments.has("--model") || !arguments.has("--file"))
    return misused("apply-template expects -m DIR and -f messages.json");
  const Result<TextCodec> codec = TextCodec::open(*arguments.text("--model"));
  if (!codec.ok()) return failed(codec.error());
  Result<std::string> messages = read_file(*arguments.text("--file"));
  if (!messages.ok()) return failed(messages.error());
  Result<std::string> tools = arguments.has("--tools") ? read_file(*arguments.text("--tools")) : std::string();
  if (!tools.ok()) return failed(tools.error());
  const Result<std::string> prompt = codec->apply_template({.messages = std::move(*messages),
                                                            .tools = std::move(*tools),
                                                            .kwargs = arguments.text_or("--kwargs", ""),
                                                            .messages_name = *arguments.text("--file"),
                                                            .tools_name = arguments.text_or("--tools", "")});
  if (!prompt.ok()) return failed(prompt.error());
  return finish_with(*prompt);
}

}  // namespace latte::cli
