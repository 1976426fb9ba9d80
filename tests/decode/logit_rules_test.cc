#include "decode/logit_rules.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/never.h"

namespace latte {
namespace {

using test::kNever;

const std::vector<float> kLogits{2, -2, 0, 4, -1, 3};

/// kLogits after `rules`, where the prompt is `prompt` and `generated` followed.
std::vector<float> changed(const LogitRules& rules, const std::vector<TokenId>& prompt,
                           const std::vector<TokenId>& generated, std::vector<float> logits = kLogits) {
  TokenHistory history(prompt, rules.repeat_last_n);
  for (const TokenId token : generated) history.push(token);
  apply_logit_rules(rules, history, logits);
  return logits;
}

TEST(LogitRules, RepeatPenaltyShrinksWhatIsInTheWindowOnce) {
  const LogitRules rules{.repeat_penalty = 2};
  EXPECT_EQ(changed(rules, {0, 0, 1}, {0, 2}), (std::vector<float>{1, -4, 0, 4, -1, 3}));
  EXPECT_EQ(changed({.repeat_penalty = 0.5}, {0, 1}, {}), (std::vector<float>{4, -1, 0, 4, -1, 3}));
}

TEST(LogitRules, TheWindowIsTheLastTokensOfPromptAndText) {
  const std::vector<TokenId> prompt{0, 1, 3};
  EXPECT_EQ(changed({.repeat_penalty = 2, .repeat_last_n = 2}, prompt, {5}),
            (std::vector<float>{2, -2, 0, 2, -1, 1.5F}));
  EXPECT_EQ(changed({.repeat_penalty = 2, .repeat_last_n = 0}, prompt, {5}), kLogits);
  EXPECT_EQ(changed({.repeat_penalty = 2, .repeat_last_n = -1}, prompt, {5}),
            (std::vector<float>{1, -4, 0, 2, -1, 1.5F}));
  EXPECT_EQ(LogitRules{}.repeat_last_n, 64);
}

TEST(LogitRules, PresenceAndFrequencyCountWhatWasGeneratedAlone) {
  EXPECT_EQ(changed({.presence_penalty = 0.5}, {5, 5}, {0, 3, 3}), (std::vector<float>{1.5F, -2, 0, 3.5F, -1, 3}));
  EXPECT_EQ(changed({.frequency_penalty = 0.5}, {5, 5}, {0, 3, 3}), (std::vector<float>{1.5F, -2, 0, 3, -1, 3}));
  EXPECT_EQ(changed({.presence_penalty = -1, .frequency_penalty = 0.25}, {}, {1, 1}),
            (std::vector<float>{2, -1.5F, 0, 4, -1, 3}));
  EXPECT_EQ(changed({.repeat_last_n = 1, .frequency_penalty = 1}, {}, {0, 0, 3}),
            (std::vector<float>{0, -2, 0, 3, -1, 3}))
      << "the window is the repeat penalty's";
}

TEST(LogitRules, BiasComesFirstAndAddsUp) {
  EXPECT_EQ(changed({.bias = {{1, 5}, {1, 1}, {3, kNever}, {3, 9}}}, {}, {}),
            (std::vector<float>{2, 4, 0, static_cast<float>(kNever), -1, 3}));
  EXPECT_EQ(changed({.bias = {{1, 6}}, .repeat_penalty = 2, .presence_penalty = 1}, {}, {1}),
            (std::vector<float>{2, 1, 0, 4, -1, 3}))
      << "(-2 + 6) / 2 - 1";
}

TEST(LogitRules, IdsBeyondTheRowArePassedOver) {
  const LogitRules rules{.bias = {{5, 1}, {9, 1}}, .repeat_penalty = 2, .presence_penalty = 1};
  EXPECT_EQ(changed(rules, {7, 0}, {8, 1}, {2, -2}), (std::vector<float>{1, -5}));
}

TEST(LogitRules, IdleRulesSaySo) {
  EXPECT_TRUE(LogitRules{}.idle());
  EXPECT_TRUE((LogitRules{.repeat_last_n = -1}.idle()));
  EXPECT_FALSE((LogitRules{.bias = {{0, 0}}}.idle()));
  EXPECT_FALSE((LogitRules{.frequency_penalty = 0.1}.idle()));
}

TEST(LogitRules, ErrorsNameOptionValueAndRange) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    LogitRules rules;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {{.repeat_penalty = 0}, {"repeat-penalty 0:", "0.01 to 100"}},
      {{.repeat_penalty = nan}, {"repeat-penalty nan:", "0.01 to 100"}},
      {{.repeat_last_n = -2}, {"repeat-last-n -2:", "-1 for all"}},
      {{.presence_penalty = 101}, {"presence-penalty 101:", "-100 to 100"}},
      {{.frequency_penalty = -infinity}, {"frequency-penalty -inf:", "-100 to 100"}},
      {{.bias = {{6, 1}}}, {"logit-bias of id 6:", "0 to 5"}},
      {{.bias = {{-1, 1}}}, {"logit-bias of id -1:", "0 to 5"}},
      {{.bias = {{2, infinity}}}, {"logit-bias inf of id 2:", "-inf to forbid"}},
      {{.bias = {{2, nan}}}, {"logit-bias nan of id 2:", "-10000 to 10000"}},
      {{.bias = {{0, kNever}, {1, kNever}, {2, kNever}, {3, kNever}, {4, kNever}, {5, kNever}}},
       {"forbids all 6 ids", "at least one"}},
  };
  for (const Case& broken : cases) {
    const Status refused = check_logit_rules(broken.rules, 6);
    ASSERT_FALSE(refused.ok()) << broken.parts[0];
    EXPECT_EQ(refused.error().kind, ErrorKind::kInvalidInput);
    for (const std::string& part : broken.parts)
      EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(check_logit_rules({}, 6).ok());
  EXPECT_TRUE(check_logit_rules({.bias = {{0, kNever}, {0, kNever}, {5, -1e4}}, .repeat_last_n = -1}, 6).ok());
}

}  // namespace
}  // namespace latte
