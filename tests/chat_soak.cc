// Random conversations (turns, stops, regen, undo, reset, save and load) for a while, each against a fresh session fed
// the same tokens in the same steps (every cached bit equal) and against one whole prefill (logits after the next
// prompt within tolerance, under pinned numerics every bit equal). Usage: chat_soak [--seconds N] [--seed S] [--model
// DIR]   without a model: random weights, three kinds of template
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/chat_model.h"
#include "support/chat_replay.h"
#include "support/sanitizers.h"

namespace latte::test {
namespace {

using Clock = std::chrono::steady_clock;

struct SoakOptions {
  int seconds = 10;
  std::uint64_t seed = 0;
  std::string model;
};

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// max|a-b| / max|b|.
double distance(std::span<const float> a, std::span<const float> b) {
  double most = 0, apart = a.size() == b.size() && !a.empty() ? 0 : 1e9;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(static_cast<double>(b[i])));
    apart = std::max(apart, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return most > 0 ? apart / most : apart;
}

class Soak {
 public:
  Soak(const SoakOptions& options, std::vector<Engine> engines)
      : options_(options), engines_(std::move(engines)), random_(options.seed) {}

  int run() {
    const Clock::time_point end = Clock::now() + std::chrono::seconds(options_.seconds);
    const Clock::time_point warm = Clock::now() + std::chrono::milliseconds(options_.seconds * 1000 / 3);
    std::int64_t warm_bytes = 0;
    while (Clock::now() < end && failure_.empty()) {
      converse();
      ++conversations_;
      if (warm_bytes == 0 && Clock::now() > warm) warm_bytes = resident_bytes();
    }
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
    const std::int64_t grown = warm_bytes > 0 ? resident_bytes() - warm_bytes : 0;
    if (failure_.empty() && !kSanitized && grown > (std::int64_t{8} << 20))
      failure_ = "memory grew by " + std::to_string(grown >> 10) + " KiB after the first third";
    std::printf(
        "chat_soak: seed %llu, %d conversations, %d turns (%d stopped, %d regenerated, %d undone, %d saved and loaded, "
        "%d reset), largest "
        "distance to a whole prefill %.2e, %d pinned prefills equal, memory grew %lld KiB\n",
        static_cast<unsigned long long>(options_.seed), conversations_, turns_, stopped_, regenerated_, undone_,
        loaded_, reset_, farthest_, pinned_, static_cast<long long>(grown >> 10));
    if (failure_.empty()) return 0;
    std::printf("FAILED in conversation %d: %s\n", conversations_, failure_.c_str());
    return 1;
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<std::uint64_t>(bound)); }

  std::string message() {
    static const std::vector<std::string> kPieces = {"the ", "a word ", "<|end|>", "<|user|>", "\n\n",
                                                     "é",    "漢字",    "then ",   "123 ",     "?",
                                                     " ",    "x",       "\xff",    "there "};
    std::string text = "m";
    for (int pieces = below(12) == 0 ? 120 : 1 + below(14); pieces > 0; --pieces)
      text += kPieces[static_cast<std::size_t>(below(static_cast<int>(kPieces.size())))];
    return text;
  }

  RunOptions options_of_turn() {
    RunOptions options;
    options.max_tokens = 1 + below(30);
    options.sampling = sampling_;
    options.seed = random_();
    options.ignore_eos = below(2) == 0;
    return options;
  }

  Chat new_chat(const Engine& engine) {
    static const std::vector<SpecType> kSpecs = {SpecType::kNone, SpecType::kAuto, SpecType::kLookup};
    ChatOptions options;
    options.session.spec = kSpecs[static_cast<std::size_t>(below(3))];
    return Chat::open(engine, options).value();
  }

  void converse() {
    const Engine& engine = engines_[static_cast<std::size_t>(below(static_cast<int>(engines_.size())))];
    engine_ = &engine;
    sampling_ = below(3) == 0 ? SamplingChoice{} : SamplingChoice{.temperature = 0.9, .top_k = 0, .top_p = 0.98};
    Chat chat = new_chat(engine);
    ChatLog log;
    for (int left = 3 + below(14); left > 0 && failure_.empty(); --left) act(chat, log);
    if (!failure_.empty()) return;
    compare_with_fresh(engine, chat, log);
    if (failure_.empty()) compare_with_prefill(engine, chat);
  }

  void act(Chat& chat, ChatLog& log) {
    const int choice = below(100);
    if (choice < 12 && !chat.turns().empty()) {
      ++undone_;
      if (!chat.undo().ok()) failure_ = "undo refused";
      log.undone();
    } else if (choice < 26 && !chat.turns().empty()) {
      ++regenerated_;
      note(chat.regenerate(options_of_turn()), log, true);
    } else if (choice < 29) {
      ++reset_;
      chat.reset();
      log.reset();
    } else if (choice < 37) {
      ++loaded_;
      Chat other = new_chat(*engine_);
      Status moved = chat.save(file_);
      if (moved.ok()) moved = other.load(file_);
      if (!moved.ok()) failure_ = moved.error().message;
      chat = std::move(other);
    } else {
      int until_stop = choice < 53 ? 1 + below(12) : -1;
      stopped_ += until_stop > 0 ? 1 : 0;
      const auto on_token = [&](const TokenEvent&) { return until_stop < 0 || --until_stop > 0; };
      const Result<ChatReply> reply = chat.say(message(), options_of_turn(), on_token);
      const bool full = !reply.ok() && reply.error().message.find("--ctx-size") != std::string::npos;
      if (full) return;  // the conversation is as it was; a later undo or the end goes on from here
      note(reply, log, false);
    }
  }

  void note(const Result<ChatReply>& reply, ChatLog& log, bool again) {
    ++turns_;
    if (!reply.ok()) {
      failure_ = reply.error().message;
    } else if (again) {
      log.regenerated(*reply);
    } else {
      log.said(*reply);
    }
  }

  void compare_with_fresh(const Engine& engine, Chat& chat, const ChatLog& log) {
    Session fresh = Session::open(engine, {.spec = SpecType::kNone, .num_draft_tokens = std::nullopt}).value();
    failure_ = log.replay(fresh, sampling_);
    if (engine.info().numerics == "pinned") return;  // there a turn undone has left its prompt's rows, not the reply's
    // Where a template had rewritten rows before the turn undone last, they are not there until they are read again.
    const int rows = chat.session().length();
    if (failure_.empty() && !fresh.rewind_to(rows).ok()) failure_ = "more rows than a fresh session has";
    if (failure_.empty() && cached_bits(chat.session()) != cached_bits(fresh))
      failure_ = "cached rows differ from those of a fresh session";
  }

  void compare_with_prefill(const Engine& engine, Chat& chat) {
    RunOptions one;
    one.max_tokens = 1;
    one.sampling = SamplingChoice{};
    one.ignore_eos = true;
    const Result<ChatReply> reply = chat.say("next", one);
    if (!reply.ok()) return;  // the context is full
    const std::vector<std::int32_t>& prompt = reply->run.prompt_ids;
    Session whole = Session::open(engine, {.spec = SpecType::kNone, .num_draft_tokens = std::nullopt}).value();
    if (const auto read = whole.generate(prompt, one); !read.ok()) {
      failure_ = read.error().message;
      return;
    }
    const double apart = distance(last_logits(chat.session(), prompt), last_logits(whole, prompt));
    if (engine.info().numerics == "pinned") {
      ++pinned_;
      if (apart != 0 || cached_bits(chat.session()) != cached_bits(whole))
        failure_ = "pinned rows differ from those of a whole prefill";
      return;
    }
    farthest_ = std::max(farthest_, apart);
    const double most = engine.info().cache == "f32" ? 1e-4 : 0.1;
    if (!(apart <= most)) failure_ = "logits are " + std::to_string(apart) + " from those of a whole prefill";
  }

  SoakOptions options_;
  std::vector<Engine> engines_;
  std::mt19937_64 random_;
  SamplingChoice sampling_;
  const Engine* engine_ = nullptr;  // of the conversation
  std::string file_ = std::filesystem::temp_directory_path() / ("latte_soak_" + std::to_string(getpid()) + ".chat");
  std::string failure_;
  double farthest_ = 0;
  int conversations_ = 0, turns_ = 0, stopped_ = 0, regenerated_ = 0, undone_ = 0, reset_ = 0, loaded_ = 0, pinned_ = 0;
};

/// Models of random weights with each kind of template, in a folder that goes with it.
class RandomModels {
 public:
  RandomModels() : path_(std::filesystem::temp_directory_path() / ("latte_soak_" + std::to_string(getpid()))) {
    const std::map<std::string, std::string_view> kinds = {
        {"plain", kPlainTemplate}, {"forgetful", kForgetfulTemplate}, {"raw", ""}};
    for (const auto& [name, chat_template] : kinds) {
      std::filesystem::create_directories(path_ / name);
      write_chat_model((path_ / name).string(), LATTE_SOURCE_DIR "/tests/data/families/deepseek_v3", chat_template);
      folders_.push_back((path_ / name).string());
    }
  }
  RandomModels(const RandomModels&) = delete;
  RandomModels& operator=(const RandomModels&) = delete;
  ~RandomModels() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  std::filesystem::path path_;
  std::vector<std::string> folders_;
};

std::optional<SoakOptions> read_options(std::span<char* const> words) {
  SoakOptions options;
  options.seed = std::random_device{}();
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string_view name = words[i], value = words[i + 1];
    if (name == "--model") {
      options.model = value;
    } else if (name == "--seconds") {
      std::from_chars(value.data(), value.data() + value.size(), options.seconds);
    } else if (name == "--seed") {
      std::from_chars(value.data(), value.data() + value.size(), options.seed);
    } else {
      return std::nullopt;
    }
  }
  return words.size() % 2 == 0 ? std::optional(options) : std::nullopt;
}

int soak(std::span<char* const> words) {
  const std::optional<SoakOptions> options = read_options(words);
  if (!options.has_value()) {
    std::puts("usage: chat_soak [--seconds N] [--seed S] [--model DIR]");
    return 2;
  }
  const std::optional<RandomModels> random =
      options->model.empty() ? std::optional<RandomModels>(std::in_place) : std::nullopt;
  const std::vector<std::string> folders = random.has_value() ? random->folders() : std::vector{options->model};
  std::vector<Engine> engines;
  for (const std::string& folder : folders) {
    for (const Numerics numerics : {Numerics::kFast, Numerics::kPinned}) {
      EngineOptions how;
      how.model = folder;
      how.context = random.has_value() ? 600 : 0;
      how.threads = random.has_value() ? 1 : 0;
      how.numerics = numerics;
      Result<Engine> engine = Engine::open(how);
      if (!engine.ok()) {
        std::puts(engine.error().message.c_str());
        return 1;
      }
      engines.push_back(std::move(*engine));
    }
  }
  return Soak(*options, std::move(engines)).run();
}

}  // namespace
}  // namespace latte::test

int main(int count, char** words) {
  return latte::test::soak(std::span<char* const>(words, static_cast<std::size_t>(count)).subspan(1));
}
