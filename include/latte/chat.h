#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/engine.h"
#include "latte/error.h"
#include "latte/options.h"
#include "latte/session.h"

namespace latte {

/// How a conversation is held.
struct ChatOptions {
  std::string system;  ///< first message; empty: none. Texts that follow each other (see `raw`) have no place for it
  std::string kwargs;  ///< variables for the chat template, a JSON object; empty: none
  bool raw = false;    ///< no template: messages and replies follow each other as they stand. So is a model without one
  SessionOptions session;
};

/// One exchange of a conversation.
struct ChatTurn {
  std::string message;
  std::string reply;          ///< without the stop token and the stop text; as far as it came when it was stopped
  std::string finish_reason;  ///< "stop", "length", "cancelled"
  std::uint64_t seed = 0;
  int prompt_tokens = 0;  ///< of the whole conversation up to the reply
  int cached_tokens = 0;  ///< of those, in the cache when the turn began
  int generated_tokens = 0;
  double first_token_seconds = 0;  ///< from the call to the first token: template, tokenizer, prompt
  double generate_seconds = 0;     ///< from the first token to the last
  PathCounts paths;                ///< forms that the turn's steps took
};

/// What a turn gave.
struct ChatReply {
  GenerateResult run;       ///< its `text` is the reply as it was streamed
  int held_tokens = 0;      ///< tokens of the conversation before this turn
  int kept_tokens = 0;      ///< of those, taken over as they were fed
  std::string kept_reason;  ///< why not all of them; empty when all were
  bool kept_turn = true;    ///< false: it was cancelled before the first token, and the conversation is as before
};

/// A conversation over one session. What was fed once is never cut into tokens anew: a turn feeds what its message adds
/// behind the tokens that are there, and the cache keeps all others. Going back is exact: after `undo` and before
/// `regenerate` the caches are, bit for bit, what they were then; only where a template has rewritten what lay before a
/// turn are those rows read again. A failed turn leaves the conversation as it was.
/// Move-only; one thread at a time; keeps its engine's model alive.
class Chat {
 public:
  /// Errors: a model without a tokenizer, what Session::open refuses.
  static Result<Chat> open(const Engine& engine, const ChatOptions& options = {});

  /// One turn: the message, then the model's reply. Errors: a conversation longer than the context, what the template
  /// or Session::generate refuses.
  Result<ChatReply> say(std::string_view message, const RunOptions& options = {}, const TokenCallback& on_token = {},
                        const PromptCallback& on_prompt = {});
  /// Another reply to the last message in place of the last one. The prompt's last step is fed again as it was fed
  /// then; the same seed and sampling give the same reply. Errors: no turn yet, as above; then, and when it is
  /// cancelled before its first token, the old reply stands and the next turn reads it again.
  Result<ChatReply> regenerate(const RunOptions& options = {}, const TokenCallback& on_token = {},
                               const PromptCallback& on_prompt = {});
  /// Takes the last turn back. Errors: there is none.
  Status undo();
  /// Forgets all turns; the system message stays.
  void reset();
  /// Changes the system message from the next turn on, which reads the conversation again. Errors: no template.
  Status set_system(std::string_view text);

  /// Writes the conversation and its session to one file, see Session::save. Errors: what the system refuses.
  Status save(const std::string& path) const;
  /// Takes a saved conversation over in place of this one; it goes on as that one would have. Errors: those of
  /// Session::load, a file without a conversation, one held with another kind of template; this conversation then goes
  /// on.
  Status load(const std::string& path);

  const std::string& system() const { return system_; }
  std::span<const ChatTurn> turns() const { return turns_; }
  /// The conversation's tokens: all turns, the last reply included.
  std::span<const std::int32_t> tokens() const { return held_; }
  /// True when no chat template takes part.
  bool raw() const { return raw_; }
  int context() const { return engine_.info().context; }
  /// As Session::watch_steps, of whatever session the conversation is in.
  void watch_steps(StepCallback on_step);
  /// What holds the rows: to count its paths, to snapshot it. Feeding it belongs to the conversation.
  Session& session() { return session_; }

 private:
  /// What undoing a turn needs.
  struct Trace {
    int kept = 0;                       ///< tokens held before that the turn took over
    std::vector<std::int32_t> dropped;  ///< tokens held before that it did not
    int prompt = 0;                     ///< tokens when the reply began
    int cached = 0;                     ///< rows in the cache when the prompt was read
    bool stop_token_before = false;     ///< `stop_token_last_` before the turn
  };

  Chat(const Engine& engine, Session session, const ChatOptions& options);
  Result<ChatContinuation> prompt_of(std::string_view message) const;
  Result<ChatReply> reply_to(std::string_view message, std::span<const std::int32_t> prompt, const RunOptions& options,
                             const TokenCallback& on_token, const PromptCallback& on_prompt, ChatTurn& turn);
  std::string reply_text(const GenerateResult& run) const;
  bool ended_by_token(const GenerateResult& run) const;
  Status settle();
  std::string note() const;
  bool read_note(const std::string& text);

  Engine engine_;
  Session session_;
  std::string system_;
  std::string kwargs_;
  bool raw_ = false;
  SessionOptions session_options_;
  StepCallback on_step_;
  std::vector<ChatTurn> turns_;
  std::vector<Trace> traces_;       ///< one per turn
  std::vector<std::int32_t> held_;  ///< the session's caches hold a prefix of these
  bool stop_token_last_ = false;    ///< the last held token ended a reply
};

}  // namespace latte
