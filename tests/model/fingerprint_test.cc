#include "model/fingerprint.h"

#include <gtest/gtest.h>

#include "model/repo_family.h"
#include "support/stored_tensors.h"
#include "support/temp_folder.h"

namespace latte {
namespace {

Digest digest_of(const test::TempFolder& folder, const test::StoredTensors& tensors) {
  EXPECT_TRUE(test::write_tensors(folder.file("model.safetensors"), tensors).ok());
  return weights_digest(*Checkpoint::open(folder.path()));
}

TEST(Fingerprint, OneBitOfOneWeightCounts) {
  const test::TempFolder folder;
  test::StoredTensors tensors = test::read_tensors(*Checkpoint::open(test::kFamily));
  const Digest before = digest_of(folder, tensors);
  EXPECT_EQ(before, weights_digest(*Checkpoint::open(test::kFamily)))
      << "the order of tensors in a file does not count";
  int index = 0;
  for (auto& [name, tensor] : tensors) {
    if (index++ % 20 != 0) continue;
    tensor.bytes.back() ^= 1;
    EXPECT_NE(digest_of(folder, tensors), before) << name;
    tensor.bytes.back() ^= 1;
  }
}

TEST(Fingerprint, NamesTypesAndShapesCount) {
  const test::TempFolder folder;
  const test::StoredTensor flat = test::float_tensor({4}, {1, 2, 3, 4}),
                           square = test::float_tensor({2, 2}, {1, 2, 3, 4});
  const Digest before = digest_of(folder, {{"a", flat}, {"b", square}});
  EXPECT_NE(digest_of(folder, {{"a", square}, {"b", flat}}), before);
  EXPECT_NE(digest_of(folder, {{"a", flat}, {"c", square}}), before);
  EXPECT_NE(digest_of(folder, {{"a", flat}}), before);
  test::StoredTensor other_type = flat;
  other_type.dtype = DType::kI32;
  EXPECT_NE(digest_of(folder, {{"a", other_type}, {"b", square}}), before);
}

TEST(Fingerprint, LargeModelsAreSampledInEveryTensor) {
  const test::TempFolder folder;
  test::StoredTensors tensors;
  for (const char* name : {"a", "b", "c"}) tensors[name] = test::float_tensor({30000}, std::vector<float>(30000, 1));
  const auto sampled = [&] {
    EXPECT_TRUE(test::write_tensors(folder.file("model.safetensors"), tensors).ok());
    return weights_digest(*Checkpoint::open(folder.path()), 1000, 30000);
  };
  const Digest before = sampled();
  EXPECT_EQ(sampled(), before);
  for (auto& [name, tensor] : tensors) {
    test::StoredTensor changed = test::float_tensor({30000}, std::vector<float>(30000, 1.0001f));
    std::swap(tensor, changed);
    EXPECT_NE(sampled(), before) << name << ": another training changes every element";
    std::swap(tensor, changed);
  }
}

TEST(Fingerprint, ConfigurationIsWhatItSaysAndNotHow) {
  const auto digest = [](const char* text) { return config_digest(Json::parse(text)); };
  const Digest before = digest(R"({"hidden_size": 48, "rope_theta": 1e4, "eos_token_id": 1})");
  EXPECT_EQ(digest(R"({"eos_token_id":[2,3],"rope_theta":10000.0,"hidden_size":48,"transformers_version":"5"})"),
            before);
  EXPECT_NE(digest(R"({"hidden_size": 48, "rope_theta": 1e5, "eos_token_id": 1})"), before);
  EXPECT_NE(digest(R"({"hidden_size": 48})"), before);
}

}  // namespace
}  // namespace latte
