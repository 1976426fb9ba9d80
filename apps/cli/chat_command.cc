#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat_report.h"
#include "commands.h"
#include "interrupts.h"
#include "latte/chat.h"
#include "line_reader.h"
#include "open_engine.h"
#include "outcome.h"
#include "run_arguments.h"
#include "step_log.h"
#include "suggest.h"

namespace latte::cli {
namespace {

/// "1 turn", "2 turns".
std::string counted(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// Reads messages and commands and prints replies; the conversation itself is latte::Chat.
class ChatLoop {
 public:
  ChatLoop(const Arguments& arguments, RunOptions options, Chat chat, LineReader lines)
      : json_(arguments.flag("--json")),
        verbose_(arguments.flag("--verbose")),
        options_(std::move(options)),
        progress_(arguments),
        chat_(std::move(chat)),
        lines_(std::move(lines)) {}

  int run();

 private:
  using Handler = void (ChatLoop::*)(const std::string& operand);
  struct ChatCommand {
    std::string_view name;
    std::string_view operand;
    std::string_view help;
    Handler handler;
  };
  static const std::array<ChatCommand, 11> kCommands;

  void obey(const std::string& line);
  void reply_to(const std::string& message);
  void answer(std::string_view name, const Result<ChatReply>& reply);
  template <class Turn>
  void take_turn(std::string_view name, Turn turn);

  void help(const std::string& operand);
  void reset(const std::string& operand);
  void system(const std::string& operand);
  void stats(const std::string& operand);
  void regenerate(const std::string& operand);
  void undo(const std::string& operand);
  void exit(const std::string&) { ended_ = true; }
  void tokens(const std::string& operand);
  void save(const std::string& operand);
  void load(const std::string& operand);

  void report(std::string_view command, const Status& status, const std::string& told);

  bool json_;
  bool verbose_;
  RunOptions options_;
  ProgressLine progress_;
  Chat chat_;
  LineReader lines_;
  StepLog steps_;
  int regenerated_ = 0;
  bool ended_ = false;
  bool failed_ = false;
  Status printed_;
};

constexpr std::array<ChatLoop::ChatCommand, 11> ChatLoop::kCommands = {{
    {"/help", "", "this list", &ChatLoop::help},
    {"/reset", "", "forget the conversation; the system message stays", &ChatLoop::reset},
    {"/system", "TEXT", "change the system message (nothing: none); the next turn reads the conversation again",
     &ChatLoop::system},
    {"/regen", "", "another reply to the last message, with a new seed", &ChatLoop::regenerate},
    {"/undo", "", "take the last turn back", &ChatLoop::undo},
    {"/save", "FILE", "keep the conversation and its cache in a file", &ChatLoop::save},
    {"/load", "FILE", "go on with a saved conversation in place of this one", &ChatLoop::load},
    {"/stats", "", "tokens, first-token time, speed and forms, turn by turn", &ChatLoop::stats},
    {"/tokens", "", "ids of the conversation", &ChatLoop::tokens},
    {"/exit", "", "end; so does Ctrl-D", &ChatLoop::exit},
    {"/quit", "", "the same", &ChatLoop::exit},
}};

int ChatLoop::run() {
  if (verbose_) chat_.watch_steps([this](const StepReport& step) { steps_.add(step); });
  if (lines_.on_terminal()) tell("/help lists the commands, Ctrl-C stops a reply, Ctrl-D ends\n");
  bool interrupted = false;
  std::string message;
  while (!ended_ && printed_.ok()) {
    const Input input = lines_.read(message);
    if (input == Input::kEnd) break;
    if (input == Input::kInterrupted) {
      if (std::exchange(interrupted, true)) {
        static_cast<void>(lines_.save_history());
        return kInterrupted;
      }
      tell("(Ctrl-C again or Ctrl-D ends)\n");
      continue;
    }
    interrupted = false;
    if (message.find_first_not_of(" \t\n") == std::string::npos) continue;
    if (message.starts_with("//")) {
      reply_to(message.substr(1));
    } else if (message.starts_with('/')) {
      obey(message);
    } else {
      reply_to(message);
    }
  }
  if (!printed_.ok()) return failed(printed_.error());
  if (const Status saved = lines_.save_history(); !saved.ok()) return failed(saved.error());
  // Who types sees what fails and goes on; a script has to be told at the end.
  return failed_ && !lines_.on_terminal() ? kFailed : 0;
}

void ChatLoop::obey(const std::string& line) {
  const std::size_t space = line.find_first_of(" \t\n");
  const std::string name = line.substr(0, space);
  const std::size_t first = space == std::string::npos ? std::string::npos : line.find_first_not_of(" \t\n", space);
  const std::size_t last = line.find_last_not_of(" \t\n");
  const std::string operand = first == std::string::npos ? "" : line.substr(first, last + 1 - first);
  std::vector<std::string_view> names;
  for (const ChatCommand& command : kCommands) {
    names.push_back(command.name);
    if (command.name != name) continue;
    if (command.operand.empty() && !operand.empty()) {
      report(name, Error{ErrorKind::kInvalidInput, fmt::format("{} takes nothing, got \"{}\"", name, operand)}, "");
      return;
    }
    (this->*command.handler)(operand);
    return;
  }
  report(name,
         Error{ErrorKind::kInvalidInput,
               fmt::format("unknown command \"{}\"{} (/help lists them; a message that begins with a slash takes two)",
                           name, suggestion(name, names))},
         "");
}

/// Runs a turn while Ctrl-C stops it, printing the text as it comes.
template <class Turn>
void ChatLoop::take_turn(std::string_view name, Turn turn) {
  steps_.clear();
  progress_.show("reading");
  const GracefulInterrupt interrupt;
  const auto on_token = [&](const TokenEvent& event) {
    progress_.clear();
    if (!json_ && !event.text.empty() && printed_.ok()) printed_ = print(event.text);
    return printed_.ok() && !interrupt.requested();
  };
  const auto on_prompt = [&](int done, int all) {
    progress_.show(fmt::format("reading: {} of {} tokens", done, all));
    return !interrupt.requested();
  };
  const Result<ChatReply> reply = turn(on_token, on_prompt);
  progress_.clear();
  answer(name, reply);
}

void ChatLoop::answer(std::string_view name, const Result<ChatReply>& reply) {
  if (!reply.ok()) {
    report(name, reply.error(), "");
    return;
  }
  if (printed_.ok()) printed_ = print(json_ ? turn_json(chat_, *reply) + "\n" : "\n");
  if (!reply->kept_turn) tell("(stopped before the first token: the turn is not kept)\n");
  if (verbose_) tell(reuse_line(*reply) + steps_.text());
  if (reply->run.finish_reason == "length" && chat_.tokens().size() > static_cast<std::size_t>(chat_.context()))
    warn(fmt::format("the context of {} tokens is full: /undo, /reset, or a larger --ctx-size", chat_.context()));
}

void ChatLoop::reply_to(const std::string& message) {
  take_turn("turn", [&](const TokenCallback& on_token, const PromptCallback& on_prompt) {
    return chat_.say(message, options_, on_token, on_prompt);
  });
}

void ChatLoop::regenerate(const std::string&) {
  RunOptions options = options_;
  const bool greedy = !options.sampling.has_value() || options.sampling->temperature == 0;
  if (greedy && !chat_.turns().empty()) tell("(greedy sampling writes the same reply: --temp above 0 draws others)\n");
  if (options.seed.has_value() && !greedy) *options.seed += static_cast<std::uint64_t>(++regenerated_);
  take_turn("/regen", [&](const TokenCallback& on_token, const PromptCallback& on_prompt) {
    return chat_.regenerate(options, on_token, on_prompt);
  });
}

/// A command's outcome: a line on standard error, and with --json an object on standard output.
void ChatLoop::report(std::string_view command, const Status& status, const std::string& told) {
  if (!status.ok()) {
    failed_ = true;
    static_cast<void>(failed(status.error()));
  } else if (!told.empty()) {
    tell(told);
  }
  if (!json_ || !printed_.ok()) return;
  nlohmann::ordered_json object = {
      {"command", command}, {"ok", status.ok()}, {"turns", chat_.turns().size()}, {"tokens", chat_.tokens().size()}};
  if (!status.ok()) object["error"] = status.error().message;
  printed_ = print(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void ChatLoop::help(const std::string&) {
  std::string text;
  for (const ChatCommand& command : kCommands)
    text += fmt::format("  {:<14}{}\n", fmt::format("{} {}", command.name, command.operand), command.help);
  text += "A line that ends in a backslash goes on in the next one; \"\"\" begins and ends a message of many lines.\n";
  report("/help", {}, text);
}

void ChatLoop::reset(const std::string&) {
  chat_.reset();
  report("/reset", {}, "(the conversation is empty)\n");
}

void ChatLoop::system(const std::string& operand) {
  report("/system", chat_.set_system(operand),
         operand.empty() ? "(no system message from the next turn on)\n" : "(it holds from the next turn on)\n");
}

void ChatLoop::undo(const std::string&) {
  const Status undone = chat_.undo();
  report("/undo", undone,
         fmt::format("({}, {} tokens)\n", counted(chat_.turns().size(), "turn"), chat_.tokens().size()));
}

void ChatLoop::save(const std::string& operand) {
  if (operand.empty()) return report("/save", Error{ErrorKind::kInvalidInput, "/save expects a file"}, "");
  report("/save", chat_.save(operand), fmt::format("({} tokens saved)\n", chat_.tokens().size()));
}

void ChatLoop::load(const std::string& operand) {
  if (operand.empty()) return report("/load", Error{ErrorKind::kInvalidInput, "/load expects a file"}, "");
  const Status loaded = chat_.load(operand);
  report("/load", loaded,
         fmt::format("({}, {} tokens)\n", counted(chat_.turns().size(), "turn"), chat_.tokens().size()));
}

void ChatLoop::stats(const std::string&) { report("/stats", {}, stats_text(chat_)); }

void ChatLoop::tokens(const std::string&) {
  report("/tokens", {},
         fmt::format("{}\n", nlohmann::json(std::vector(chat_.tokens().begin(), chat_.tokens().end())).dump()));
}

}  // namespace

int run_chat(const Arguments& arguments) {
  if (!arguments.has("--model"))
    return misused("no model, expected -m DIR or the name of an embedded model like latte-tiny");
  const Result<SessionOptions> how = session_options(arguments);
  if (!how.ok()) return misused(how.error());
  const Result<std::vector<BiasTerm>> bias = parse_logit_bias(arguments.list("--logit-bias"));
  if (!bias.ok()) return misused(bias.error());
  Result<LineReader> lines = LineReader::open(arguments.text_or("--history", ""));
  if (!lines.ok()) return failed(lines.error());
  std::optional<Engine> engine;
  {
    ProgressLine progress(arguments);
    Result<Engine> opened = open_engine(arguments, progress);
    if (!opened.ok()) return failed(opened.error());
    engine.emplace(std::move(*opened));
  }
  Result<Chat> chat = Chat::open(*engine, {.system = arguments.text_or("--system-prompt", ""),
                                           .kwargs = arguments.text_or("--kwargs", ""),
                                           .raw = arguments.flag("--raw"),
                                           .session = *how});
  if (!chat.ok()) return failed(chat.error());
  if (chat->raw() && !arguments.flag("--raw"))
    warn("the model has no chat template: messages and replies follow each other as raw text");
  if (chat->raw() && arguments.has("--system-prompt"))
    warn("--system-prompt is not used: raw text has no place for it");
  return ChatLoop(arguments, run_options(arguments, *bias, engine->info()), std::move(*chat), std::move(*lines)).run();
}

}  // namespace latte::cli
