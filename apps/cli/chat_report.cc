#include "chat_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "generate_report.h"

namespace latte::cli {

std::string turn_json(const Chat& chat, const ChatReply& reply) {
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(generate_json(reply.run));
  object["turn"] = chat.turns().size();
  object["held_tokens"] = reply.held_tokens;
  object["kept_tokens"] = reply.kept_tokens;
  object["kept_reason"] = reply.kept_reason;
  object["kept_turn"] = reply.kept_turn;
  if (reply.kept_turn) object["first_token_seconds"] = chat.turns().back().first_token_seconds;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string reuse_line(const ChatReply& reply) {
  const GenerateResult& run = reply.run;
  std::string line = fmt::format("prompt: {} tokens, {} of {} held ones kept as they are, {} rows in the cache, {} fed",
                                 run.prompt_tokens, reply.kept_tokens, reply.held_tokens, run.cached_tokens,
                                 run.prompt_tokens - run.cached_tokens);
  if (!reply.kept_reason.empty()) line += ": " + reply.kept_reason;
  return line + "\n";
}

std::string stats_text(Chat& chat) {
  std::string text = "turn  prompt  cached    fed  first token  reply   tok/s  absorbed/materialised steps  finish\n";
  int number = 0;
  PathCounts of_turns;
  for (const ChatTurn& turn : chat.turns()) {
    const int in_rounds = turn.generated_tokens > 0 ? turn.generated_tokens - 1 : 0;
    of_turns.absorbed_steps += turn.paths.absorbed_steps;
    of_turns.materialised_steps += turn.paths.materialised_steps;
    const double speed = turn.generate_seconds > 0 ? in_rounds / turn.generate_seconds : 0;
    text +=
        fmt::format("{:>4}  {:>6}  {:>6} {:>6}  {:>8.1f} ms  {:>5}  {:>6.1f}  {:>27}  {}\n", ++number,
                    turn.prompt_tokens, turn.cached_tokens, turn.prompt_tokens - turn.cached_tokens,
                    turn.first_token_seconds * 1e3, turn.generated_tokens, speed,
                    fmt::format("{}/{}", turn.paths.absorbed_steps, turn.paths.materialised_steps), turn.finish_reason);
  }
  text += fmt::format(
      "conversation: {} tokens of {}, {} rows in the cache; steps of these turns: absorbed {}, materialised {}\n",
      chat.tokens().size(), chat.context(), chat.session().length(), of_turns.absorbed_steps,
      of_turns.materialised_steps);
  return text;
}

}  // namespace latte::cli
