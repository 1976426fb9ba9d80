#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"

namespace latte {

struct TextCodecState;

/// How a text becomes ids.
struct EncodeChoice {
  bool match_special = false;  ///< special tokens written out in the text become their ids
  bool add_bos = false;        ///< the beginning-of-sequence token comes first, never twice
};

/// What a chat template is rendered with. Texts are JSON.
struct ChatRequest {
  std::string messages;  ///< a list of {"role", "content", ...}
  std::string tools;     ///< a list, or empty
  std::string kwargs;    ///< an object of template variables, or empty
  bool add_generation_prompt = true;
  std::string messages_name = "messages";  ///< what errors call the texts: a file's name, an option
  std::string tools_name = "tools";
};

/// A conversation's prompt that begins with ids which a session holds.
struct ChatContinuation {
  std::vector<std::int32_t> ids;  ///< the first `kept` held ones, then those of the rest of the rendered text
  int kept = 0;
  std::string reason;  ///< why not all held ids were kept: both texts from where they part; empty when all were
};

/// Tokenizer and chat template of a model folder, without its weights. Immutable, cheap to copy, shared between
/// threads.
class TextCodec {
 public:
  /// `model` is a directory or the name of an embedded model. Errors: one line with the file and the key.
  static Result<TextCodec> open(const std::string& model);

  /// Ids of a text. Invalid UTF-8 becomes U+FFFD.
  Result<std::vector<std::int32_t>> encode(std::string_view text, const EncodeChoice& choice = {}) const;
  /// Text of ids. Errors: an id that has no token.
  Result<std::string> decode(std::span<const std::int32_t> ids, bool skip_special = false) const;

  /// True when raw prompts begin with the BOS token.
  bool adds_bos() const;
  bool has_template() const;
  /// The rendered prompt, byte for byte. Errors: no template, JSON that does not parse, a message without role or
  /// content (with its index), parts that the template does not take, the template's own refusal.
  Result<std::string> apply_template(const ChatRequest& request) const;
  /// Ids of the rendered prompt. Special tokens match where the template wrote them; those that a message spells are
  /// text, so that no message can forge a role. Tags such as <think> in a message of the assistant stay tokens. Errors:
  /// a message spells a special token and the template rewrites its characters.
  Result<std::vector<std::int32_t>> encode_chat(const ChatRequest& request) const;
  /// The same for a conversation that goes on: ids that `held` spells alike are kept as they are, however the tokenizer
  /// would cut their text, and only what comes after them is made from the rendered text. Errors: as above.
  Result<ChatContinuation> continue_chat(const ChatRequest& request, std::span<const std::int32_t> held) const;

 private:
  friend class Engine;
  friend class Session;
  explicit TextCodec(std::shared_ptr<const TextCodecState> state) : state_(std::move(state)) {}

  std::shared_ptr<const TextCodecState> state_;
};

}  // namespace latte
