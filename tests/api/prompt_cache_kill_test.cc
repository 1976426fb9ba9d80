#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "cache_file.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

constexpr int kKills = 200;
constexpr int kMostMicroseconds = 20000;

/// The program that saves in a loop, and what it told.
struct SaveLoop {
  std::int32_t begun = -1;  ///< number of the last save that it began
  std::int32_t done = -1;   ///< of the last one that came back
};

/// Starts the program, kills it after `delay` from its first save on, and reads what it told until then.
SaveLoop run_and_kill(const std::string& path, std::chrono::microseconds delay) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) ADD_FAILURE() << "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(LATTE_BINARY_DIR "/save_loop", "save_loop", path.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  SaveLoop told;
  std::array<char, 5> record{};
  const auto next = [&] {
    if (read(ends[0], record.data(), record.size()) != static_cast<ssize_t>(record.size())) return false;
    std::int32_t number = 0;
    std::memcpy(&number, record.data() + 1, sizeof number);
    (record[0] == 'B' ? told.begun : told.done) = number;
    return true;
  };
  EXPECT_TRUE(next()) << "the program did not start";
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  while (next()) {
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
  return told;
}

TEST(PromptCacheKill, TwoHundredKillsLoseNothingThatWasSaved) {
  const TempFolder folder;
  const Engine engine = open_or_die(family_options());
  std::vector<std::string> expected;
  for (int which = 0; which < kWorkingSessions; ++which) {
    const std::string reference = folder.file("reference");
    save_or_fail(working_session(engine, which), reference, working_note(which));
    expected.push_back(file_bytes(reference));
  }
  std::filesystem::remove(folder.file("reference"));

  const std::string path = folder.write("cache", expected[3]);
  std::string before = expected[3];
  std::mt19937 random(20240507);
  std::uniform_int_distribution<int> microseconds(0, kMostMicroseconds);
  int during_a_save = 0;
  for (int round = 0; round < kKills; ++round) {
    const SaveLoop told = run_and_kill(path, std::chrono::microseconds(microseconds(random)));
    if (HasFailure()) return;
    const std::string now = file_bytes(path);
    const std::string& old = told.done < 0 ? before : expected[static_cast<std::size_t>(told.done % kWorkingSessions)];
    const std::string& coming = expected[static_cast<std::size_t>(told.begun % kWorkingSessions)];
    ASSERT_TRUE(now == old || now == coming) << "round " << round << ": neither the old file nor the new one";
    Session session = session_or_die(engine, SpecType::kMtp, 2);
    const Result<std::string> note = session.load(path);
    ASSERT_TRUE(note.ok()) << note.error().message;
    ASSERT_EQ(note->size(), working_note(0).size());
    during_a_save += told.begun > told.done ? 1 : 0;
    before = now;
  }
  EXPECT_GT(during_a_save, kKills / 4) << "most kills were to hit a save";

  save_or_fail(working_session(engine, 0), path, "last");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1)
      << "temporary files of dead writers pile up";
}

}  // namespace
}  // namespace latte::test
