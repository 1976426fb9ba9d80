#include "weights/fold.h"

#include <gtest/gtest.h>

#include <vector>

namespace latte {
namespace {

constexpr MlaGeometry kSmall{.heads = 3, .r = 4, .p = 2, .n = 2, .v = 5};

TEST(FoldKvB, ViewsKeyRowsThenValueRowsOfEachHead) {
  std::vector<float> kv_b(3 * 7 * 4);
  for (std::size_t i = 0; i < kv_b.size(); ++i) kv_b[i] = static_cast<float>(i);
  const Result<FoldedKvB> folded = fold_kv_b({kv_b.data(), DType::kF32, 21, 4, 4}, kSmall, "kv_b", "m.safetensors");
  ASSERT_TRUE(folded.ok());
  const auto at = [](const ConstStackRef& stack, std::int64_t head, std::int64_t row, std::int64_t col) {
    return static_cast<const float*>(stack.data)[head * stack.stack_stride + row * stack.row_stride + col];
  };
  EXPECT_EQ(folded->w_uk.count, 3);
  EXPECT_EQ(folded->w_uk.rows, 2);
  EXPECT_EQ(folded->w_uv.rows, 5);
  EXPECT_EQ(folded->w_uv.cols, 4);
  for (int head = 0; head < 3; ++head) {
    for (int col = 0; col < 4; ++col) {
      for (int row = 0; row < 2; ++row)
        EXPECT_EQ(at(folded->w_uk, head, row, col), static_cast<float>((head * 7 + row) * 4 + col));
      for (int row = 0; row < 5; ++row)
        EXPECT_EQ(at(folded->w_uv, head, row, col), static_cast<float>((head * 7 + 2 + row) * 4 + col));
    }
  }
}

TEST(FoldKvB, ShapeThatDoesNotPartitionIsRefused) {
  const std::vector<float> kv_b(20 * 4);
  const Result<FoldedKvB> folded =
      fold_kv_b({kv_b.data(), DType::kF32, 20, 4, 4}, kSmall, "x.kv_b_proj.weight", "m.safetensors");
  ASSERT_FALSE(folded.ok());
  EXPECT_EQ(folded.error().message,
            "[load] tensor \"x.kv_b_proj.weight\": shape [20, 4], expected [21, 4] (H*(n+v), r): config.json and "
            "weights do not belong "
            "together; file m.safetensors");
}

}  // namespace
}  // namespace latte
