#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace latte::test {

/// What a run of the program left.
struct Outcome {
  int exit_code = -1;  ///< negative: killed by that signal
  std::string out;
  std::string err;

  nlohmann::json json() const {
    nlohmann::json value = nlohmann::json::parse(out, nullptr, false);
    EXPECT_FALSE(value.is_discarded()) << "standard output is not one JSON value: " << out << "\n" << err;
    return value;
  }
};

struct RunHow {
  std::vector<std::string> environment;  ///< "NAME=value", beside the parent's
  bool close_stdout = false;             ///< the reader of standard output is gone before the program writes
  int interrupt_after_ms = 0;            ///< SIGINT after this time
  std::string input = {};                ///< standard input, less than a pipe holds; empty: the parent's
};

/// Runs the built program with both outputs captured.
inline Outcome run_latte(const std::vector<std::string>& arguments, const RunHow& how = {}) {
  std::array<int, 2> out{}, err{}, in{};
  if (pipe(out.data()) != 0 || pipe(err.data()) != 0 || pipe(in.data()) != 0) ADD_FAILURE() << "no pipes";
  if (write(in[1], how.input.data(), how.input.size()) != static_cast<ssize_t>(how.input.size()))
    ADD_FAILURE() << "the input is too long";
  close(in[1]);
  const pid_t child = fork();
  if (child == 0) {
    if (!how.input.empty()) dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (const int end : {out[0], out[1], err[0], err[1], in[0]}) close(end);
    putenv(const_cast<char*>("LATTE_NO_CALIBRATION=1"));  // no result hangs on what somebody measured here
    for (const std::string& entry : how.environment) putenv(const_cast<char*>(entry.c_str()));
    std::vector<char*> words;
    const std::string program = LATTE_BINARY_DIR "/latte";
    words.push_back(const_cast<char*>(program.c_str()));
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  close(in[0]);
  if (how.close_stdout) close(out[0]);
  if (how.interrupt_after_ms > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(how.interrupt_after_ms));
    kill(child, SIGINT);
  }

  Outcome outcome;
  std::array<pollfd, 2> ends = {pollfd{how.close_stdout ? -1 : out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&outcome.out, &outcome.err};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    poll(ends.data(), ends.size(), -1);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 4096> block{};
      const ssize_t got = read(ends[i].fd, block.data(), block.size());
      if (got > 0) {
        texts[i]->append(block.data(), static_cast<std::size_t>(got));
      } else {
        close(ends[i].fd);
        ends[i].fd = -1;
      }
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return outcome;
}

inline std::string family_model() { return LATTE_SOURCE_DIR "/tests/data/families/deepseek_v3"; }

/// True when `text` is exactly one line that starts with "error: ".
inline bool is_one_error_line(const std::string& text) {
  return text.starts_with("error: ") && text.find('\n') == text.size() - 1;
}

}  // namespace latte::test
