#include <gtest/gtest.h>

#include "device/open_backend.h"
#include "support/golden.h"
#include "support/teacher_forced.h"
#include "support/tolerance.h"

namespace latte {
namespace {

// Prompts of several expanded chunks (256 rows each) and several blocks of queries: both forms are the same function.
class LongPromptForms : public ::testing::TestWithParam<std::string> {};

TEST_P(LongPromptForms, Agree) {
  const std::string folder = std::string(LATTE_SOURCE_DIR) + "/tests/data/families/deepseek_v3";
  const bool reference = GetParam() == "reference";
  Result<Model> model = load_model(folder);
  ASSERT_TRUE(model.ok()) << model.error().message;
  auto backend = open_backend({.device = GetParam(), .threads = 2, .compute = DType::kF32});
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  std::vector<TokenId> ids(820);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<TokenId>((i * 37 + i * i) % static_cast<std::size_t>(model->config.vocab));
  test::TeacherForcedRun run{.steps = {600, 200, 20}, .role_from = 4};
  run.cache_dtype = reference ? DType::kF64 : DType::kF32;
  model->config.context_length = 1024;
  run.path = MlaPath::kAbsorbed;
  const auto absorbed = test::teacher_forced(*model, **backend, ids, run);
  run.path = MlaPath::kMaterialised;
  const auto materialised = test::teacher_forced(*model, **backend, ids, run);
  ASSERT_TRUE(absorbed.ok() && materialised.ok());
  EXPECT_EQ(absorbed->paths.materialised_steps, 0);
  EXPECT_EQ(materialised->paths.absorbed_steps, 0);
  EXPECT_LT(test::max_relative_difference(absorbed->main, materialised->main), reference ? 1e-7 : test::kModelF32);
}

INSTANTIATE_TEST_SUITE_P(Devices, LongPromptForms, ::testing::Values("reference", "cpu"),
                         [](const auto& choice) { return choice.param; });

}  // namespace
}  // namespace latte
