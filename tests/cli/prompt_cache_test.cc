#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "run_program.h"
#include "support/chat_model.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PromptCacheOption : public ::testing::Test {
 protected:
  std::vector<std::string> words(const std::string& ids, std::vector<std::string> more) const {
    std::vector<std::string> all = {"generate", "-m", family_model(), "--ids", ids, "--ignore-eos",
                                    "-t",       "1",  "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome cached(const std::string& ids, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"-n", "12", "--prompt-cache-file", path_});
    return run_latte(words(ids, more));
  }

  TempFolder folder_;
  std::string path_ = folder_.file("cache");
  std::string prompt_ = "5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22";
};

TEST_F(PromptCacheOption, SecondRunFeedsOneTokenAndWritesTheSame) {
  const nlohmann::json without = run_latte(words(prompt_, {"-n", "12"})).json();
  const Outcome first = cached(prompt_);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.json()["cached_tokens"], 0);
  EXPECT_EQ(first.json()["ids"], without["ids"]);
  const Outcome second = cached(prompt_, {"-v"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.json()["cached_tokens"], 17);
  EXPECT_EQ(second.json()["ids"], without["ids"]);
  EXPECT_EQ(second.json()["accepted"], without["accepted"]);
  EXPECT_NE(second.err.find("17 of 18 prompt tokens reused"), std::string::npos) << second.err;
}

TEST_F(PromptCacheOption, VerboseSaysWhyAMissIsOne) {
  EXPECT_NE(cached(prompt_, {"-v"}).err.find("was not there yet"), std::string::npos);
  const Outcome changed = cached("5,6,7,8,99,10,11", {"-v"});
  EXPECT_EQ(changed.json()["cached_tokens"], 4);
  EXPECT_NE(changed.err.find("first different token at 4: file 9, prompt 99"), std::string::npos) << changed.err;
  const Outcome other_drafter = cached("5,6,7,8,99,10,11", {"-v", "--spec-type", "lookup"});
  EXPECT_NE(other_drafter.err.find("the rows of its drafter \"mtp\" are left out"), std::string::npos)
      << other_drafter.err;
  EXPECT_EQ(other_drafter.json()["cached_tokens"], 6);
  EXPECT_EQ(cached("5,6,7,8,99,10,11").err, "") << "without -v nothing is said";
}

TEST_F(PromptCacheOption, TokensThatGoAreSaidToGo) {
  ASSERT_EQ(cached(prompt_).exit_code, 0);
  const Outcome shorter = cached("5,6,7,99", {"-n", "1"});
  ASSERT_EQ(shorter.exit_code, 0) << shorter.err;
  EXPECT_NE(shorter.err.find("tokens are not of this text and go"), std::string::npos) << shorter.err;
}

TEST_F(PromptCacheOption, ARunWithoutADrafterLeavesTheDraftersRows) {
  ASSERT_EQ(cached(prompt_).exit_code, 0);
  const std::string saved = bytes_of(path_);
  ASSERT_EQ(cached(prompt_, {"--spec-type", "none"}).exit_code, 0);
  EXPECT_TRUE(bytes_of(path_) == saved);
}

TEST_F(PromptCacheOption, PinnedSaysWhyItKeepsLess) {
  ASSERT_EQ(cached(prompt_, {"--numerics", "pinned"}).exit_code, 0);
  const Outcome second = cached(prompt_, {"--numerics", "pinned", "-v"});
  EXPECT_EQ(second.json()["cached_tokens"], 0);
  EXPECT_NE(second.err.find("0 of 18 prompt tokens reused; 18 are the same, but --numerics pinned"), std::string::npos)
      << second.err;
}

TEST_F(PromptCacheOption, APlaceThatCannotBeWrittenIsFoundBeforeTheWork) {
  const std::string nowhere = folder_.file("dangling");
  std::filesystem::create_symlink(folder_.file("gone"), nowhere);
  const Outcome outcome =
      run_latte({"generate", "-m", family_model(), "--ids", prompt_, "-n", "2", "--prompt-cache-file", nowhere});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
  EXPECT_EQ(run_latte({"generate", "-m", family_model(), "--ids", "1", "--prompt-cache-file", ""}).exit_code, 2);
}

TEST_F(PromptCacheOption, AConversationIsNoPromptCacheAndStays) {
  write_chat_model(folder_.path(), family_model(), "");
  const std::string saved = folder_.file("conversation");
  RunHow how;
  how.input = "abc\n/save " + saved + " \n/save " + folder_.write("notes", "mine") + "\n";
  const Outcome chat = run_latte({"chat", "-m", folder_.path(), "-n", "2", "-t", "1"}, how);
  EXPECT_EQ(chat.exit_code, 1);
  EXPECT_NE(chat.err.find("holds something else than a session"), std::string::npos) << chat.err;
  EXPECT_EQ(bytes_of(folder_.file("notes")), "mine");
  const std::string bytes = bytes_of(saved);
  ASSERT_FALSE(bytes.empty()) << chat.err;
  const Outcome outcome =
      run_latte({"generate", "-m", folder_.path(), "-p", "abc", "-n", "2", "-t", "1", "--prompt-cache-file", saved});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("holds a conversation"), std::string::npos) << outcome.err;
  EXPECT_TRUE(bytes_of(saved) == bytes);
}

TEST_F(PromptCacheOption, AFileThatCannotServeIsRefusedAndStays) {
  ASSERT_EQ(cached(prompt_).exit_code, 0);
  const std::string saved = bytes_of(path_);
  const Outcome other_type = cached(prompt_, {"--cache-type", "bf16"});
  EXPECT_EQ(other_type.exit_code, 1);
  EXPECT_EQ(other_type.out, "");
  EXPECT_TRUE(is_one_error_line(other_type.err)) << other_type.err;
  EXPECT_NE(other_type.err.find("--cache-type"), std::string::npos) << other_type.err;
  EXPECT_TRUE(bytes_of(path_) == saved);

  folder_.write("cache", "my notes");
  const Outcome foreign = cached(prompt_);
  EXPECT_EQ(foreign.exit_code, 1);
  EXPECT_NE(foreign.err.find("not a prompt cache"), std::string::npos) << foreign.err;
  EXPECT_EQ(bytes_of(path_), "my notes");
}

TEST_F(PromptCacheOption, AMissingFolderIsSaidBeforeAnythingIsWritten) {
  path_ = folder_.file("no/such/cache");
  const Outcome outcome = cached(prompt_);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
}

TEST_F(PromptCacheOption, AnUnchangedSessionIsNotWrittenAgain) {
  ASSERT_EQ(cached(prompt_).exit_code, 0);
  struct stat before {
  }, after{}, longer{};
  ASSERT_EQ(stat(path_.c_str(), &before), 0);
  ASSERT_EQ(cached(prompt_).exit_code, 0);
  ASSERT_EQ(stat(path_.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  ASSERT_EQ(cached(prompt_ + ",23").exit_code, 0);
  ASSERT_EQ(stat(path_.c_str(), &longer), 0);
  EXPECT_NE(longer.st_size, before.st_size);
}

TEST_F(PromptCacheOption, AnInterruptSavesWhatIsThere) {
  std::vector<std::string> endless = words("5,6,7,8", {"-c", "1000000", "--prompt-cache-file", path_});
  const Outcome outcome = run_latte(endless, {.environment = {}, .close_stdout = false, .interrupt_after_ms = 700});
  ASSERT_EQ(outcome.exit_code, 130);
  if (outcome.out.empty()) GTEST_SKIP() << "the interrupt came before the first token on this machine";
  const std::size_t written = outcome.json()["ids"].size();
  const Outcome next = run_latte(words("5,6,7,8", {"-c", "1000000", "-n", "1", "-v", "--prompt-cache-file", path_}));
  EXPECT_EQ(next.json()["cached_tokens"], 3);
  const std::string held = "cache: " + std::to_string(4 + written - 1) + " tokens";
  EXPECT_NE(next.err.find(held), std::string::npos) << next.err;
}

// A prompt that is read in other steps has other last bits, unless it is pinned (docs/prompt-cache.md).
TEST_F(PromptCacheOption, TextOfTheTrainedModelIsTheSameFromTheFile) {
  const std::optional<std::string> tiny = model_folder("latte-tiny");
  if (!tiny.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked and LATTE_TEST_DATA is not set";
  std::string prompt = "The boats that lay in the harbour at dawn were";
  for (int boat = 1; boat <= 60; ++boat) prompt += " number " + std::to_string(boat * 7 % 61) + ", and";
  const std::string file = folder_.file("prompt.txt");
  std::ofstream(file) << prompt << " the last";
  for (const char* spec : {"none", "mtp", "lookup"}) {
    const std::vector<std::string> plain = {"generate", "-m", *tiny,         "-f", file,         "-n",     "24",
                                            "-t",       "1",  "--spec-type", spec, "--numerics", "pinned", "--json"};
    std::vector<std::string> cached = plain;
    path_ = folder_.file(spec);
    cached.insert(cached.end(), {"--prompt-cache-file", path_});
    const nlohmann::json expected = run_latte(plain).json()["ids"];
    EXPECT_EQ(run_latte(cached).json()["ids"], expected) << spec;
    const nlohmann::json again = run_latte(cached).json();
    EXPECT_EQ(again["ids"], expected) << spec;
    EXPECT_EQ(again["cached_tokens"], 256) << spec;
  }
}

}  // namespace
}  // namespace latte::test
