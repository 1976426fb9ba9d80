#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "family_engine.h"

namespace latte::test {

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void save_or_fail(const Session& session, const std::string& path, std::string_view note = {}) {
  const Status saved = session.save(path, note);
  ASSERT_TRUE(saved.ok()) << saved.error().message;
}

/// A session that has read a prompt of its own, one of four, and written after it.
inline Session working_session(const Engine& engine, int which) {
  Session session = session_or_die(engine, SpecType::kMtp, 2);
  std::vector<std::int32_t> prompt = some_ids(9 + which);
  prompt[0] = 30 + which;
  EXPECT_TRUE(session.generate(prompt, greedy(6)).ok());
  return session;
}

/// The note that goes with it: long enough for a save to take a while.
inline std::string working_note(int which) {
  return std::string(std::size_t{512} << 10, static_cast<char>('a' + which));
}

inline constexpr int kWorkingSessions = 4;

}  // namespace latte::test
