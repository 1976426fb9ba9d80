#include "weights/finite_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/refusal.h"
#include "tensor/grouped.h"
#include "tensor/half.h"

namespace latte {
namespace {

template <class T>
TensorView view_of(const std::vector<T>& values, DType dtype, const char* name = "w") {
  return {name, dtype,          {static_cast<std::int64_t>(values.size())}, values.data(), values.size() * sizeof(T),
          true, "m.safetensors"};
}

std::string refusal(const TensorView& tensor, int threads = 1) {
  const TensorView* one[] = {&tensor};
  return test::refusal(check_finite_weights(one, threads));
}

TEST(CheckFiniteWeights, FindsTheElementAnywhereInEveryType) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::size_t size : {std::size_t{1}, std::size_t{1023}, std::size_t{1025}, std::size_t{700'001}}) {
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      std::vector<float> f32(size, std::numeric_limits<float>::max());
      std::vector<bf16> bf(size, bf16{0x7f7f});
      std::vector<f16> half(size, f16{0xfbff});
      std::vector<double> f64(size, -std::numeric_limits<float>::max());
      EXPECT_EQ(refusal(view_of(f32, DType::kF32)), "(accepted)");
      EXPECT_EQ(refusal(view_of(bf, DType::kBf16)), "(accepted)");
      EXPECT_EQ(refusal(view_of(half, DType::kF16)), "(accepted)");
      EXPECT_EQ(refusal(view_of(f64, DType::kF64)), "(accepted)");
      f32[at] = std::nanf("");
      bf[at] = to_bf16(-infinity);
      half[at] = to_f16(infinity);
      f64[at] = 1e39;
      const std::string expected = "element " + std::to_string(at) + " is NaN or infinite";
      for (const std::string& message :
           {refusal(view_of(f32, DType::kF32), 2), refusal(view_of(bf, DType::kBf16), 2),
            refusal(view_of(half, DType::kF16), 3), refusal(view_of(f64, DType::kF64), 2)}) {
        EXPECT_NE(message.find(expected), std::string::npos) << message;
      }
    }
  }
}

TEST(CheckFiniteWeights, ReportsTheFirstTensorWhateverTheThreads) {
  std::vector<float> good(3'000'000, 1.0f);
  std::vector<float> bad = good;
  bad.back() = std::nanf("");
  std::vector<float> small = {std::nanf("")};
  const TensorView tensors[] = {view_of(good, DType::kF32, "a"), view_of(bad, DType::kF32, "b"),
                                view_of(small, DType::kF32, "c")};
  const TensorView* list[] = {&tensors[0], &tensors[1], &tensors[2]};
  for (const int threads : {1, 2, 5}) {
    const Status status = check_finite_weights(list, threads);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kNumeric);
    EXPECT_NE(status.error().message.find("[load] tensor \"b\": element 2999999"), std::string::npos)
        << status.error().message;
    EXPECT_NE(status.error().message.find("file m.safetensors"), std::string::npos) << status.error().message;
  }
}

TEST(CheckFiniteWeights, ReadsMisalignedData) {
  std::vector<char> bytes(1 + 3 * sizeof(float));
  const float values[] = {1, 2, std::nanf("")};
  std::memcpy(bytes.data() + 1, values, sizeof values);
  const TensorView tensor{"w", DType::kF32, {3}, bytes.data() + 1, sizeof values, false, "m.safetensors"};
  EXPECT_NE(refusal(tensor).find("element 2"), std::string::npos);
}

TEST(CheckFiniteScales, FindsTheMatrixWhereverTheScaleIsAndReadsNoCode) {
  const std::int64_t rows = 200, cols = 6000;  // more than a piece
  for (const DType dtype : {DType::kQ4, DType::kQ8}) {
    const auto block = static_cast<std::size_t>(block_bytes(dtype));
    std::vector<unsigned char> first(static_cast<std::size_t>(matrix_bytes(dtype, rows, cols)), 0xff), second = first;
    for (std::vector<unsigned char>* panels : {&first, &second}) {  // codes look like NaN, scales are 1
      for (std::size_t at = 0; at < panels->size(); at += block) {
        for (std::size_t i = 0; i < std::size_t{kBlockScaleBytes}; i += 2) {
          (*panels)[at + i] = 0x80;
          (*panels)[at + i + 1] = 0x3f;
        }
      }
    }
    ModelWeights weights;
    weights.layers.resize(1);
    weights.head = {first.data(), dtype, rows, cols, cols};
    weights.layers[0].ffn.dense.down = {second.data(), dtype, rows, cols, cols};
    EXPECT_TRUE(check_finite_scales(weights, 2).ok());
    const std::size_t last = second.size() - block + kBlockScaleBytes - 1;
    for (const std::size_t at : {std::size_t{1}, second.size() / 2 / block * block + 31, last}) {
      second[at] = 0x7f;  // 0x7f80: infinity
      EXPECT_NE(test::refusal(check_finite_scales(weights, 3)).find("\"model.layers.0.mlp.down_proj.weight\""),
                std::string::npos)
          << at;
      first[at] = 0x7f;
      EXPECT_NE(test::refusal(check_finite_scales(weights, 3)).find("\"lm_head.weight\""), std::string::npos) << at;
      first[at] = second[at] = 0x3f;
    }
  }
}

}  // namespace
}  // namespace latte
