#include "support/family_golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <set>

#include "device/open_backend.h"
#include "model/config_file.h"
#include "support/golden.h"
#include "support/teacher_forced.h"
#include "support/test_model.h"
#include "support/tolerance.h"

namespace latte {
namespace {

using test::TeacherForcedLogits;
using test::TeacherForcedRun;

/// The folder with a golden of each list of LongRoPE.
constexpr const char* kTwoLists = "minicpm3_longrope";

/// A family folder on a backend.
struct Subject {
  std::string family;
  std::string device;
  std::string isa = "auto";
};

// How a failing case is printed.
void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.family << " on " << subject.device << " " << subject.isa;
}

std::string subject_name(const ::testing::TestParamInfo<Subject>& info) {
  return info.param.family + "_" + info.param.device + "_" + info.param.isa;
}

class FamilyGolden : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    const auto folder = test::family_folder(GetParam().family);
    if (!folder.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set and the folder is not committed";
    Result<std::unique_ptr<Backend>> backend =
        open_backend({.device = GetParam().device, .isa = GetParam().isa, .threads = 2, .compute = DType::kF32});
    if (!backend.ok() && backend.error().kind == ErrorKind::kUnsupported) GTEST_SKIP() << backend.error().message;
    ASSERT_TRUE(backend.ok()) << backend.error().message;
    backend_ = std::move(*backend);
    Result<Model> model = load_model(*folder);
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_.emplace(std::move(*model));
    folder_ = *folder;
    golden_ = *folder + "/golden.safetensors";
    auto ids = test::read_golden_ids(golden_, "ids");
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    ids_ = *ids;
  }

  bool gqa() const { return model_->config.attention == AttentionKind::kGqa; }
  bool reference() const { return GetParam().device == "reference"; }
  double bound() const { return reference() ? test::kModelReference : test::kModelF32; }
  DType cache() const { return reference() ? DType::kF64 : DType::kF32; }

  TeacherForcedLogits run(TeacherForcedRun how) {
    how.cache_dtype = cache();
    auto logits = test::teacher_forced(*model_, *backend_, ids_, how);
    EXPECT_TRUE(logits.ok()) << logits.error().message;
    return logits.ok() ? *logits : TeacherForcedLogits{};
  }

  void expect_golden(const std::string& array, const std::vector<float>& logits, const std::string& what) {
    const auto golden = test::read_golden_matrix(golden_, array);
    ASSERT_TRUE(golden.ok()) << golden.error().message;
    EXPECT_LT(test::max_relative_difference(logits, golden->values), bound()) << array << ": " << what;
  }

  void expect_all_golden(const TeacherForcedRun& how, const std::string& what) {
    const TeacherForcedLogits logits = run(how);
    expect_golden("logits", logits.main, what);
    if (model_->has_mtp()) expect_golden("mtp_logits", logits.mtp, what);
  }

  // A form is only asked for where there are two.
  PathCounters expect_forced(MlaPath path, const std::vector<int>& steps, const std::string& what) {
    const TeacherForcedLogits logits = run({.steps = steps, .path = path});
    expect_golden("logits", logits.main, what);
    if (model_->has_mtp()) expect_golden("mtp_logits", logits.mtp, what);
    return logits.paths;
  }

  std::vector<TokenId> golden_ids(const std::string& array) {
    const auto ids = test::read_golden_ids(golden_, array);
    EXPECT_TRUE(ids.ok()) << ids.error().message;
    return ids.ok() ? *ids : std::vector<TokenId>{};
  }

  std::optional<Model> model_;
  std::unique_ptr<Backend> backend_;
  std::string folder_, golden_;
  std::vector<TokenId> ids_;
};

TEST_P(FamilyGolden, PromptAtOnce) { expect_all_golden({.steps = {56}}, "one step"); }

TEST_P(FamilyGolden, PromptInPiecesThenSteps) {
  expect_all_golden({.steps = test::parse_steps("7,41,1x8")}, "7 + 41 + 1x8");
}

TEST_P(FamilyGolden, VerifyRowsAfterThePrompt) {
  for (int rows = 2; rows <= 8; ++rows) {
    std::vector<int> steps = {48, rows};
    if (rows < 8) steps.push_back(8 - rows);
    expect_all_golden({.steps = steps}, "48 + " + std::to_string(rows));
  }
}

// The whole list of cuts in each form. A model without a latent has one form, whatever is asked for.
const char* const kCuts[] = {"56", "7,41,1x8", "48,2,6", "48,3,5", "48,4,4", "48,7,1", "48,8", "7,41,5,3"};

TEST_P(FamilyGolden, ForcedAbsorbed) {
  for (const char* cut : kCuts) {
    const std::vector<int> steps = test::parse_steps(cut);
    const PathCounters paths = expect_forced(MlaPath::kAbsorbed, steps, std::string("absorbed ") + cut);
    const auto count = static_cast<std::int64_t>(steps.size());
    EXPECT_EQ(paths.absorbed_steps, gqa() ? 0 : count) << cut;
    EXPECT_EQ(paths.materialised_steps, 0) << cut;
    EXPECT_EQ(paths.gqa_steps, gqa() ? count : 0) << cut;
  }
}

TEST_P(FamilyGolden, ForcedMaterialised) {
  for (const char* cut : kCuts) {
    const std::vector<int> steps = test::parse_steps(cut);
    const PathCounters paths = expect_forced(MlaPath::kMaterialised, steps, std::string("materialised ") + cut);
    const auto count = static_cast<std::int64_t>(steps.size());
    EXPECT_EQ(paths.absorbed_steps, 0) << cut;
    EXPECT_EQ(paths.materialised_steps, gqa() ? 0 : count) << cut;
    EXPECT_EQ(paths.gqa_rows, gqa() ? 56 : 0) << cut;
  }
}

TEST_P(FamilyGolden, RewindAndRedo) {
  expect_all_golden({.steps = {48, 1, 7}, .redo = 5}, "redo 5");
  expect_all_golden({.steps = {20, 20, 16}, .redo = 3}, "redo 3");
  expect_all_golden({.steps = {56}, .redo = 55}, "all but the first row");
  for (int rows = 2; rows <= 8; ++rows) {
    std::vector<int> steps = {48, rows};
    if (rows < 8) steps.push_back(8 - rows);
    expect_all_golden({.steps = steps, .redo = rows - 1}, "a verify step of " + std::to_string(rows));
  }
  for (const MlaPath path : {MlaPath::kAbsorbed, MlaPath::kMaterialised})
    expect_all_golden({.steps = {48, 8}, .redo = 7, .path = path}, "redo 7 in one form");
}

TEST_P(FamilyGolden, GeneratedRowsKeepTheirBitsUnderAnyCutAndRewind) {
  if (reference()) GTEST_SKIP() << "bits are promised on devices; the reference is the measure of tolerance";
  const TeacherForcedLogits one = run({.steps = test::parse_steps("40,1x16")});
  for (const char* cut : {"40,16", "40,2x8", "40,3,5,8", "40,7,9", "40,15,1"}) {
    for (const int redo : {0, 2}) {
      const TeacherForcedLogits other = run({.steps = test::parse_steps(cut), .redo = redo, .redo_from = 1});
      EXPECT_EQ(one.main, other.main) << cut << " redo " << redo;
      EXPECT_EQ(one.mtp, other.mtp) << cut << " redo " << redo;
    }
  }
}

TEST_P(FamilyGolden, ChainedMtpStep) {
  if (!model_->has_mtp()) GTEST_SKIP() << "the checkpoint has no MTP layer";
  const auto logits = test::chained_mtp_logits(*model_, *backend_, ids_, cache());
  ASSERT_TRUE(logits.ok()) << logits.error().message;
  expect_golden("mtp2_logits", *logits, "second draft step");
}

TEST_P(FamilyGolden, GreedyText) {
  const auto greedy = test::read_golden_greedy(folder_ + "/golden.json");
  ASSERT_TRUE(greedy.ok()) << greedy.error().message;
  ASSERT_EQ(greedy->ids.size(), 16U);
  const int prompt = static_cast<int>(greedy->prompt.size());
  ids_ = greedy->prompt;
  ids_.insert(ids_.end(), greedy->ids.begin(), greedy->ids.end() - 1);
  for (const char* rows : {"1x15", "8,7"}) {
    const TeacherForcedLogits logits = run({.steps = test::parse_steps(std::to_string(prompt) + "," + rows)});
    const std::size_t vocab = logits.main.size() / ids_.size();
    for (std::size_t i = 0; i < greedy->ids.size(); ++i) {
      const auto row = logits.main.begin() + static_cast<std::ptrdiff_t>((greedy->prompt.size() - 1 + i) * vocab);
      const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(vocab)) - row;
      EXPECT_EQ(best, greedy->ids[i]) << "token " << i << ", " << rows;
    }
  }
}

// What a golden folder holds and nobody reads, a layer that is left out silently.
TEST_P(FamilyGolden, EveryArrayIsCompared) {
  const auto names = test::golden_arrays(golden_);
  ASSERT_TRUE(names.ok()) << names.error().message;
  std::set<std::string> expected = {"ids", "logits"};
  if (model_->has_mtp()) expected.insert({"mtp_ids", "mtp_logits", "mtp2_ids", "mtp2_logits"});
  if (GetParam().family == kTwoLists) expected.insert({"short_ids", "short_logits"});
  EXPECT_EQ(std::set<std::string>(names->begin(), names->end()), expected);
  ASSERT_EQ(ids_.size(), 56U);
  if (!model_->has_mtp()) return;
  EXPECT_EQ(golden_ids("mtp_ids"), std::vector<TokenId>(ids_.begin() + 1, ids_.end()));
  EXPECT_EQ(golden_ids("mtp2_ids"), std::vector<TokenId>(ids_.begin() + 2, ids_.end()));
}

TEST_P(FamilyGolden, MtpLayerKeepsOneLayerOfRows) {
  if (!model_->has_mtp()) GTEST_SKIP() << "the checkpoint has no MTP layer";
  const SequenceOptions options{.context = 56, .cache_dtype = cache()};
  ModelSequence main(*model_, *backend_, options);
  const MtpSequence mtp(*model_, *backend_, options, main.scratch());
  EXPECT_EQ(main.cache().layers(), model_->config.layers);
  EXPECT_EQ(mtp.cache().layers(), 1) << "the target's rows are not held twice";
  EXPECT_EQ(mtp.cache().row(), main.cache().row());
}

TEST_P(FamilyGolden, LaterTokensDoNotReachEarlierRows) {
  const TeacherForcedLogits all = run({.steps = {56}});
  const std::vector<TokenId> whole = ids_;
  ids_.resize(20);
  const TeacherForcedLogits start = run({.steps = {20}, .context = 56});
  ids_ = whole;
  EXPECT_LT(test::max_relative_difference(std::span(start.main), std::span(all.main).first(start.main.size())),
            bound());
}

// One list of factors for the whole session, by its declared context: the golden of the short one is a text within the
// original context.
class LongRopeGolden : public FamilyGolden {};

TEST_P(LongRopeGolden, ShortListWithinTheOriginalContext) {
  ids_ = golden_ids("short_ids");
  ASSERT_EQ(ids_.size(), 24U);
  for (const char* steps : {"24", "7,12,1x5", "7,10,7"})
    expect_golden("short_logits", run({.steps = test::parse_steps(steps)}).main, steps);
  expect_golden("short_logits", run({.steps = {24}, .context = 32}).main, "as long as the original context");
}

TEST_P(LongRopeGolden, DeclaredContextDecidesNotTheText) {
  const TeacherForcedLogits all = run({.steps = {56}});
  ids_.resize(24);
  const TeacherForcedLogits declared = run({.steps = {24}, .context = 33});
  EXPECT_LT(test::max_relative_difference(std::span(declared.main), std::span(all.main).first(declared.main.size())),
            bound());
}

const std::vector<std::string> kFolders = {"deepseek_v3",
                                           "kimi_k2",
                                           "moonlight",
                                           "deepseek_v3_negbias",
                                           "deepseek_v2_lite",
                                           "deepseek_v2_full",
                                           "glm4_moe_lite",
                                           "youtu",
                                           "youtu_rq",
                                           "youtu_vl",
                                           "minicpm3",
                                           "minicpm3_untied",
                                           "minicpm3_longrope",
                                           "llama",
                                           "qwen2",
                                           "qwen3",
                                           "qwen3_moe",
                                           "dots1"};

std::vector<Subject> subjects_of(const std::vector<std::string>& folders) {
  std::vector<Subject> all;
  for (const std::string& family : folders) {
    all.push_back({family, "reference"});
    for (const char* isa : {"scalar", "avx2", "avx512", "avx512_bf16", "amx"}) all.push_back({family, "cpu", isa});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyGolden, ::testing::ValuesIn(subjects_of(kFolders)), subject_name);
INSTANTIATE_TEST_SUITE_P(Families, LongRopeGolden, ::testing::ValuesIn(subjects_of({kTwoLists})), subject_name);

TEST(FamilyGoldens, EveryFolderOfAFamilyThatRunsIsCompared) {
  const auto data = test::test_data_folder();
  if (!data.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set";
  const std::set<std::string> compared(kFolders.begin(), kFolders.end());
  for (const auto& entry : std::filesystem::directory_iterator(*data + "/models/families")) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(load_config(entry.path().string()).ok(), compared.contains(name)) << name;
  }
}

}  // namespace
}  // namespace latte
