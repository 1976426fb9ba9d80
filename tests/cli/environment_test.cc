#include <gtest/gtest.h>

#include <string>

#include "run_program.h"

namespace latte::test {
namespace {

Outcome plan_with(const std::vector<std::string>& environment, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"plan", "-m", family_model()};
  words.insert(words.end(), more.begin(), more.end());
  RunHow how;
  how.environment = environment;
  return run_latte(words, how);
}

TEST(Environment, AnUnknownVariableIsSaidOnceWithTheNearestOne) {
  const Outcome outcome = plan_with({"LATTE_CTX_SIZ=64"});
  EXPECT_EQ(outcome.exit_code, 0) << "never an error";
  EXPECT_EQ(outcome.err,
            "warning: LATTE_CTX_SIZ in the environment is not read: no option has this name (did you mean "
            "\"LATTE_CTX_SIZE\"?)\n");
  EXPECT_EQ(outcome.out, plan_with({}).out);
  EXPECT_NE(plan_with({"LATTE_MODLES=/tmp"}).err.find("\"LATTE_MODELS\""), std::string::npos);
}

TEST(Environment, WhatIsNearNothingIsSaidToo) {
  const Outcome outcome = plan_with({"LATTE_FOO=1", "LATTE_=2"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("LATTE_FOO in the environment is not read"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("LATTE_ in the environment is not read"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("did you mean"), std::string::npos) << outcome.err;
}

TEST(Environment, KnownVariablesAreSilentWhateverTheCommand) {
  const Outcome outcome =
      plan_with({"LATTE_SEED=1", "LATTE_REDO=2", "LATTE_MODELS=/tmp", "LATTE_TEST_DATA=/tmp", "LATTE_MUTATION=3",
                 "LATTE_WERROR=ON", "LATTE_NO_CALIBRATION=1", "LATTE_VERBOSE=", "latte_x=1", "MY_LATTE_X=1"});
  EXPECT_EQ(outcome.err, "");
}

TEST(Environment, HelpAndMisuseSayNothingOfIt) {
  EXPECT_EQ(plan_with({"LATTE_FOO=1"}, {"--help"}).err, "");
  EXPECT_TRUE(is_one_error_line(plan_with({"LATTE_FOO=1"}, {"--nonsense"}).err));
}

}  // namespace
}  // namespace latte::test
