#include "decode/calibration.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "device/open_backend.h"
#include "family_engine.h"
#include "latte/bench.h"
#include "latte/report.h"
#include "latte/session.h"
#include "latte/tune.h"
#include "own_cache_home.h"
#include "plan/choose_form.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

namespace fs = std::filesystem;

constexpr MlaGeometry kSmall{.heads = 4, .r = 64, .p = 16, .n = 32, .v = 32};

/// Costs of straight lines by which one form is always the faster one.
CostProfile profile_for(MlaForm faster) {
  CostProfile profile;
  const bool absorbed = faster == MlaForm::kAbsorbed;
  for (std::size_t i = 0; i < kProfileRows.size(); ++i) {
    profile.fold_us[i] = profile.absorbed_key_us[i] = absorbed ? 1e-6 : kProfileRows[i];
    profile.ordinary_key_us[i] = absorbed ? kProfileRows[i] : 1e-6;
  }
  profile.expand_row_us = absorbed ? 1 : 1e-6;
  profile.absorbed_us = 0.1;
  return profile;
}

Result<std::unique_ptr<Backend>> open_cpu(const std::string& isa = "auto") {
  BackendOptions options;
  options.device = "cpu";
  options.isa = isa;
  options.threads = 1;
  return open_backend(options);
}

class Calibrated : public OwnCacheHome {
 protected:
  int files() const {
    const fs::path folder = fs::path(folder_.path()) / "latte";
    return fs::exists(folder) ? static_cast<int>(std::distance(fs::directory_iterator(folder), {})) : 0;
  }
  static EngineOptions options() {
    EngineOptions options;
    options.model = family_folder();
    options.threads = 1;
    options.calibration = Calibration::kStored;
    return options;
  }
  /// Where the profile of the test's model lies.
  static ProfileKey family_key(const std::string& isa = "auto") {
    const auto backend = open_cpu(isa);
    const MlaGeometry g{.heads = 3, .r = 32, .p = 16, .n = 24, .v = 20};
    return profile_key((*backend)->info(), g, {.cache = DType::kF32, .weights = DType::kF32});
  }
};

using ProfileFile = Calibrated;

TEST_F(ProfileFile, GivesTheSameBitsBack) {
  CostProfile profile = profile_for(MlaForm::kAbsorbed);
  profile.fold_us[3] = 0.1 + 0.2;
  profile.expand_row_us = 1.0 / 3;
  const ProfileKey key = family_key();
  const std::string path = *profile_path(key);
  ASSERT_TRUE(write_profile(path, key, profile).ok());
  EXPECT_EQ(files(), 1) << "no temporary file stays";
  const Result<CostProfile> back = read_profile(path, key);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(*back == profile);
}

TEST_F(ProfileFile, HasAPlaceOfItsOwnForEverythingItDependsOn) {
  const ProfileKey key = family_key();
  std::vector<ProfileKey> others(9, key);
  others[0].device = "cuda";
  others[1].processor += "X";
  others[2].isa = "other";
  others[3].threads = 7;
  others[4].geometry.heads = 5;
  others[5].cache = "BF16";
  others[6].weights = "BF16";
  others[7].products = "BF16";
  others[8].build = "0123456789abcdef";
  for (const ProfileKey& other : others) EXPECT_NE(*profile_path(other), *profile_path(key)) << other.text();
  EXPECT_EQ(profile_path(key)->find(folder_.path() + "/latte/attention-"), 0u);
}

TEST_F(ProfileFile, BrokenAndForeignFilesAreRefusedWithAReason) {
  const ProfileKey key = family_key();
  const CostProfile profile = profile_for(MlaForm::kAbsorbed);
  const std::string whole = profile_text(key, profile);
  const auto said = [&](const std::string& text) {
    const Result<CostProfile> read = read_profile(folder_.write("profile.json", text), key);
    if (read.ok()) return std::string("ok");
    EXPECT_EQ(read.error().kind, ErrorKind::kInvalidInput) << read.error().message;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
    return read.error().message;
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_EQ(said(whole), "ok");
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 3})
    EXPECT_NE(said(whole.substr(0, length)), "ok") << length;
  EXPECT_NE(said("[]").find("latte_profile"), std::string::npos);
  EXPECT_NE(said(changed("\"latte_profile\": 2", "\"latte_profile\": 3")).find("latte_profile"), std::string::npos);
  EXPECT_NE(said(changed("expand_row_us", "expand_row_um")).find("\"expand_row_us\""), std::string::npos);
  EXPECT_NE(said(changed("\"expand_row_us\": 1.0", "\"expand_row_us\": -1.0")).find("\"expand_row_us\""),
            std::string::npos);
  EXPECT_NE(said(changed("\"expand_row_us\": 1.0", "\"expand_row_us\": \"1\"")).find("\"expand_row_us\""),
            std::string::npos);
  for (const char* nothing : {"0.0", "1e-320"})
    EXPECT_NE(
        said(changed("\"expand_row_us\": 1.0", std::string("\"expand_row_us\": ") + nothing)).find("\"expand_row_us\""),
        std::string::npos);
  EXPECT_NE(said(changed("\"fold_us\": [", "\"fold_us\": [1,")).find("\"fold_us\""), std::string::npos);
  EXPECT_NE(said(changed("\"rows\": [", "\"rows\": [1,")).find("\"rows\""), std::string::npos);
  EXPECT_NE(said(changed("1024", "1025")).find("\"rows\""), std::string::npos);
  EXPECT_NE(said(changed("build ", "build f")).find("expected one of cpu"), std::string::npos);
  EXPECT_NE(said(std::string(100000, ' ')).find("at most 65536"), std::string::npos);
  EXPECT_EQ(read_profile(folder_.file("none.json"), key).error().kind, ErrorKind::kNotFound);
}

TEST_F(ProfileFile, FollowsTheEnvironment) {
  const ProfileKey key = family_key();
  const char* home = std::getenv("HOME");
  const std::string old_home = home == nullptr ? "" : home;
  use("relative/folder");
  setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(profile_path(key)->find("/somewhere/.cache/latte/"), 0u) << "a relative XDG_CACHE_HOME counts as none";
  unsetenv("HOME");
  const Result<std::string> nowhere = profile_path(key);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.error().message.find("pass --no-calibration"), std::string::npos);
  if (home != nullptr) setenv("HOME", old_home.c_str(), 1);
}

TEST_F(Calibrated, MeasuresOnceAndThenReads) {
  const auto backend = open_cpu();
  const ProbeTypes types{.cache = DType::kF32, .weights = DType::kF32};
  EXPECT_EQ(find_profile(**backend, kSmall, types, false, {}).source, "none") << "nothing is measured unasked";
  EXPECT_EQ(files(), 0);
  int told = 0;
  const FoundProfile first = find_profile(**backend, kSmall, types, true, [&](std::string_view) { ++told; });
  EXPECT_EQ(first.source, "measured");
  EXPECT_EQ(told, 1);
  EXPECT_EQ(files(), 1);
  const FoundProfile second = find_profile(**backend, kSmall, types, true, [&](std::string_view) { ++told; });
  EXPECT_EQ(second.source, "stored");
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(*second.profile == *first.profile);
  EXPECT_TRUE(first.warnings.empty() && second.warnings.empty());
}

TEST_F(Calibrated, MeasuresWhereTheWorkOfAProcessIsLimited) {
  // Linux then tells processor time by whole ticks: nothing may be measured by it. The limit cannot be raised again, so
  // a program of its own takes it.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto source_under_a_limit = [] {
    const rlimit hour{.rlim_cur = 3600, .rlim_max = 3600};
    setrlimit(RLIMIT_CPU, &hour);
    const auto backend = open_cpu();
    const FoundProfile found =
        find_profile(**backend, kSmall, {.cache = DType::kF32, .weights = DType::kF32}, true, {});
    std::fprintf(stderr, "%s %s", found.source.c_str(), found.warnings.empty() ? "" : found.warnings[0].c_str());
    _exit(found.source == "measured" ? 0 : 1);
  };
  EXPECT_EXIT(source_under_a_limit(), ::testing::ExitedWithCode(0), "");
}

TEST_F(Calibrated, ABrokenFileIsMeasuredAgainWithAWarning) {
  const auto backend = open_cpu();
  const ProbeTypes types{.cache = DType::kF32, .weights = DType::kF32};
  const std::string path = find_profile(**backend, kSmall, types, true, {}).file;
  std::ofstream(path) << "{";
  const FoundProfile only_read = find_profile(**backend, kSmall, types, false, {});
  EXPECT_FALSE(only_read.profile.has_value());
  ASSERT_EQ(only_read.warnings.size(), 1u);
  EXPECT_NE(only_read.warnings[0].find("the formula chooses"), std::string::npos) << only_read.warnings[0];
  const FoundProfile again = find_profile(**backend, kSmall, types, true, {});
  EXPECT_EQ(again.source, "measured");
  ASSERT_EQ(again.warnings.size(), 1u);
  EXPECT_NE(again.warnings[0].find("it is measured again"), std::string::npos) << again.warnings[0];
  EXPECT_EQ(find_profile(**backend, kSmall, types, true, {}).source, "stored");
}

TEST_F(Calibrated, ABenchTellsWhatOpeningComplainedOf) {
  const std::string path = *profile_path(family_key());
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << "{";
  BenchRequest request;
  request.engine = options();
  request.generated_rows = {1};
  request.repetitions = 1;
  const Result<BenchReport> report = measure_steps(request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->warnings.size(), 1u);
  EXPECT_NE(report->warnings[0].find("the formula chooses"), std::string::npos) << report->warnings[0];
  EXPECT_TRUE(std::find(report->notes.begin(), report->notes.end(), report->warnings[0]) == report->notes.end());
}

TEST_F(Calibrated, AFolderThatCannotBeWrittenLeavesTheFormulaAndOneWarning) {
  const auto backend = open_cpu();
  use(folder_.write("a-file", "") + "/below");
  int told = 0;
  const FoundProfile found = find_profile(**backend, kSmall, {.cache = DType::kF32, .weights = DType::kF32}, true,
                                          [&](std::string_view) { ++told; });
  EXPECT_FALSE(found.profile.has_value());
  EXPECT_EQ(found.source, "none");
  EXPECT_EQ(told, 0) << "what the next run cannot read is not measured";
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("a-file/below"), std::string::npos) << found.warnings[0];
}

TEST_F(Calibrated, OnlyModelsWhoseAttentionTakesTimeAreMeasuredUnasked) {
  EXPECT_TRUE(calibration_can_matter(kDeepSeekV3, 61, 163840));
  EXPECT_TRUE(calibration_can_matter(kDeepSeekV2Lite, 27, 163840));
  EXPECT_TRUE(calibration_can_matter(kMiniCpm3, 62, 32768));
  EXPECT_FALSE(calibration_can_matter(kDeepSeekV2Lite, 27, 64)) << "a short context";
  EXPECT_FALSE(calibration_can_matter({.heads = 8, .r = 128, .p = 32, .n = 64, .v = 64}, 10, 16384)) << "latte-tiny";
}

TEST_F(Calibrated, OptionsThatFixTheFormAskNoProfile) {
  ModelConfig config;
  BackendInfo cpu, reference;
  cpu.name = "cpu";
  reference.name = "reference";
  EngineOptions options;
  EXPECT_FALSE(profile_may_decide(options, config, cpu, DType::kBf16)) << "a library asks for it";
  options.calibration = Calibration::kMeasure;
  EXPECT_TRUE(profile_may_decide(options, config, cpu, DType::kBf16));
  EXPECT_FALSE(profile_may_decide(options, config, cpu, DType::kQ8)) << "costs are measured on rows of floats";
  EXPECT_FALSE(profile_may_decide(options, config, reference, DType::kBf16));
  options.numerics = Numerics::kPinned;
  EXPECT_FALSE(profile_may_decide(options, config, cpu, DType::kBf16));
  options.numerics = Numerics::kFast;
  for (const PathChoice path : {PathChoice::kAbsorbed, PathChoice::kMaterialised, PathChoice::kFormula}) {
    options.path = path;
    EXPECT_FALSE(profile_may_decide(options, config, cpu, DType::kBf16)) << word(path);
  }
  options.path = PathChoice::kAuto;
  config.attention = AttentionKind::kGqa;
  EXPECT_FALSE(profile_may_decide(options, config, cpu, DType::kBf16));
}

struct Written {
  GenerateResult result;
  EngineInfo info;
};

Written run_with(const EngineOptions& options, SpecType spec = SpecType::kNone) {
  const Result<Engine> engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  Result<Session> session = Session::open(*engine, {.spec = spec, .num_draft_tokens = {}});
  EXPECT_TRUE(session.ok()) << session.error().message;
  RunOptions run;
  run.max_tokens = 12;
  run.ignore_eos = true;
  Result<GenerateResult> result = session->generate(some_ids(40), run);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return {std::move(*result), engine->info()};
}

TEST_F(Calibrated, AStoredProfileMovesPromptStepsAndNoOthers) {
  const ProfileKey key = family_key();
  const Written formula = run_with(options());
  EXPECT_EQ(formula.info.calibration, "none");
  EXPECT_EQ(formula.result.paths.materialised_steps, 1) << "a cold prompt, by the formula";
  ASSERT_TRUE(write_profile(*profile_path(key), key, profile_for(MlaForm::kAbsorbed)).ok());
  const Written absorbed = run_with(options());
  EXPECT_EQ(absorbed.info.calibration, "stored");
  EXPECT_EQ(absorbed.result.paths.materialised_steps, 0);
  EXPECT_EQ(absorbed.result.paths.absorbed_rows, 40 + 11);

  ASSERT_TRUE(write_profile(*profile_path(key), key, profile_for(MlaForm::kMaterialised)).ok());
  const Written materialised = run_with(options());
  EXPECT_EQ(materialised.result.paths.materialised_rows, 40) << "generated rows stay absorbed";
  EXPECT_EQ(materialised.result.paths.absorbed_rows, 11);

  for (auto change : {+[](EngineOptions& o) { o.calibration = Calibration::kOff; },
                      +[](EngineOptions& o) { o.path = PathChoice::kFormula; },
                      +[](EngineOptions& o) { o.numerics = Numerics::kPinned; }}) {
    EngineOptions fixed = options();
    ASSERT_TRUE(write_profile(*profile_path(key), key, profile_for(MlaForm::kAbsorbed)).ok());
    change(fixed);
    const Written run = run_with(fixed);
    EXPECT_EQ(run.info.calibration, "none");
    EXPECT_EQ(run.result.paths.materialised_rows, 40);
  }
}

TEST_F(Calibrated, SpeculationStaysPlainDecodingUnderAProfile) {
  const ProfileKey key = family_key();
  ASSERT_TRUE(write_profile(*profile_path(key), key, profile_for(MlaForm::kAbsorbed)).ok());
  const Written plain = run_with(options()), drafted = run_with(options(), SpecType::kMtp);
  EXPECT_EQ(plain.result.ids, drafted.result.ids);
  EXPECT_EQ(drafted.result.paths.materialised_steps, 0);
}

TEST_F(Calibrated, ASmallModelIsNotMeasuredWhenItIsOpened) {
  EngineOptions measure = options();
  measure.calibration = Calibration::kMeasure;
  EXPECT_EQ(run_with(measure).info.calibration, "none");
  EXPECT_EQ(files(), 0);
}

TEST_F(Calibrated, PlanShowsTheProfileThatAnEngineWouldUse) {
  PlanRequest request;
  request.model = family_folder();
  request.threads = 1;
  request.calibration = Calibration::kStored;
  request.new_rows = request.cached_rows = 40;
  EXPECT_TRUE(plan(request)->calibrated.empty());
  const ProfileKey key = family_key();
  ASSERT_TRUE(write_profile(*profile_path(key), key, profile_for(MlaForm::kMaterialised)).ok());
  Result<PlanReport> report = plan(request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->calibrated.size(), report->crossover.size());
  EXPECT_EQ(report->calibrated[2].cached, 8192);
  EXPECT_EQ(report->calibrated[2].max_absorbed_rows, 1);
  EXPECT_EQ(report->profile_file, *profile_path(key));
  EXPECT_NE(report->step->reason.find("by this machine's profile"), std::string::npos);
  request.calibration = Calibration::kOff;
  EXPECT_TRUE(plan(request)->calibrated.empty());
}

TEST_F(Calibrated, TuneStoresWhatItMeasuresAndSaysWhatTheChoiceCosts) {
  CrossoverRequest request;
  request.engine = options();
  request.seconds = 1;
  const Result<CrossoverReport> report = tune_crossover(request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->heads, 3);
  EXPECT_LT(report->profile_seconds, 10) << "two seconds are meant, a busy machine is forgiven";
  EXPECT_EQ(report->profile_file, *profile_path(family_key(report->isa))) << "the rates chose the instruction set";
  EXPECT_EQ(report->cells.size(), 8u * 15 - 6);
  EXPECT_EQ(report->crossover.size(), report->calibrated.size());
  EXPECT_GT(report->profile_regret.cells, 0);
  for (const CrossoverCell& cell : report->cells) {
    EXPECT_GE(cell.formula_regret, 1);
    EXPECT_GE(cell.profile_regret, 1);
    EXPECT_TRUE(cell.rows > 1 || cell.profile == "absorbed") << "a single row is absorbed before any rule";
    EXPECT_EQ(cell.better == "absorbed", cell.absorbed_us <= cell.materialised_us);
  }
  EXPECT_EQ(run_with(options()).info.calibration, "stored");
}

TEST_F(Calibrated, TuneRefusesWhatHasNoChoice) {
  CrossoverRequest request;
  request.engine = options();
  request.engine.device = "reference";
  EXPECT_EQ(tune_crossover(request).error().kind, ErrorKind::kUnsupported);
  request.engine = options();
  request.config_file = family_folder() + "/config.json";
  EXPECT_EQ(tune_crossover(request).error().kind, ErrorKind::kInvalidInput) << "a model and a configuration";
  use(folder_.write("a-file", "") + "/below");
  request.config_file.clear();
  EXPECT_NE(tune_crossover(request).error().message.find("a-file/below"), std::string::npos);
}

}  // namespace
}  // namespace latte::test
