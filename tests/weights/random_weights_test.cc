#include "weights/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tensor/grouped.h"
#include "tensor/half.h"
#include "weights/weight_elements.h"

namespace latte {
namespace {

WeightSpec mla_spec() {
  WeightSpec spec;
  spec.hidden = 48;
  spec.vocab = 300;
  spec.intermediate = 96;
  spec.moe_intermediate = 32;
  spec.experts = 5;
  spec.shared_experts = 2;
  spec.router_bias = true;
  spec.geometry = {.heads = 3, .r = 32, .p = 8, .n = 16, .v = 24};
  spec.q_lora_rank = 20;
  spec.bias = {.inputs = true, .output = true};
  spec.layers = {FfnKind::kDense, FfnKind::kMoe};
  spec.final_norm_scale = 0.5;
  return spec;
}

WeightSpec gqa_spec() {
  WeightSpec spec = mla_spec();
  spec.attention = AttentionKind::kGqa;
  spec.gqa = {.heads = 4, .kv_heads = 2, .head_dim = 16};
  spec.qk_norm = true;
  spec.experts = 0;
  spec.layers = {FfnKind::kDense};
  spec.tie_word_embeddings = true;
  return spec;
}

ModelWeights made(const WeightSpec& spec, DType dtype, std::uint64_t seed, int threads = 2) {
  Result<ModelWeights> weights = random_weights(spec, dtype, seed, threads);
  if (!weights.ok()) ADD_FAILURE() << weights.error().message;
  return std::move(weights).value();
}

bool same_bytes(const ConstMatRef& a, const ConstMatRef& b) {
  return a.rows == b.rows && a.cols == b.cols && a.dtype == b.dtype &&
         std::memcmp(a.data, b.data, static_cast<std::size_t>(a.rows * a.cols) * dtype_bytes(a.dtype)) == 0;
}

double variance(const ConstMatRef& m) {
  double squares = 0;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = 0; j < m.cols; ++j) {
      const double value = m.dtype == DType::kBf16 ? to_float(typed<const bf16>(m)(i, j)) : typed<const float>(m)(i, j);
      squares += value * value;
    }
  }
  return squares / static_cast<double>(m.rows * m.cols);
}

TEST(RandomWeights, HaveTheShapesTheLoaderGives) {
  const WeightSpec spec = mla_spec();
  const ModelWeights weights = made(spec, DType::kBf16, 1);
  EXPECT_EQ(weights.embed.rows, 300);
  EXPECT_EQ(weights.head.cols, 48);
  EXPECT_NE(weights.head.data, weights.embed.data);
  ASSERT_EQ(weights.layers.size(), 2u);
  const MlaWeights& mla = weights.layers[0].attention;
  EXPECT_TRUE(mla.q_proj.empty());
  EXPECT_EQ(mla.q_b.rows, 3 * 24);
  EXPECT_EQ(mla.kv_a.rows, 40);
  EXPECT_EQ(mla.w_uk.rows, 16);
  EXPECT_EQ(mla.w_uv.rows, 24);
  EXPECT_EQ(mla.w_uv.stack_stride, 40 * 32);
  EXPECT_EQ(mla.o_proj.cols, 72);
  const FfnWeights& moe = weights.layers[1].ffn;
  EXPECT_FALSE(weights.layers[0].ffn.is_moe);
  EXPECT_TRUE(moe.is_moe);
  EXPECT_EQ(moe.router.dtype, DType::kF32);
  EXPECT_EQ(moe.experts.size(), 5u);
  EXPECT_EQ(moe.shared.up.rows, 64);
  EXPECT_FLOAT_EQ(typed<const float>(weights.norm)(0, 7), 0.5f);
  EXPECT_FLOAT_EQ(typed<const float>(mla.kv_a_bias)(0, 3), 0.0f);
  EXPECT_EQ(weights.report.parameters, weight_elements(spec, 1 << 30));
  EXPECT_EQ(weights.report.bytes, 2 * weights.report.parameters);
}

TEST(RandomWeights, OfGroupedQueriesHaveTheirNormsAndTies) {
  const ModelWeights weights = made(gqa_spec(), DType::kF32, 1);
  EXPECT_EQ(weights.head.data, weights.embed.data);
  const GqaWeights& gqa = weights.layers[0].gqa;
  EXPECT_EQ(gqa.q_proj.rows, 64);
  EXPECT_EQ(gqa.k_proj.rows, 32);
  EXPECT_EQ(gqa.q_norm.cols, 16);
  EXPECT_EQ(gqa.o_bias.cols, 48);
  EXPECT_EQ(gqa.q_proj.dtype, DType::kF32);
}

TEST(RandomWeights, KeepTheScaleOfARow) {
  for (const DType dtype : {DType::kBf16, DType::kF32}) {
    const ModelWeights weights = made(mla_spec(), dtype, 7);
    EXPECT_NEAR(variance(weights.embed), 1, 0.05) << "as large as what a layer adds";
    EXPECT_NEAR(variance(weights.layers[0].ffn.dense.down) * 96, 1, 0.1);
  }
}

/// Or all rows go the same way, layer by layer, and choose the same experts.
TEST(RandomWeights, CodesAreZeroInTheMean) {
  WeightSpec spec = mla_spec();
  spec.hidden = 512;
  for (const DType dtype : {DType::kQ4, DType::kQ8}) {
    Result<ModelWeights> weights =
        random_weights(spec, DType::kBf16, 3, 1, QuantisePlan{.attention = dtype, .ffn = dtype, .head = dtype});
    ASSERT_TRUE(weights.ok());
    const ConstMatRef& head = weights->head;
    const auto* bytes = static_cast<const unsigned char*>(head.data);
    const std::int64_t all = matrix_bytes(dtype, head.rows, head.cols);
    double sum = 0, count = 0;
    for (std::int64_t block = 0; block < all; block += block_bytes(dtype)) {
      for (std::int64_t i = block + kBlockScaleBytes; i < block + block_bytes(dtype); ++i) {
        if (dtype == DType::kQ8) {
          sum += static_cast<std::int8_t>(bytes[i]);
          ++count;
        } else {
          sum += (bytes[i] & 15) - 8 + (bytes[i] >> 4) - 8;
          count += 2;
        }
      }
    }
    const double code = dtype == DType::kQ8 ? 73 : 4.2;  // in the root of their mean square
    EXPECT_LT(std::abs(sum / count), 4 * code / std::sqrt(count));
  }
}

TEST(RandomWeights, AreAFunctionOfTheSeedAlone) {
  WeightSpec spec = mla_spec();
  spec.vocab = 4000;  // several blocks
  const ModelWeights one = made(spec, DType::kBf16, 1, 1), again = made(spec, DType::kBf16, 1, 3),
                     other = made(spec, DType::kBf16, 2, 1);
  EXPECT_TRUE(same_bytes(one.embed, again.embed));
  EXPECT_TRUE(same_bytes(one.layers[1].ffn.experts[4].down, again.layers[1].ffn.experts[4].down));
  EXPECT_FALSE(same_bytes(one.embed, other.embed));
  EXPECT_FALSE(same_bytes(one.embed, one.head)) << "blocks differ from one another";
}

TEST(RandomWeights, MtpLayersShareTheTables) {
  WeightSpec spec = mla_spec();
  spec.nextn_layers = 1;
  spec.nextn_kind = FfnKind::kMoe;
  const ModelWeights weights = made(spec, DType::kBf16, 1);
  ASSERT_EQ(weights.mtp.size(), 1u);
  EXPECT_EQ(weights.mtp[0].embed.data, weights.embed.data);
  EXPECT_EQ(weights.mtp[0].eh_proj.cols, 96);
  EXPECT_GT(weights.report.mtp_parameters, 0);
}

TEST(RandomWeights, SizesBeyondAnyMemoryAreAnError) {
  WeightSpec spec = mla_spec();
  spec.hidden = spec.vocab = spec.intermediate = 1 << 30;
  const Result<ModelWeights> weights = random_weights(spec, DType::kBf16, 1, 1);
  ASSERT_FALSE(weights.ok());
  EXPECT_NE(weights.error().message.find("2^59"), std::string::npos) << weights.error().message;
}

}  // namespace
}  // namespace latte
