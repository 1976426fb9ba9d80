#include "weights/loader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <utility>

#include "support/stored_tensors.h"
#include "support/temp_folder.h"
#include "tensor/half.h"

namespace latte {
namespace {

constexpr const char* kFamily = LATTE_SOURCE_DIR "/tests/data/families/deepseek_v3";

/// The sizes of tests/data/families/deepseek_v3: four layers, the first dense, and one MTP layer.
WeightSpec family_spec() {
  return {.hidden = 48,
          .vocab = 272,
          .intermediate = 80,
          .moe_intermediate = 16,
          .experts = 16,
          .shared_experts = 1,
          .router_bias = true,
          .geometry = {.heads = 3, .r = 32, .p = 16, .n = 24, .v = 20},
          .q_lora_rank = 40,
          .gqa = {},
          .bias = {},
          .layers = {FfnKind::kDense, FfnKind::kMoe, FfnKind::kMoe, FfnKind::kMoe},
          .layer_kinds_key = {},
          .nextn_layers = 1,
          .nextn_kind = FfnKind::kMoe,
          .tie_word_embeddings = false};
}

Result<ModelWeights> load_folder(const std::string& folder, const WeightSpec& spec) {
  Result<Checkpoint> checkpoint = Checkpoint::open(folder);
  if (!checkpoint) return checkpoint.error();
  return load_weights(*std::move(checkpoint), spec);
}

/// The family's tensors, changed by the test, in a folder of their own.
class ChangedFamily {
 public:
  ChangedFamily() : tensors(test::read_tensors(*Checkpoint::open(kFamily))) {}

  Result<ModelWeights> load() const {
    if (const Status written = test::write_tensors(folder_.file("model.safetensors"), tensors); !written)
      return written.error();
    return load_folder(folder_.path(), spec);
  }
  void expect_refused(std::string_view message) const {
    const Result<ModelWeights> weights = load();
    ASSERT_FALSE(weights.ok());
    EXPECT_EQ(weights.error().message.find(message), 0u) << weights.error().message;
    EXPECT_NE(weights.error().message.find(folder_.path()), std::string::npos) << weights.error().message;
  }
  float* floats(const std::string& name) { return reinterpret_cast<float*>(tensors.at(name).bytes.data()); }

  test::StoredTensors tensors;
  WeightSpec spec = family_spec();

 private:
  test::TempFolder folder_;
};

std::string reason_of(const LoadReport& report, std::string_view name) {
  for (const DroppedTensor& dropped : report.dropped) {
    if (dropped.name == name) return dropped.reason;
  }
  return "(not dropped)";
}

bool same_rows(ConstMatRef a, const float* expected) {
  return a.dtype == DType::kF32 && a.row_stride == a.cols &&
         std::memcmp(a.data, expected, static_cast<std::size_t>(a.rows * a.cols) * sizeof(float)) == 0;
}

TEST(LoadWeights, FamilyIsWholeAndReported) {
  const Result<ModelWeights> weights = load_folder(kFamily, family_spec());
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  const LoadReport& report = weights->report;
  EXPECT_EQ(report.used, 269);
  EXPECT_TRUE(report.dropped.empty());
  EXPECT_EQ(report.layers, 4);
  EXPECT_EQ(report.folded_layers, 4);
  EXPECT_TRUE(report.mtp_present);
  EXPECT_EQ(report.mtp_reason, "1 layer");
  EXPECT_EQ(report.bytes, 4 * (report.parameters + report.mtp_parameters));
  EXPECT_EQ(report.stored_dtype, DType::kF32);
  EXPECT_FALSE(weights->layers[0].ffn.is_moe);
  EXPECT_TRUE(weights->layers[1].ffn.is_moe);
  EXPECT_EQ(weights->layers[1].ffn.experts.size(), 16u);
  EXPECT_EQ(weights->layers[1].ffn.router_bias.cols, 16);
  EXPECT_TRUE(weights->layers[0].attention.q_proj.empty());
  EXPECT_EQ(weights->mtp[0].eh_proj.cols, 96);
}

TEST(LoadWeights, FloatMatricesAliasTheMap) {
  const Result<ModelWeights> weights = load_folder(kFamily, family_spec());
  ASSERT_TRUE(weights.ok());
  const Checkpoint& checkpoint = weights->checkpoint;
  EXPECT_EQ(weights->embed.data, checkpoint.find("model.embed_tokens.weight")->data);
  EXPECT_EQ(weights->layers[2].ffn.experts[3].down.data,
            checkpoint.find("model.layers.2.mlp.experts.3.down_proj.weight")->data);
  const std::byte* kv_b =
      static_cast<const std::byte*>(checkpoint.find("model.layers.3.self_attn.kv_b_proj.weight")->data);
  EXPECT_EQ(weights->layers[3].attention.w_uk.data, kv_b);
  EXPECT_EQ(weights->layers[3].attention.w_uv.data, kv_b + 24 * 32 * sizeof(float));
  EXPECT_EQ(weights->layers[3].attention.w_uv.stack_stride, 44 * 32);
}

TEST(LoadWeights, MovedWeightsKeepTheirMemory) {
  Result<ModelWeights> loaded = load_folder(kFamily, family_spec());
  ASSERT_TRUE(loaded.ok());
  const ModelWeights weights = *std::move(loaded);
  EXPECT_TRUE(same_rows(weights.norm, static_cast<const float*>(weights.checkpoint.find("model.norm.weight")->data)));
}

TEST(LoadWeights, HalfAndDoubleAreConvertedBf16IsNot) {
  ChangedFamily family;
  test::StoredTensor& head = family.tensors.at("lm_head.weight");
  std::vector<f16> half(272 * 48);
  std::vector<float> expected(half.size());
  for (std::size_t i = 0; i < half.size(); ++i)
    expected[i] = to_float(half[i] = to_f16(family.floats("lm_head.weight")[i]));
  head.dtype = DType::kF16;
  head.bytes.resize(half.size() * 2);
  std::memcpy(head.bytes.data(), half.data(), head.bytes.size());
  test::StoredTensor& gate = family.tensors.at("model.layers.1.mlp.gate.weight");
  const std::vector<double> doubles(16 * 48, 0.25);
  gate.dtype = DType::kF64;
  gate.bytes.resize(doubles.size() * 8);
  std::memcpy(gate.bytes.data(), doubles.data(), gate.bytes.size());
  for (const char* name : {"model.embed_tokens.weight", "model.layers.2.mlp.gate.weight"}) {
    test::StoredTensor& tensor = family.tensors.at(name);
    tensor.dtype = DType::kBf16;
    tensor.bytes.resize(tensor.bytes.size() / 2);
    for (std::size_t i = 0; i < tensor.bytes.size() / 2; ++i) {
      const bf16 value = to_bf16(0.5f);
      std::memcpy(tensor.bytes.data() + 2 * i, &value, 2);
    }
  }
  const Result<ModelWeights> weights = family.load();
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_TRUE(same_rows(weights->head, expected.data()));
  EXPECT_TRUE(same_rows(weights->layers[1].ffn.router, std::vector<float>(16 * 48, 0.25f).data()));
  EXPECT_EQ(weights->embed.dtype, DType::kBf16);
  EXPECT_TRUE(same_rows(weights->layers[2].ffn.router, std::vector<float>(16 * 48, 0.5f).data()));
}

TEST(LoadWeights, GateAndUpOfTwoTypesBecomeOne) {
  for (const char* which : {"gate", "up"}) {
    ChangedFamily family;
    const std::string name = std::string("model.layers.1.mlp.experts.0.") + which + "_proj.weight";
    test::StoredTensor& tensor = family.tensors.at(name);
    std::vector<bf16> rounded(tensor.bytes.size() / sizeof(float));
    std::vector<float> expected(rounded.size());
    for (std::size_t i = 0; i < rounded.size(); ++i)
      expected[i] = to_float(rounded[i] = to_bf16(family.floats(name)[i]));
    tensor.dtype = DType::kBf16;
    tensor.bytes.resize(rounded.size() * sizeof(bf16));
    std::memcpy(tensor.bytes.data(), rounded.data(), tensor.bytes.size());
    const Result<ModelWeights> weights = family.load();
    ASSERT_TRUE(weights.ok()) << weights.error().message;
    const ExpertWeights& block = weights->layers[1].ffn.experts[0];
    EXPECT_EQ(block.gate.dtype, block.up.dtype);
    EXPECT_TRUE(same_rows(which[0] == 'g' ? block.gate : block.up, expected.data()));
  }
}

TEST(LoadWeights, MisalignedTensorsAreCopied) {
  const test::TempFolder folder;
  const Result<Checkpoint> family = Checkpoint::open(kFamily);
  test::StoredTensors tensors = test::read_tensors(*family);
  tensors["!first"] = {DType::kU8, {1}, {'x'}};  // sorts before all others and shifts them by one byte
  ASSERT_TRUE(test::write_tensors(folder.file("model.safetensors"), tensors).ok());
  const Result<ModelWeights> weights = load_folder(folder.path(), family_spec());
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_FALSE(weights->checkpoint.find("lm_head.weight")->aligned);
  EXPECT_TRUE(same_rows(weights->head, static_cast<const float*>(family->find("lm_head.weight")->data)));
  EXPECT_EQ(reason_of(weights->report, "!first"), "not of the text model");
}

TEST(LoadWeights, FusedExpertsEqualSeparateOnes) {
  ChangedFamily family;
  test::StoredTensor gate_up{DType::kF32, {16, 32, 48}, {}};
  test::StoredTensor down{DType::kF32, {16, 48, 16}, {}};
  const auto append = [&](test::StoredTensor& to, const std::string& name) {
    const auto node = family.tensors.extract(name);
    to.bytes.insert(to.bytes.end(), node.mapped().bytes.begin(), node.mapped().bytes.end());
  };
  for (int e = 0; e < 16; ++e) {
    const std::string expert = "model.layers.2.mlp.experts." + std::to_string(e);
    append(gate_up, expert + ".gate_proj.weight");
    append(gate_up, expert + ".up_proj.weight");
    append(down, expert + ".down_proj.weight");
  }
  family.tensors["model.layers.2.mlp.experts.gate_up_proj"] = gate_up;
  family.tensors["model.layers.2.mlp.experts.down_proj"] = down;
  const Result<ModelWeights> fused = family.load();
  ASSERT_TRUE(fused.ok()) << fused.error().message;
  const Result<ModelWeights> separate = load_folder(kFamily, family_spec());
  ASSERT_TRUE(separate.ok());
  for (std::size_t e = 0; e < 16; ++e) {
    const ExpertWeights& a = fused->layers[2].ffn.experts[e];
    const ExpertWeights& b = separate->layers[2].ffn.experts[e];
    EXPECT_TRUE(same_rows(a.gate, static_cast<const float*>(b.gate.data)));
    EXPECT_TRUE(same_rows(a.up, static_cast<const float*>(b.up.data)));
    EXPECT_TRUE(same_rows(a.down, static_cast<const float*>(b.down.data)));
  }
  family.tensors.at("model.layers.2.mlp.experts.gate_up_proj").shape = {32, 16, 48};
  family.expect_refused(
      "[load] tensor \"model.layers.2.mlp.experts.gate_up_proj\": shape [32, 16, 48], expected [16, 32, 48] (E, 2I, "
      "D)");
}

TEST(LoadWeights, TextModelInsideALargerOneIsFound) {
  ChangedFamily family;
  test::StoredTensors inner;
  for (auto& [name, tensor] : family.tensors) inner["language_model." + name] = std::move(tensor);
  inner["vision_tower.patch.weight"] = test::float_tensor({1}, {1});
  family.tensors = std::move(inner);
  const Result<ModelWeights> weights = family.load();
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_EQ(weights->report.used, 269);
  EXPECT_TRUE(weights->report.mtp_present);
  EXPECT_EQ(reason_of(weights->report, "vision_tower.patch.weight"), "not of the text model");
}

TEST(LoadWeights, TiedHeadIsTheEmbedding) {
  ChangedFamily family;
  family.spec.tie_word_embeddings = true;
  const Result<ModelWeights> weights = family.load();
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_EQ(weights->head.data, weights->embed.data);
  EXPECT_EQ(reason_of(weights->report, "lm_head.weight"), "tied to model.embed_tokens.weight");
}

TEST(LoadWeights, MissingTensorNamesTensorAndFolder) {
  for (const char* name :
       {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", "model.layers.0.self_attn.q_a_proj.weight",
        "model.layers.1.self_attn.kv_b_proj.weight", "model.layers.2.mlp.gate.e_score_correction_bias",
        "model.layers.3.mlp.experts.15.down_proj.weight", "model.layers.1.mlp.shared_experts.up_proj.weight"}) {
    ChangedFamily family;
    ASSERT_EQ(family.tensors.erase(name), 1u);
    family.expect_refused("[load] tensor \"" + std::string(name) + "\": missing, expected [");
  }
}

TEST(LoadWeights, WrongShapeNamesTensorBothShapesAndFile) {
  ChangedFamily family;
  family.tensors.at("model.layers.0.self_attn.o_proj.weight").shape = {60, 48};
  family.expect_refused(
      "[load] tensor \"model.layers.0.self_attn.o_proj.weight\": shape [60, 48], expected [48, 60] (D, H*v)");
}

TEST(LoadWeights, KvBThatDoesNotPartitionIsRefused) {
  ChangedFamily family;
  family.tensors.at("model.layers.3.self_attn.kv_b_proj.weight").shape = {33, 128};
  family.expect_refused(
      "[load] tensor \"model.layers.3.self_attn.kv_b_proj.weight\": shape [33, 128], expected [132, 32] (H*(n+v), r)");
  family.tensors.at("model.layers.3.self_attn.kv_b_proj.weight").shape = {132 * 32};
  family.expect_refused(
      "[load] tensor \"model.layers.3.self_attn.kv_b_proj.weight\": shape [4224], expected [132, 32] (H*(n+v), r)");
}

TEST(LoadWeights, BiasOnKvBIsRefusedByName) {
  ChangedFamily family;
  family.tensors["model.layers.2.self_attn.kv_b_proj.bias"] = test::float_tensor({1}, {0});
  family.expect_refused(
      "[load] tensor \"model.layers.2.self_attn.kv_b_proj.bias\": a bias arrived, expected none on kv_b_proj");
}

TEST(LoadWeights, WrongDtypeNamesTensorAndFile) {
  ChangedFamily family;
  family.tensors.at("model.layers.1.mlp.experts.0.up_proj.weight").dtype = DType::kI32;
  family.expect_refused(
      "[load] tensor \"model.layers.1.mlp.experts.0.up_proj.weight\": dtype I32, expected F32, BF16, F16 or F64");
}

TEST(LoadWeights, NanAndInfinityNameTensorAndFile) {
  for (const char* name : {"model.layers.3.mlp.experts.7.gate_proj.weight", "model.layers.2.input_layernorm.weight",
                           "model.layers.1.mlp.gate.e_score_correction_bias", "model.layers.4.eh_proj.weight"}) {
    for (const float poison : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      ChangedFamily family;
      family.floats(name)[5] = poison;
      family.expect_refused("[load] tensor \"" + std::string(name) + "\": element 5 is NaN or infinite");
    }
  }
}

TEST(LoadWeights, UnknownNamesInsideTheModelAreRefused) {
  for (const char* name : {"model.layers.0.self_attn.extra.weight", "model.layers.99999999999.x", "model.extra.weight",
                           "model.layers.1.self_attn.q_a_proj.bias"}) {
    ChangedFamily family;
    family.tensors[name] = test::float_tensor({1}, {0});
    family.expect_refused("[load] tensor \"" + std::string(name) + "\": a name this architecture does not have");
  }
  ChangedFamily family;  // a config that leaves out what the weights hold
  family.spec.shared_experts = 0;
  family.expect_refused("[load] tensor \"model.layers.1.mlp.shared_experts.");
}

TEST(LoadWeights, NamesThatAreNotNeededAreDroppedWithAReason) {
  ChangedFamily family;
  family.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] =
      test::float_tensor({1}, {std::numeric_limits<float>::quiet_NaN()});
  family.tensors["vision.extra.weight"] = test::float_tensor({1}, {0});
  family.tensors["model.layers.9.input_layernorm.weight"] = test::float_tensor({1}, {0});
  const Result<ModelWeights> weights = family.load();
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_EQ(weights->report.dropped.size(), 3u);
  EXPECT_EQ(reason_of(weights->report, "model.layers.0.self_attn.rotary_emb.inv_freq"),
            "computed from the configuration");
  EXPECT_EQ(reason_of(weights->report, "vision.extra.weight"), "not of the text model");
  EXPECT_EQ(reason_of(weights->report, "model.layers.9.input_layernorm.weight"),
            "layer 9 is past num_hidden_layers 4 and num_nextn_predict_layers 1");
}

TEST(LoadMtp, AbsentPartsAreTheMainModels) {
  ChangedFamily family;
  for (const char* part : {"embed_tokens.weight", "shared_head.head.weight", "shared_head.norm.weight"}) {
    ASSERT_EQ(family.tensors.erase("model.layers.4." + std::string(part)), 1u);
  }
  const Result<ModelWeights> weights = family.load();
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  ASSERT_EQ(weights->mtp.size(), 1u);
  EXPECT_EQ(weights->mtp[0].embed.data, weights->embed.data);
  EXPECT_EQ(weights->mtp[0].head.data, weights->head.data);
  EXPECT_EQ(weights->mtp[0].norm.data, weights->norm.data);
}

TEST(LoadMtp, IncompleteLayerIsLeftOutWithTheReason) {
  ChangedFamily family;
  ASSERT_EQ(family.tensors.erase("model.layers.4.mlp.experts.9.up_proj.weight"), 1u);
  const Result<ModelWeights> weights = family.load();
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_TRUE(weights->mtp.empty());
  EXPECT_FALSE(weights->report.mtp_present);
  EXPECT_EQ(weights->report.mtp_reason, "incomplete: model.layers.4.mlp.experts.9.up_proj.weight missing");
  EXPECT_EQ(reason_of(weights->report, "model.layers.4.eh_proj.weight"), weights->report.mtp_reason);
  EXPECT_EQ(weights->report.mtp_parameters, 0);
  EXPECT_EQ(static_cast<std::size_t>(weights->report.used) + weights->report.dropped.size(), family.tensors.size());
}

TEST(LoadMtp, WrongShapeIsAnErrorNotALeftOutLayer) {
  ChangedFamily family;
  family.tensors.at("model.layers.4.eh_proj.weight").shape = {96, 48};
  family.expect_refused("[load] tensor \"model.layers.4.eh_proj.weight\": shape [96, 48], expected [48, 96] (D, 2D)");
}

TEST(LoadMtp, AbsentLayerIsReported) {
  ChangedFamily family;
  std::erase_if(family.tensors, [](const auto& item) { return item.first.starts_with("model.layers.4."); });
  const Result<ModelWeights> weights = family.load();
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_FALSE(weights->report.mtp_present);
  EXPECT_EQ(weights->report.mtp_reason, "no tensor of model.layers.4.* in the checkpoint");
  EXPECT_TRUE(weights->report.dropped.empty());
}

TEST(LoadMtp, SecondLayerNeedsTheFirst) {
  ChangedFamily family;
  family.spec.nextn_layers = 2;
  const Result<ModelWeights> one = family.load();
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->mtp.size(), 1u);
  EXPECT_EQ(one->report.mtp_reason, "1 layer, then no tensor of model.layers.5.* in the checkpoint");
  test::StoredTensors second;
  for (const auto& [name, tensor] : family.tensors) {
    if (name.starts_with("model.layers.4.")) second["model.layers.5." + name.substr(15)] = tensor;
  }
  family.tensors.merge(second);
  const Result<ModelWeights> both = family.load();
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->mtp.size(), 2u);
  ASSERT_EQ(family.tensors.erase("model.layers.4.hnorm.weight"), 1u);
  const Result<ModelWeights> none = family.load();
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->mtp.empty());
  EXPECT_EQ(reason_of(none->report, "model.layers.5.hnorm.weight"), "MTP layer 4 is not loaded");
}

TEST(LoadMtp, CountOfZeroDropsTheLayer) {
  ChangedFamily family;
  family.spec.nextn_layers = 0;
  const Result<ModelWeights> weights = family.load();
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  EXPECT_EQ(weights->report.mtp_reason, "num_nextn_predict_layers is 0");
  EXPECT_EQ(reason_of(weights->report, "model.layers.4.enorm.weight"),
            "layer 4 is past num_hidden_layers 4 and num_nextn_predict_layers 0");
}

}  // namespace
}  // namespace latte
