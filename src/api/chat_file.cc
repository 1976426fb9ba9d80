#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/fail.h"
#include "latte/chat.h"

namespace latte {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr const char* kFormat = "latte conversation 1";

/// Reads members one by one; after a wrong one, `ok` is false and the values mean nothing.
class Members {
 public:
  explicit Members(const Ordered& object) : object_(object) {}

  template <class T>
  void read(const char* name, T& value) {
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    if (!object_.is_object() || found == object_.end() || !fits(*found, value)) {
      ok = false;
      return;
    }
    value = found->template get<T>();
  }

  bool ok = true;

 private:
  static bool fits(const Ordered& member, const std::string&) { return member.is_string(); }
  static bool fits(const Ordered& member, bool) { return member.is_boolean(); }
  static bool fits(const Ordered& member, double) { return member.is_number(); }
  static bool fits(const Ordered& member, int) { return is_count(member, INT32_MAX); }
  static bool fits(const Ordered& member, std::int64_t) { return is_count(member, INT64_MAX); }
  static bool fits(const Ordered& member, std::uint64_t) { return member.is_number_unsigned(); }
  static bool fits(const Ordered& member, const std::vector<std::int32_t>&) {
    return member.is_array() &&
           std::all_of(member.begin(), member.end(), [](const Ordered& id) { return is_count(id, INT32_MAX); });
  }
  static bool is_count(const Ordered& member, std::int64_t most) {
    return member.is_number_unsigned() && member.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
  }

  const Ordered& object_;
};

}  // namespace

std::string Chat::note() const {
  Ordered turns = Ordered::array();
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    const ChatTurn& turn = turns_[i];
    const Trace& trace = traces_[i];
    turns.push_back({{"message", turn.message},
                     {"reply", turn.reply},
                     {"finish_reason", turn.finish_reason},
                     {"seed", turn.seed},
                     {"prompt_tokens", turn.prompt_tokens},
                     {"cached_tokens", turn.cached_tokens},
                     {"generated_tokens", turn.generated_tokens},
                     {"first_token_seconds", turn.first_token_seconds},
                     {"generate_seconds", turn.generate_seconds},
                     {"absorbed_steps", turn.paths.absorbed_steps},
                     {"absorbed_rows", turn.paths.absorbed_rows},
                     {"materialised_steps", turn.paths.materialised_steps},
                     {"materialised_rows", turn.paths.materialised_rows},
                     {"kept", trace.kept},
                     {"dropped", trace.dropped},
                     {"prompt", trace.prompt},
                     {"cached", trace.cached},
                     {"stop_token_before", trace.stop_token_before}});
  }
  const Ordered note = {{"format", kFormat}, {"raw", raw_},    {"system", system_},
                        {"held", held_},     {"turns", turns}, {"stop_token_last", stop_token_last_}};
  return note.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

/// Fills everything but the session from a note; false where it does not hold together.
bool Chat::read_note(const std::string& text) {
  const Ordered note = Ordered::parse(text, nullptr, false);
  Members members(note);
  std::string format;
  members.read("format", format);
  members.read("raw", raw_);
  members.read("system", system_);
  members.read("held", held_);
  members.read("stop_token_last", stop_token_last_);
  if (!members.ok || format != kFormat || !note.contains("turns") || !note["turns"].is_array()) return false;
  int before = 0;  // tokens held before the turn
  for (const Ordered& stored : note["turns"]) {
    ChatTurn turn;
    Trace trace;
    Members of_turn(stored);
    of_turn.read("message", turn.message);
    of_turn.read("reply", turn.reply);
    of_turn.read("finish_reason", turn.finish_reason);
    of_turn.read("seed", turn.seed);
    of_turn.read("prompt_tokens", turn.prompt_tokens);
    of_turn.read("cached_tokens", turn.cached_tokens);
    of_turn.read("generated_tokens", turn.generated_tokens);
    of_turn.read("first_token_seconds", turn.first_token_seconds);
    of_turn.read("generate_seconds", turn.generate_seconds);
    of_turn.read("absorbed_steps", turn.paths.absorbed_steps);
    of_turn.read("absorbed_rows", turn.paths.absorbed_rows);
    of_turn.read("materialised_steps", turn.paths.materialised_steps);
    of_turn.read("materialised_rows", turn.paths.materialised_rows);
    of_turn.read("kept", trace.kept);
    of_turn.read("dropped", trace.dropped);
    of_turn.read("prompt", trace.prompt);
    of_turn.read("cached", trace.cached);
    of_turn.read("stop_token_before", trace.stop_token_before);
    const bool adds_up = trace.kept + static_cast<std::int64_t>(trace.dropped.size()) == before &&
                         trace.kept <= trace.prompt && trace.cached < trace.prompt;
    if (!of_turn.ok || !adds_up) return false;
    before = trace.prompt + turn.generated_tokens;
    turns_.push_back(std::move(turn));
    traces_.push_back(std::move(trace));
  }
  return before == static_cast<int>(held_.size());
}

Status Chat::save(const std::string& path) const { return session_.save(path, note()); }

Status Chat::load(const std::string& path) {
  Result<Session> session = Session::open(engine_, session_options_);
  if (!session.ok()) return session.error();
  const Result<std::string> text = session->load(path);
  if (!text.ok()) return text.error();
  Chat loaded(engine_, std::move(*session),
              {.system = "", .kwargs = kwargs_, .raw = raw_, .session = session_options_});
  if (!loaded.read_note(*text)) {
    return fail(ErrorKind::kInvalidInput,
                "{}: holds a session and no conversation, expected a file that /save wrote: use it with "
                "--prompt-cache-file",
                path);
  }
  const std::span<const std::int32_t> rows = loaded.session_.tokens();
  const bool same = rows.size() <= loaded.held_.size() && std::equal(rows.begin(), rows.end(), loaded.held_.begin());
  if (!same || loaded.raw_ != raw_) {
    return fail(ErrorKind::kInvalidInput, "{}: {}, expected a conversation of this model and template: begin a new one",
                path, same ? "was held with another kind of template" : "its tokens are not those of its rows");
  }
  loaded.watch_steps(std::move(on_step_));
  *this = std::move(loaded);
  return {};
}

}  // namespace latte
