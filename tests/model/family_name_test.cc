#include "model/family_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace latte {
namespace {

TEST(EditDistance, CountsSingleChanges) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("kimi_k2", "kimi_k3"), 1);
}

TEST(ResolveFamily, TypeGoesBeforeArchitecture) {
  const std::vector<std::string> other = {"SomethingElse"};
  EXPECT_EQ((*resolve_family("kimi_k2", other, "c"))->name, "deepseek_v3");
}

TEST(ResolveFamily, OnlyTheFirstArchitectureCounts) {
  const std::vector<std::string> second = {"SomethingElse", "DeepseekV3ForCausalLM"};
  EXPECT_FALSE(resolve_family("something", second, "c").ok());
}

TEST(ResolveFamily, HugeNamesAreRefusedQuickly) {
  const Result<const Family*> family = resolve_family(std::string(10'000'000, 'x'), {}, "c");
  ASSERT_FALSE(family.ok());
  EXPECT_LT(family.error().message.size(), 500u);
}

}  // namespace
}  // namespace latte
