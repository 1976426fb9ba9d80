#include "latte/chat.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "decode/speculative_loop.h"

namespace latte {
namespace {

using Ordered = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::string messages_json(const std::string& system, std::span<const ChatTurn> turns, std::string_view message) {
  Ordered messages = Ordered::array();
  const auto add = [&](const char* role, std::string_view content) {
    messages.push_back({{"role", role}, {"content", content}});
  };
  if (!system.empty()) add("system", system);
  for (const ChatTurn& turn : turns) {
    add("user", turn.message);
    add("assistant", turn.reply);
  }
  add("user", message);
  return messages.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

/// Tokens that both lists begin with.
int common_tokens(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const auto bound = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return static_cast<int>(std::mismatch(a.begin(), a.begin() + bound, b.begin()).first - a.begin());
}

}  // namespace

Chat::Chat(const Engine& engine, Session session, const ChatOptions& options)
    : engine_(engine),
      session_(std::move(session)),
      system_(options.system),
      kwargs_(options.kwargs),
      raw_(options.raw || !engine.text()->has_template()),
      session_options_(options.session) {
  if (raw_) system_.clear();
}

Result<Chat> Chat::open(const Engine& engine, const ChatOptions& options) {
  if (engine.text() == nullptr) {
    return fail(ErrorKind::kNotFound, "{}: no tokenizer, expected one to chat with: use generate with --ids",
                engine.info().model_directory);
  }
  Result<Session> session = Session::open(engine, options.session);
  if (!session.ok()) return session.error();
  return Chat(engine, std::move(*session), options);
}

/// The ids of the conversation with one more message, up to where the reply begins.
Result<ChatContinuation> Chat::prompt_of(std::string_view message) const {
  const TextCodec& codec = *engine_.text();
  if (!raw_) {
    return codec.continue_chat({.messages = messages_json(system_, turns_, message), .tools = "", .kwargs = kwargs_},
                               held_);
  }
  ChatContinuation text;
  // The text goes on where a stop token ended it.
  text.ids.assign(held_.begin(), held_.end() - (stop_token_last_ ? 1 : 0));
  text.kept = static_cast<int>(text.ids.size());
  if (stop_token_last_) text.reason = "the text goes on in place of the stop token";
  const auto more = codec.encode(message, {.match_special = false, .add_bos = held_.empty() && codec.adds_bos()});
  if (!more.ok()) return more.error();
  text.ids.insert(text.ids.end(), more->begin(), more->end());
  return text;
}

Result<ChatReply> Chat::say(std::string_view message, const RunOptions& options, const TokenCallback& on_token,
                            const PromptCallback& on_prompt) {
  const Clock::time_point start = Clock::now();
  Result<ChatContinuation> prompt = prompt_of(message);
  if (!prompt.ok()) return prompt.error();
  const int held = static_cast<int>(held_.size());
  ChatTurn turn;
  turn.first_token_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Result<ChatReply> reply = reply_to(message, prompt->ids, options, on_token, on_prompt, turn);
  if (!reply.ok()) return reply;
  reply->held_tokens = held;
  reply->kept_tokens = prompt->kept;
  reply->kept_reason = std::move(prompt->reason);
  if (!reply->kept_turn) return reply;
  traces_.push_back({.kept = prompt->kept,
                     .dropped = {held_.begin() + prompt->kept, held_.end()},
                     .prompt = static_cast<int>(prompt->ids.size()),
                     .cached = reply->run.cached_tokens,
                     .stop_token_before = stop_token_last_});
  turns_.push_back(std::move(turn));
  held_ = std::move(prompt->ids);
  held_.insert(held_.end(), reply->run.ids.begin(), reply->run.ids.end());
  stop_token_last_ = ended_by_token(reply->run);
  return reply;
}

Result<ChatReply> Chat::regenerate(const RunOptions& options, const TokenCallback& on_token,
                                   const PromptCallback& on_prompt) {
  if (turns_.empty()) return fail(ErrorKind::kInvalidInput, "[chat] no reply yet, expected one to make anew");
  const Trace& trace = traces_.back();
  // Rows that share a step may share bits: the step of the prompt's last row is fed whole, as it was.
  const int step_rows = GenerateOptions{}.prompt_step_rows;
  const int whole_steps = (trace.prompt - 1 - trace.cached) / step_rows * step_rows;
  if (Status rewound = session_.rewind_to(std::min(session_.length(), trace.cached + whole_steps)); !rewound.ok())
    return rewound.error();
  const std::vector<std::int32_t> prompt(held_.begin(), held_.begin() + trace.prompt);
  ChatTurn turn;
  const std::string message = turns_.back().message;
  Result<ChatReply> reply = reply_to(message, prompt, options, on_token, on_prompt, turn);
  if (!reply.ok()) return reply;
  reply->held_tokens = reply->kept_tokens = trace.prompt;
  if (!reply->kept_turn) return reply;
  turns_.back() = std::move(turn);
  held_.resize(prompt.size());
  held_.insert(held_.end(), reply->run.ids.begin(), reply->run.ids.end());
  stop_token_last_ = ended_by_token(reply->run);
  return reply;
}

/// Reads `prompt` and writes the reply to `message`; puts the session back when nothing comes of it.
Result<ChatReply> Chat::reply_to(std::string_view message, std::span<const std::int32_t> prompt,
                                 const RunOptions& options, const TokenCallback& on_token,
                                 const PromptCallback& on_prompt, ChatTurn& turn) {
  if (prompt.size() > static_cast<std::size_t>(context())) {
    return fail(ErrorKind::kInvalidInput,
                "[chat] the conversation has {} tokens with this message, expected at most {}, the context: shorten "
                "the message, undo turns, reset, or raise --ctx-size",
                prompt.size(), context());
  }
  const Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> first;
  const auto timed = [&](const TokenEvent& event) {
    if (!first.has_value()) first = Clock::now();
    return !on_token || on_token(event);
  };
  Result<GenerateResult> run = session_.generate(prompt, options, timed, on_prompt);
  if (!run.ok()) {
    static_cast<void>(settle());  // the first error outranks one of putting things right
    return run.error();
  }
  ChatReply reply;
  reply.run = std::move(*run);
  if (reply.run.ids.empty() && reply.run.finish_reason == "cancelled") {
    reply.kept_turn = false;
    if (Status settled = settle(); !settled.ok()) return settled.error();
    return reply;
  }
  turn.message = message;
  turn.reply = reply_text(reply.run);
  turn.finish_reason = reply.run.finish_reason;
  turn.seed = reply.run.seed;
  turn.prompt_tokens = reply.run.prompt_tokens;
  turn.cached_tokens = reply.run.cached_tokens;
  turn.generated_tokens = reply.run.generated_tokens;
  turn.first_token_seconds += first.has_value() ? std::chrono::duration<double>(*first - start).count() : 0;
  turn.generate_seconds = reply.run.generate_seconds;
  turn.paths = reply.run.paths;
  return reply;
}

bool Chat::ended_by_token(const GenerateResult& run) const {
  if (run.finish_reason != "stop" || run.ids.empty()) return false;
  const Result<std::string> plain = engine_.text()->decode(run.ids, true);
  return plain.ok() && *plain == run.text;  // else a stop text ended it
}

/// What the next turn's template is given as the reply: all its tokens' text, so that the held ids go on spelling it.
std::string Chat::reply_text(const GenerateResult& run) const {
  std::vector<std::int32_t> ids = run.ids;
  const bool ended = ended_by_token(run);
  if (run.finish_reason == "stop" && !ended) return run.text;
  if (ended) ids.pop_back();
  Result<std::string> text = engine_.text()->decode(ids, false);
  return text.ok() ? std::move(*text) : run.text;
}

/// Drops rows that are not the conversation's; the last token waits to be fed with what comes after it.
Status Chat::settle() {
  const int held = static_cast<int>(held_.size());
  return session_.rewind_to(std::min(common_tokens(session_.tokens(), held_), std::max(0, held - 1)));
}

Status Chat::undo() {
  if (turns_.empty()) return fail(ErrorKind::kInvalidInput, "[chat] no turn yet, expected one to undo");
  const Trace& trace = traces_.back();
  held_.resize(static_cast<std::size_t>(trace.kept));
  held_.insert(held_.end(), trace.dropped.begin(), trace.dropped.end());
  stop_token_last_ = trace.stop_token_before;
  turns_.pop_back();
  traces_.pop_back();
  return settle();
}

void Chat::reset() {
  turns_.clear();
  traces_.clear();
  held_.clear();
  stop_token_last_ = false;
  session_.reset();
}

void Chat::watch_steps(StepCallback on_step) {
  on_step_ = on_step;
  session_.watch_steps(std::move(on_step));
}

Status Chat::set_system(std::string_view text) {
  if (raw_) {
    return fail(ErrorKind::kUnsupported,
                "[chat] a system message for {}, which has no chat template to put it in: write it as the first "
                "message",
                engine_.info().model_directory);
  }
  system_ = text;
  return {};
}

}  // namespace latte
