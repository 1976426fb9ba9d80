// attention_bias of latent attention: which projections have one, and that each takes part.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/open_backend.h"
#include "model/repo_family.h"
#include "support/golden.h"
#include "support/random_rows.h"
#include "support/stored_tensors.h"
#include "support/teacher_forced.h"
#include "support/temp_folder.h"
#include "support/tolerance.h"

namespace latte {
namespace {

constexpr const char* kBiases[] = {"q_a_proj.bias", "kv_a_proj_with_mqa.bias", "o_proj.bias"};

/// The committed model with attention_bias, the biases zero but for the one named.
class BiasedModel {
 public:
  explicit BiasedModel(const std::string& moved) : tensors_(test::read_tensors(*Checkpoint::open(test::kFamily))) {
    Json json = *read_json_file(std::string(test::kFamily) + "/config.json");
    json["attention_bias"] = true;
    folder_.write("config.json", json.dump());
    const std::int64_t sizes[] = {40, 48, 48};  // rq, r + p, D
    for (int layer = 0; layer < 5; ++layer) {
      for (int i = 0; i < 3; ++i) {
        const std::vector<double> bias = test::random_row(7, layer * 3 + i, sizes[i], moved == kBiases[i] ? 0.5 : 0);
        tensors_["model.layers." + std::to_string(layer) + ".self_attn." + kBiases[i]] =
            test::float_tensor({sizes[i]}, {bias.begin(), bias.end()});
      }
    }
  }
  Result<Model> load() const {
    if (const Status written = test::write_tensors(folder_.file("model.safetensors"), tensors_); !written.ok())
      return written.error();
    return load_model(folder_.path());
  }
  void drop(const std::string& name) { tensors_.erase(name); }

 private:
  test::TempFolder folder_;
  test::StoredTensors tensors_;
};

std::vector<float> logits_of(const Model& model, const std::string& device, MlaPath path) {
  const auto backend = open_backend({.device = device, .threads = 2, .compute = DType::kF32});
  EXPECT_TRUE(backend.ok());
  const auto ids = test::read_golden_ids(std::string(test::kFamily) + "/golden.safetensors", "ids");
  const auto logits = test::teacher_forced(
      model, **backend, *ids,
      {.steps = {40, 16}, .path = path, .cache_dtype = device == "cpu" ? DType::kF32 : DType::kF64});
  EXPECT_TRUE(logits.ok());
  return logits.ok() ? logits->main : std::vector<float>{};
}

TEST(AttentionBias, ZeroBiasesChangeNothing) {
  const Result<Model> model = BiasedModel("none").load();
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto golden = test::read_golden_matrix(std::string(test::kFamily) + "/golden.safetensors", "logits");
  EXPECT_LT(test::max_relative_difference(logits_of(*model, "reference", MlaPath::kAuto), golden->values),
            test::kModelReference);
}

TEST(AttentionBias, EachOneTakesPartInBothFormsAlike) {
  const auto golden = test::read_golden_matrix(std::string(test::kFamily) + "/golden.safetensors", "logits");
  for (const char* moved : kBiases) {
    const Result<Model> model = BiasedModel(moved).load();
    ASSERT_TRUE(model.ok()) << model.error().message;
    const std::vector<float> exact = logits_of(*model, "reference", MlaPath::kAbsorbed);
    EXPECT_GT(test::max_relative_difference(exact, golden->values), 1e-3) << moved;
    for (const MlaPath path : {MlaPath::kAbsorbed, MlaPath::kMaterialised})
      EXPECT_LT(test::max_relative_difference(logits_of(*model, "cpu", path), exact), test::kModelF32) << moved;
  }
}

TEST(AttentionBias, MissingOneIsNamed) {
  BiasedModel model("none");
  model.drop("model.layers.2.self_attn.kv_a_proj_with_mqa.bias");
  const Result<Model> loaded = model.load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().message.find("[load] tensor \"model.layers.2.self_attn.kv_a_proj_with_mqa.bias\": missing, "
                                        "expected [48] (r+p)"),
            0u)
      << loaded.error().message;
}

}  // namespace
}  // namespace latte
