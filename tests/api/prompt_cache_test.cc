#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cache_file.h"
#include "support/chat_replay.h"
#include "support/stored_tensors.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

std::vector<std::int32_t> text_of(const Session& session) { return {session.tokens().begin(), session.tokens().end()}; }

/// A copy of the family's folder in which a test changes something.
std::string copy_of_family(const TempFolder& folder) {
  const std::string copy = folder.file("model");
  std::filesystem::create_directory(copy);
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy(family_folder() + "/" + name, copy + "/" + name);
  return copy;
}

class PromptCacheTest : public ::testing::Test {
 protected:
  /// Loading is refused with `part` in one line, and the session is as it was.
  void expect_refused(Session& session, std::string_view part) {
    const std::vector<std::int32_t> before = text_of(session);
    const Result<std::string> note = session.load(path_);
    ASSERT_FALSE(note.ok()) << part;
    EXPECT_EQ(note.error().message.find(path_ + ": "), 0u) << note.error().message;
    EXPECT_NE(note.error().message.find(part), std::string::npos) << note.error().message;
    EXPECT_EQ(note.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(text_of(session), before);
  }

  TempFolder folder_;
  std::string path_ = folder_.file("cache");
  std::vector<std::int32_t> prompt_ = some_ids(9);
};

/// A session goes on from a file as it would have gone on itself, in another process's engine.
void expect_round_trip(const TempFolder& folder, const EngineOptions& options, SpecType spec) {
  const std::string path = folder.file("cache"), again = folder.file("again");
  const Engine engine = open_or_die(options), later_engine = open_or_die(options);
  Session session = session_or_die(engine, spec);
  ASSERT_TRUE(session.generate(some_ids(20), greedy(6)).ok());
  save_or_fail(session, path, "a note: \xC3\xA4");
  const std::vector<std::int32_t> text = text_of(session);
  ASSERT_EQ(text.size(), 25u);
  Session restored = session_or_die(later_engine, spec);
  CacheFileReport report;
  const Result<std::string> note = restored.load(path, &report);
  ASSERT_TRUE(note.ok()) << note.error().message;
  EXPECT_EQ(*note, "a note: \xC3\xA4");
  EXPECT_EQ(report.rows, 25);
  EXPECT_EQ(report.drafter, word(spec));
  EXPECT_EQ(report.drafter_note, "");
  EXPECT_EQ(text_of(restored), text);
  save_or_fail(restored, again, *note);
  EXPECT_TRUE(file_bytes(again) == file_bytes(path)) << "every row and the drafter's state come back bit by bit";

  const Result<GenerateResult> expected = session.generate(text, sampled(24, 5));
  const Result<GenerateResult> got = restored.generate(text, sampled(24, 5));
  ASSERT_TRUE(expected.ok() && got.ok());
  EXPECT_EQ(got->ids, expected->ids);
  EXPECT_EQ(got->cached_tokens, 24);
  EXPECT_EQ(got->rounds, expected->rounds);
  EXPECT_EQ(got->drafted, expected->drafted);
  EXPECT_EQ(got->accepted, expected->accepted);
  save_or_fail(session, path);
  save_or_fail(restored, again);
  EXPECT_TRUE(file_bytes(again) == file_bytes(path)) << "and so do the rows written after it";
}

TEST_F(PromptCacheTest, EveryDrafterGoesOnAsItWouldHave) {
  for (const SpecType spec : {SpecType::kNone, SpecType::kLookup, SpecType::kMtp}) {
    SCOPED_TRACE(word(spec));
    expect_round_trip(folder_, family_options(), spec);
  }
}

TEST_F(PromptCacheTest, ADraftModelGoesOnAsItWouldHave) {
  EngineOptions options = family_options();
  options.draft_model = family_folder();
  expect_round_trip(folder_, options, SpecType::kDraft);
}

TEST_F(PromptCacheTest, EveryCacheTypeAndDeviceRoundTrips) {
  EngineOptions options = family_options();
  for (const CacheType type : {CacheType::kBf16, CacheType::kF16, CacheType::kQ8}) {
    options.cache = type;
    expect_round_trip(folder_, options, SpecType::kMtp);
  }
  options.draft_model = family_folder();
  expect_round_trip(folder_, options, SpecType::kDraft);
  options = family_options();
  options.device = "reference";
  expect_round_trip(folder_, options, SpecType::kMtp);
}

TEST_F(PromptCacheTest, ASecondIdenticalRunFeedsOneTokenAndWritesTheSame) {
  const Engine engine = open_or_die(family_options());
  for (const SpecType spec : {SpecType::kNone, SpecType::kMtp, SpecType::kLookup}) {
    Session first = session_or_die(engine, spec);
    const Result<GenerateResult> expected = first.generate(prompt_, greedy(30));
    save_or_fail(first, path_);
    Session second = session_or_die(engine, spec);
    ASSERT_TRUE(second.load(path_).ok());
    const Result<GenerateResult> got = second.generate(prompt_, greedy(30));
    ASSERT_TRUE(expected.ok() && got.ok());
    EXPECT_EQ(got->cached_tokens, 8);
    EXPECT_EQ(got->ids, expected->ids) << word(spec);
    EXPECT_EQ(got->accepted, expected->accepted) << word(spec);
  }
}

TEST_F(PromptCacheTest, AnotherDrafterLoadsTheRowsAndSaysSo) {
  const Engine engine = open_or_die(family_options());
  Session plain = session_or_die(engine);
  const Result<GenerateResult> expected = plain.generate(prompt_, greedy(20));
  ASSERT_TRUE(expected.ok());
  for (const auto& [from, to] :
       {std::pair(SpecType::kMtp, SpecType::kLookup), std::pair(SpecType::kLookup, SpecType::kMtp),
        std::pair(SpecType::kMtp, SpecType::kNone)}) {
    Session saved = session_or_die(engine, from), loaded = session_or_die(engine, to);
    ASSERT_TRUE(saved.generate(prompt_, greedy(4)).ok());
    save_or_fail(saved, path_);
    CacheFileReport report;
    ASSERT_TRUE(loaded.load(path_, &report).ok());
    EXPECT_EQ(report.rows, 12);
    EXPECT_NE(report.drafter_note.find(word(from)), std::string::npos) << report.drafter_note;
    const Result<GenerateResult> got = loaded.generate(prompt_, greedy(20));
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->cached_tokens, 8);
    EXPECT_EQ(got->ids, expected->ids);
  }
}

TEST_F(PromptCacheTest, AnotherDraftModelStartsAnew) {
  EngineOptions options = family_options();
  options.draft_model = family_folder();
  const Engine one = open_or_die(options);
  Session saved = session_or_die(one, SpecType::kDraft);
  ASSERT_TRUE(saved.generate(prompt_, greedy(4)).ok());
  save_or_fail(saved, path_);
  options.draft_model = copy_of_family(folder_);
  StoredTensors tensors = read_tensors(*Checkpoint::open(options.draft_model));
  tensors.begin()->second.bytes[0] ^= 1;
  ASSERT_TRUE(write_tensors(options.draft_model + "/model.safetensors", tensors).ok());
  const Engine other = open_or_die(options);
  Session loaded = session_or_die(other, SpecType::kDraft);
  CacheFileReport report;
  ASSERT_TRUE(loaded.load(path_, &report).ok());
  EXPECT_EQ(report.rows, 12);
  EXPECT_NE(report.drafter_note.find("another"), std::string::npos) << report.drafter_note;
}

TEST_F(PromptCacheTest, RowsOfManyPartsRoundTrip) {
  EngineOptions options = family_options();
  options.context = 40000;  // 96 bytes a row: several parts of a file
  const Engine engine = open_or_die(options);
  Session session = session_or_die(engine), restored = session_or_die(engine);
  SessionState& state = SessionAccess::state(session);
  constexpr int kRows = 35001;
  LatentCache& cache = state.sequence.cache();
  ASSERT_TRUE(cache.reserve(kRows).ok());
  std::vector<std::byte> bytes(static_cast<std::size_t>(kRows) * cache.bytes_per_token());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
  const LatentRows rows{.length = kRows, .layers = cache.layers(), .row = cache.row(), .bytes = bytes};
  ASSERT_TRUE(cache.prepare(rows).ok() && cache.restore(rows).ok());
  state.tokens = some_ids(kRows);
  save_or_fail(session, path_);
  ASSERT_TRUE(restored.load(path_).ok());
  EXPECT_EQ(text_of(restored), state.tokens);
  EXPECT_TRUE(cached_bits(restored) == bytes);
}

TEST_F(PromptCacheTest, AnEmptySessionRoundTrips) {
  const Engine engine = open_or_die(family_options());
  save_or_fail(session_or_die(engine, SpecType::kMtp), path_);
  Session session = session_or_die(engine, SpecType::kMtp);
  ASSERT_TRUE(session.generate(prompt_, greedy(3)).ok());
  ASSERT_TRUE(session.load(path_).ok());
  EXPECT_EQ(session.length(), 0);
}

TEST_F(PromptCacheTest, OtherWeightsOfTheSameShapeAreRefused) {
  const std::string copy = copy_of_family(folder_);
  StoredTensors tensors = read_tensors(*Checkpoint::open(copy));
  tensors.at("model.layers.2.mlp.experts.5.up_proj.weight").bytes[16] ^= 1;
  ASSERT_TRUE(write_tensors(copy + "/model.safetensors", tensors).ok());
  save_or_fail(working_session(open_or_die(family_options()), 0), path_);
  EngineOptions options = family_options();
  options.model = copy;
  const Engine other = open_or_die(options);
  Session session = working_session(other, 1);
  expect_refused(session, "another model");
}

TEST_F(PromptCacheTest, AnotherConfigurationIsRefusedAndOtherStopTokensAreNot) {
  const std::string copy = copy_of_family(folder_);
  save_or_fail(working_session(open_or_die(family_options()), 0), path_);
  const std::string config = file_bytes(copy + "/config.json");
  nlohmann::json changed = nlohmann::json::parse(config);
  changed["eos_token_id"] = 7;
  folder_.write("model/config.json", changed.dump());
  EngineOptions options = family_options();
  options.model = copy;
  {
    const Engine same = open_or_die(options);
    Session session = working_session(same, 1);
    const Result<std::string> loaded = session.load(path_);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
  }
  changed["rope_theta"] = 54321;
  folder_.write("model/config.json", changed.dump());
  const Engine other = open_or_die(options);
  Session session = working_session(other, 1);
  expect_refused(session, "configuration");
}

TEST_F(PromptCacheTest, AnotherCacheTypeComputationOrContextIsRefused) {
  save_or_fail(working_session(open_or_die(family_options()), 0), path_);
  EngineOptions options = family_options();
  for (const CacheType type : {CacheType::kBf16, CacheType::kF16, CacheType::kQ8}) {
    options.cache = type;
    const Engine engine = open_or_die(options);
    Session session = working_session(engine, 1);
    expect_refused(session, "--cache-type");
  }
  options = family_options();
  options.isa = "scalar";
  {
    const Engine engine = open_or_die(options);
    Session session = working_session(engine, 1);
    expect_refused(session, "scalar");
  }
  options = family_options();
  options.context = 13;
  const Engine engine = open_or_die(options);
  Session session = session_or_die(engine);
  expect_refused(session, "--ctx-size");
  options.context = 14;
  const Engine enough = open_or_die(options);
  EXPECT_TRUE(session_or_die(enough).load(path_).ok());
}

TEST_F(PromptCacheTest, NoFileIsNotFound) {
  const Engine engine = open_or_die(family_options());
  const Result<std::string> note = session_or_die(engine).load(path_);
  ASSERT_FALSE(note.ok());
  EXPECT_EQ(note.error().kind, ErrorKind::kNotFound);
}

TEST_F(PromptCacheTest, EveryFlippedByteIsRefused) {
  const Engine engine = open_or_die(family_options());
  save_or_fail(working_session(engine, 0), path_, "note");
  const std::string good = file_bytes(path_);
  Session session = working_session(engine, 1);
  const std::vector<std::int32_t> before = text_of(session);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, char byte) { file.seekp(static_cast<std::streamoff>(at)).put(byte).flush(); };
  for (std::size_t at = 0; at < good.size(); at += at < 1500 ? 1 : 13) {
    put(at, static_cast<char>(good[at] ^ (1 << (at % 8))));
    const Result<std::string> note = session.load(path_);
    ASSERT_FALSE(note.ok()) << "byte " << at << " of " << good.size();
    ASSERT_EQ(note.error().message.find('\n'), std::string::npos);
    put(at, good[at]);
  }
  EXPECT_EQ(text_of(session), before);
  const Result<std::string> note = session.load(path_);
  EXPECT_TRUE(note.ok()) << note.error().message;
}

TEST_F(PromptCacheTest, CutOffAndGrownFilesAreRefused) {
  const Engine engine = open_or_die(family_options());
  save_or_fail(working_session(engine, 0), path_, "note");
  const std::string good = file_bytes(path_);
  Session session = working_session(engine, 1);
  for (std::size_t size = good.size(); size-- > 0;) {
    if (size > 1500 && size % 97 != 0 && size + 1 != good.size()) continue;
    std::filesystem::resize_file(path_, size);
    const Result<std::string> note = session.load(path_);
    ASSERT_FALSE(note.ok()) << size;
  }
  folder_.write("cache", good + '\0');
  expect_refused(session, "1 bytes after its end");
  folder_.write("cache", good + good);
  expect_refused(session, "after its end");
}

TEST_F(PromptCacheTest, AnotherFormatVersionAndForeignFilesAreRefused) {
  const Engine engine = open_or_die(family_options());
  save_or_fail(working_session(engine, 0), path_);
  std::string bytes = file_bytes(path_);
  bytes[8] = 9;
  folder_.write("cache", bytes);
  Session session = working_session(engine, 1);
  expect_refused(session, "format version 9");
  folder_.write("cache", "Once upon a time there was a harbour.");
  expect_refused(session, "not a prompt cache");
  folder_.write("cache", "");
  expect_refused(session, "not a prompt cache");
}

TEST_F(PromptCacheTest, AFullDiskIsOneErrorAndTheOldFileStays) {
  const Engine engine = open_or_die(family_options());
  save_or_fail(working_session(engine, 0), path_, "old");
  const std::string old = file_bytes(path_);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  for (const rlim_t limit : {rlim_t{1}, rlim_t{100}, rlim_t{3000}, rlim_t{old.size() - 1}}) {
    const rlimit small{.rlim_cur = limit, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status saved = working_session(engine, 1).save(path_, "new");
    setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(saved.ok()) << limit;
    EXPECT_EQ(saved.error().kind, ErrorKind::kIo);
    EXPECT_EQ(saved.error().message.find('\n'), std::string::npos);
    EXPECT_TRUE(file_bytes(path_) == old);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
  }
}

TEST_F(PromptCacheTest, NotesHaveALimit) {
  const Engine engine = open_or_die(family_options());
  const Session session = working_session(engine, 0);
  const std::string largest(std::size_t{16} << 20, 'n');
  EXPECT_FALSE(session.save(path_, largest + "n").ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  save_or_fail(session, path_, largest);
  Session loaded = session_or_die(engine);
  const Result<std::string> note = loaded.load(path_);
  ASSERT_TRUE(note.ok()) << note.error().message;
  EXPECT_TRUE(*note == largest);
}

TEST_F(PromptCacheTest, ASessionAfterAFailedCallSavesWhatItHolds) {
  const Engine engine = open_or_die(family_options());
  Session session = session_or_die(engine, SpecType::kMtp, 2);
  ASSERT_TRUE(session.generate(prompt_, greedy(6)).ok());
  std::vector<std::int32_t> broken = some_ids(30);
  broken[29] = 272;
  ASSERT_FALSE(session.generate(broken, greedy(6)).ok());
  save_or_fail(session, path_);
  Session loaded = session_or_die(engine, SpecType::kMtp, 2);
  const Result<std::string> note = loaded.load(path_);
  ASSERT_TRUE(note.ok()) << note.error().message;
  EXPECT_EQ(text_of(loaded), text_of(session));
}

}  // namespace
}  // namespace latte::test
