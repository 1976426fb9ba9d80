#include <gtest/gtest.h>
#include <pty.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "run_program.h"
#include "support/chat_model.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

class ChatCommand : public ::testing::Test {
 protected:
  void SetUp() override { write_chat_model(folder_.path(), family_model(), kPlainTemplate); }

  std::vector<std::string> words(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"chat", "-m", folder_.path(), "-t", "1", "-c", "4096", "--ignore-eos"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Outcome script(const std::string& lines, const std::vector<std::string>& more) const {
    RunHow how;
    how.input = lines;
    return run_latte(words(more), how);
  }

  /// The JSON objects that a script with --json printed, one a line.
  std::vector<nlohmann::json> objects(const std::string& lines, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> with_json = {"--json", "-n", "6"};
    with_json.insert(with_json.end(), more.begin(), more.end());
    const Outcome outcome = script(lines, with_json);
    last_error_ = outcome.err;
    last_code_ = outcome.exit_code;
    std::vector<nlohmann::json> all;
    std::istringstream out(outcome.out);
    for (std::string line; std::getline(out, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  TempFolder folder_;
  mutable std::string last_error_;
  mutable int last_code_ = 0;
};

TEST_F(ChatCommand, ScriptGetsAReplyPerMessage) {
  const auto turns = objects("hello\n\nand you?\n");
  ASSERT_EQ(turns.size(), 2u) << last_error_;
  EXPECT_EQ(last_code_, 0);
  EXPECT_EQ(turns[0]["turn"], 1);
  EXPECT_EQ(turns[0]["kept_tokens"], 0);
  EXPECT_EQ(turns[0]["generated_tokens"], 6);
  EXPECT_EQ(turns[1]["kept_tokens"], turns[1]["held_tokens"]);
  EXPECT_EQ(turns[1]["cached_tokens"].get<int>(), turns[1]["held_tokens"].get<int>() - 1);
  EXPECT_GT(turns[1]["first_token_seconds"].get<double>(), 0);
}

TEST_F(ChatCommand, StandardOutputHoldsRepliesAlone) {
  const Outcome plain = script("hello\n/stats\n/help\nbye\n", {"-n", "4", "--seed", "1"});
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  const auto turns = objects("hello\nbye\n", {"-n", "4", "--seed", "1"});
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(plain.out, turns[0]["text"].get<std::string>() + "\n" + turns[1]["text"].get<std::string>() + "\n");
  EXPECT_NE(plain.err.find("first token"), std::string::npos) << plain.err;
  EXPECT_NE(plain.err.find("/regen"), std::string::npos) << plain.err;
}

TEST_F(ChatCommand, MessagesOfManyLines) {
  const auto turns = objects("one\\\ntwo\n\"\"\"\nthree\nfour\"\"\"\n//five\n");
  ASSERT_EQ(turns.size(), 3u) << last_error_;
  const auto text = [&](std::size_t i) {
    std::string list;
    for (const auto& id : turns[i]["prompt_ids"]) list += (list.empty() ? "" : ",") + id.dump();
    return run_latte({"detokenize", "-m", folder_.path(), "--ids", list}).out;
  };
  EXPECT_TRUE(text(0).ends_with("<|user|>one\ntwo<|assistant|>")) << text(0);
  EXPECT_TRUE(text(1).ends_with("<|user|>three\nfour<|assistant|>")) << text(1);
  EXPECT_TRUE(text(2).ends_with("<|user|>/five<|assistant|>")) << text(2);
}

TEST_F(ChatCommand, UndoAndRegenAreExact) {
  const auto lines = objects("hello\nmore\n/undo\nmore\n/regen\n/reset\nhello\n", {"--temp", "0.9", "--seed", "4"});
  ASSERT_EQ(lines.size(), 7u) << last_error_;
  EXPECT_EQ(lines[2]["command"], "/undo");
  EXPECT_EQ(lines[2]["turns"], 1);
  EXPECT_EQ(lines[3]["ids"], lines[1]["ids"]);
  EXPECT_EQ(lines[3]["prompt_ids"], lines[1]["prompt_ids"]);
  EXPECT_NE(lines[4]["ids"], lines[3]["ids"]) << "a new seed";
  EXPECT_EQ(lines[4]["prompt_ids"], lines[3]["prompt_ids"]);
  EXPECT_EQ(lines[5]["tokens"], 0);
  EXPECT_EQ(lines[6]["ids"], lines[0]["ids"]);
}

TEST_F(ChatCommand, VerboseTellsReuseAndForms) {
  const Outcome outcome = script(std::string(300, 'a') + "\nten letters\n", {"-n", "3", "-v", "--spec-type", "none"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("1 prompt step: L 303, T 303: materialised: 303 rows over 303 cached rows cost"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("absorbed: 14 rows over 319 cached rows cost"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("306 of 306 held ones kept as they are, 305 rows in the cache, 14 fed"), std::string::npos)
      << outcome.err;
}

TEST_F(ChatCommand, WhatFailsIsOneLineAndTheConversationGoesOn) {
  const auto lines = objects("/udno\n/undo\n/stats now\nhello\n");
  ASSERT_EQ(lines.size(), 4u) << last_error_;
  EXPECT_EQ(last_code_, 1);
  EXPECT_NE(lines[0]["error"].get<std::string>().find("(did you mean \"/undo\"?)"), std::string::npos);
  EXPECT_EQ(lines[1]["ok"], false);
  EXPECT_EQ(lines[2]["ok"], false);
  EXPECT_EQ(lines[3]["turn"], 1);
}

TEST_F(ChatCommand, SavedConversationIsLoadedByAnotherRun) {
  const std::string file = folder_.file("kept");
  const auto first = objects("hello\n/save " + file + "\nmore\n", {"--seed", "3", "--temp", "0.9"});
  ASSERT_EQ(first.size(), 3u) << last_error_;
  EXPECT_EQ(first[1]["ok"], true) << last_error_;
  const auto second = objects("/load " + file + "\nmore\n/load\n", {"--seed", "3", "--temp", "0.9"});
  ASSERT_EQ(second.size(), 3u) << last_error_;
  EXPECT_EQ(second[0]["turns"], 1);
  EXPECT_EQ(second[1]["ids"], first[2]["ids"]);
  EXPECT_EQ(second[1]["cached_tokens"], first[2]["cached_tokens"]);
  EXPECT_EQ(second[2]["ok"], false) << "no file named";
}

TEST_F(ChatCommand, StatsOfALoadedConversationAreItsOwn) {
  const std::string file = folder_.file("kept");
  const std::string all = "steps of these turns: absorbed ";
  const auto stats = [&](const std::string& lines) {
    const std::string err = script(lines, {"-n", "4", "--spec-type", "none"}).err;
    const std::size_t at = err.find(all);
    return at == std::string::npos ? err : err.substr(at, err.find('\n', at) - at);
  };
  const std::string before = stats("hello\n/save " + file + "\n/stats\n");
  EXPECT_EQ(before.find(all + "0"), std::string::npos) << before;
  EXPECT_EQ(stats("/load " + file + "\n/stats\n"), before);
}

TEST_F(ChatCommand, QuitEndsAsExitDoes) {
  for (const char* word : {"/exit", "/quit"}) {
    const auto lines = objects(std::string("hello\n") + word + "\nmore\n");
    EXPECT_EQ(lines.size(), 1u) << word << last_error_;
    EXPECT_EQ(last_code_, 0);
  }
  const std::string help = run_latte({"chat", "--help"}).out;
  EXPECT_NE(help.find("Exit code: 0; 1 when standard input is no terminal"), std::string::npos) << help;
}

TEST_F(ChatCommand, ModelIsAskedFor) { EXPECT_EQ(run_latte({"chat"}).exit_code, 2); }

/// The program on a terminal of its own.
class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& arguments) {
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ != 0) return;
    std::vector<char*> words;
    const std::string program = LATTE_BINARY_DIR "/latte";
    words.push_back(const_cast<char*>(program.c_str()));
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    setenv("TERM", "vt100", 1);
    execv(words[0], words.data());
    _exit(127);
  }
  ~Terminal() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(terminal_);
  }

  void type(const std::string& text) const {
    EXPECT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  /// Reads until `text` comes, which ends what was shown; false after half a minute without it.
  bool shows(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (seen_.find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() > end || !read_some()) return false;
    }
    seen_.erase(0, seen_.find(text) + text.size());
    return true;
  }

  /// Waits for the end; a program that shows nothing for half a minute, or lives that long without its terminal, is
  /// killed.
  int exit_code() {
    while (read_some()) {
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(closed_ ? 30 : 0);
    int status = 0;
    while (waitpid(child_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) kill(child_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const std::string& seen() const { return seen_; }

 private:
  bool read_some() {
    pollfd input{terminal_, POLLIN, 0};
    if (poll(&input, 1, 30000) <= 0) return false;
    std::array<char, 4096> block{};
    const ssize_t got = read(terminal_, block.data(), block.size());
    closed_ = got <= 0;
    if (closed_) return false;
    seen_.append(block.data(), static_cast<std::size_t>(got));
    return true;
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string seen_;
  bool closed_ = false;
};

TEST_F(ChatCommand, InterruptStopsTheReplyAndKeepsTheSession) {
  Terminal terminal(words({"-c", "100000"}));
  ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
  terminal.type("hello\n");
  ASSERT_TRUE(terminal.shows("hello")) << terminal.seen();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
  terminal.type("/stats\n");
  EXPECT_TRUE(terminal.shows("cancelled")) << terminal.seen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
  terminal.type("half a line\x03");
  EXPECT_TRUE(terminal.shows("(Ctrl-C again")) << terminal.seen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
  terminal.type("/tokens\n");
  EXPECT_TRUE(terminal.shows("[0,2,")) << terminal.seen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
  terminal.type("\x04");
  EXPECT_EQ(terminal.exit_code(), 0) << terminal.seen();
}

TEST_F(ChatCommand, EndOfFileTypedDuringAReplyEndsAfterIt) {
  Terminal terminal(words({"-n", "2000"}));
  ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
  terminal.type("hello\n");
  ASSERT_TRUE(terminal.shows("hello\r\n")) << terminal.seen();
  terminal.type("/stats\n\x04");
  EXPECT_EQ(terminal.exit_code(), 0) << terminal.seen();
  EXPECT_NE(terminal.seen().find("conversation: 2006 tokens"), std::string::npos) << terminal.seen();
}

TEST_F(ChatCommand, SecondInterruptInARowEndsWith130) {
  Terminal terminal(words({}));
  ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("(Ctrl-C again")) << terminal.seen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_code(), 130) << terminal.seen();
}

TEST_F(ChatCommand, HistoryIsKeptOnRequest) {
  const std::string file = folder_.file("history");
  for (const char* typed : {"/stats\n", "/tokens\n"}) {
    Terminal terminal(words({"--history", file}));
    ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
    terminal.type(typed);
    ASSERT_TRUE(terminal.shows("> ")) << terminal.seen();
    terminal.type("\x04");
    EXPECT_EQ(terminal.exit_code(), 0) << terminal.seen();
  }
  std::ifstream stored(file);
  const std::string lines((std::istreambuf_iterator<char>(stored)), {});
  EXPECT_NE(lines.find("/stats"), std::string::npos) << lines;
  EXPECT_NE(lines.find("/tokens"), std::string::npos) << lines;
}

}  // namespace
}  // namespace latte::test
