#include "weights/quantise.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "support/stored_tensors.h"
#include "support/temp_folder.h"
#include "tensor/grouped.h"
#include "tensor/half.h"
#include "weights/loader.h"
#include "weights/matrix_list.h"
#include "weights/quantised_files.h"
#include "weights/random_weights.h"

namespace latte {
namespace {

/// One dense layer with latent attention, or one with experts, small and of widths that fill no panel and no group.
WeightSpec small_spec(int experts) {
  WeightSpec spec;
  spec.hidden = 40;
  spec.vocab = 50;
  spec.intermediate = 72;
  spec.moe_intermediate = 24;
  spec.experts = experts;
  spec.geometry = {.heads = 2, .r = 16, .p = 8, .n = 12, .v = 20};
  spec.layers = {experts > 0 ? FfnKind::kMoe : FfnKind::kDense};
  return spec;
}

struct Shape {
  std::string name;
  std::vector<std::int64_t> shape;
};

std::vector<Shape> shapes_of(const WeightSpec& spec, bool fused) {
  const std::string layer = "model.layers.0.";
  const std::int64_t d = spec.hidden, i = spec.intermediate, e = spec.experts, w = spec.moe_intermediate;
  std::vector<Shape> all = {
      {"model.embed_tokens.weight", {spec.vocab, d}},    {"model.norm.weight", {d}},
      {layer + "input_layernorm.weight", {d}},           {layer + "post_attention_layernorm.weight", {d}},
      {layer + "self_attn.q_proj.weight", {2 * 20, d}},  {layer + "self_attn.kv_a_proj_with_mqa.weight", {24, d}},
      {layer + "self_attn.kv_a_layernorm.weight", {16}}, {layer + "self_attn.kv_b_proj.weight", {2 * 32, 16}},
      {layer + "self_attn.o_proj.weight", {d, 40}}};
  if (!spec.tie_word_embeddings) all.push_back({"lm_head.weight", {spec.vocab, d}});
  if (e == 0) {
    all.push_back({layer + "mlp.gate_proj.weight", {i, d}});
    all.push_back({layer + "mlp.up_proj.weight", {i, d}});
    all.push_back({layer + "mlp.down_proj.weight", {d, i}});
    return all;
  }
  all.push_back({layer + "mlp.gate.weight", {e, d}});
  if (fused) {
    all.push_back({layer + "mlp.experts.gate_up_proj", {e, 2 * w, d}});
    all.push_back({layer + "mlp.experts.down_proj", {e, d, w}});
    return all;
  }
  for (std::int64_t n = 0; n < e; ++n) {
    const std::string expert = layer + "mlp.experts." + std::to_string(n);
    all.push_back({expert + ".gate_proj.weight", {w, d}});
    all.push_back({expert + ".up_proj.weight", {w, d}});
    all.push_back({expert + ".down_proj.weight", {d, w}});
  }
  return all;
}

/// Random tensors; with F16 every value is one that F16 has, so that other types can hold the same model.
test::StoredTensors random_tensors(const WeightSpec& spec, DType dtype, bool fused = false) {
  test::StoredTensors tensors;
  std::uint32_t at = 0;
  for (const Shape& each : shapes_of(spec, fused)) {
    test::StoredTensor& tensor = tensors[each.name];
    tensor = {dtype, each.shape, {}};
    std::size_t count = 1;
    for (const std::int64_t extent : each.shape) count *= static_cast<std::size_t>(extent);
    tensor.bytes.resize(count * dtype_bytes(dtype));
    for (std::size_t i = 0; i < count; ++i, ++at) {
      const std::uint32_t word = philox4x32({at, 0, 0, 0}, philox_key(7))[0];
      const f16 half = to_f16(static_cast<float>(static_cast<std::int32_t>(word)) * 0x1p-31f);
      const float value = to_float(half);
      const double wide = value;
      const void* from = dtype == DType::kF16   ? static_cast<const void*>(&half)
                         : dtype == DType::kF64 ? static_cast<const void*>(&wide)
                                                : static_cast<const void*>(&value);
      std::memcpy(tensor.bytes.data() + i * dtype_bytes(dtype), from, dtype_bytes(dtype));
    }
  }
  return tensors;
}

Result<ModelWeights> load(const std::string& folder, const WeightSpec& spec, LoadFor purpose = LoadFor::kQuantising) {
  Result<Checkpoint> checkpoint = Checkpoint::open(folder);
  if (!checkpoint) return checkpoint.error();
  return load_weights(*std::move(checkpoint), spec, purpose);
}

ModelWeights load_or_die(const std::string& folder, const WeightSpec& spec, LoadFor purpose = LoadFor::kQuantising) {
  Result<ModelWeights> weights = load(folder, spec, purpose);
  if (!weights.ok()) ADD_FAILURE() << weights.error().message;
  return std::move(weights).value();
}

constexpr QuantisePlan kMixed{.attention = DType::kQ8, .ffn = DType::kQ4, .head = DType::kQ8};

/// What another object of the same model holds, byte for byte.
bool same_matrix(ConstMatRef a, ConstMatRef b) {
  return a.dtype == b.dtype && a.rows == b.rows && a.cols == b.cols &&
         std::memcmp(a.data, b.data, static_cast<std::size_t>(matrix_bytes(a.dtype, a.rows, a.cols))) == 0;
}

/// The matrices of a layer and the head.
std::vector<ConstMatRef> grouped_of(const ModelWeights& weights) {
  const LayerWeights& layer = weights.layers[0];
  std::vector<ConstMatRef> all = {weights.head, layer.attention.q_proj, layer.attention.kv_a, layer.attention.o_proj};
  std::vector<ExpertWeights> blocks = layer.ffn.experts;
  if (!layer.ffn.is_moe) blocks.push_back(layer.ffn.dense);
  for (const ExpertWeights& block : blocks) {
    for (const ConstMatRef& m : {block.gate, block.up, block.down}) all.push_back(m);
  }
  return all;
}

void expect_same_model(const ModelWeights& a, const ModelWeights& b) {
  const std::vector<ConstMatRef> of_a = grouped_of(a), of_b = grouped_of(b);
  ASSERT_EQ(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    EXPECT_TRUE(is_grouped(of_a[i].dtype));
    EXPECT_TRUE(same_matrix(of_a[i], of_b[i])) << i;
  }
}

class QuantiseTest : public ::testing::Test {
 protected:
  /// Writes tensors as a checkpoint of one file and returns its folder.
  std::string store(const test::StoredTensors& tensors, const std::string& name = "source") {
    const std::string folder = folder_.file(name);
    std::filesystem::create_directory(folder);
    const Status written = test::write_tensors(folder + "/model.safetensors", tensors);
    if (!written.ok()) ADD_FAILURE() << written.error().message;
    return folder;
  }
  /// The quantised files of a folder in another, and its spec.
  std::string quantise(const std::string& source, WeightSpec& spec, const QuantisedFilesOptions& options = {},
                       const std::string& name = "quantised") {
    ModelWeights weights = load_or_die(source, spec);
    Result<NewFolder> folder = NewFolder::begin(folder_.file(name));
    if (!folder.ok()) ADD_FAILURE() << folder.error().message;
    const Result<QuantisedFiles> files = write_quantised_files(weights, kMixed, *folder, options);
    if (!files.ok()) ADD_FAILURE() << files.error().message;
    files_ = *files;
    if (const Status done = folder->commit(); !done.ok()) ADD_FAILURE() << done.error().message;
    spec.grouped = GroupedStorage{.plan = kMixed, .source_dtype = weights.report.stored_dtype};
    return folder_.file(name);
  }

  test::TempFolder folder_;
  QuantisedFiles files_;
};

TEST_F(QuantiseTest, TypeAndAlignmentOfTheStoredValuesDoNotCount) {
  const WeightSpec spec = small_spec(3);
  ModelWeights first = load_or_die(store(random_tensors(spec, DType::kF32)), spec, LoadFor::kCompute);
  ASSERT_TRUE(quantise_weights(first, kMixed, 1).ok());
  for (const DType dtype : {DType::kF16, DType::kF64}) {
    for (const LoadFor purpose : {LoadFor::kCompute, LoadFor::kQuantising}) {
      test::StoredTensors tensors = random_tensors(spec, dtype);
      tensors["!first"] = {DType::kU8, {1}, {'x'}};  // shifts all others by one byte
      ModelWeights other = load_or_die(store(tensors, "other"), spec, purpose);
      ASSERT_TRUE(quantise_weights(other, kMixed, 3).ok());
      expect_same_model(first, other);
    }
  }
}

TEST_F(QuantiseTest, NothingIsHeldTwice) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    WeightSpec spec = small_spec(0);
    ModelWeights weights = load_or_die(store(random_tensors(spec, dtype)), spec);
    const std::int64_t before = weights.report.copied_bytes;
    ASSERT_TRUE(quantise_weights(weights, kMixed, 1).ok());
    std::int64_t copied = 0, grouped = 0;
    for (const std::vector<float>& copy : weights.copies) copied += static_cast<std::int64_t>(copy.size() * 4);
    for (const ConstMatRef& m : grouped_of(weights)) grouped += matrix_bytes(m.dtype, m.rows, m.cols);
    EXPECT_EQ(copied, weights.report.copied_bytes);
    EXPECT_EQ(copied, before) << "no matrix that is replaced was copied first";
    EXPECT_EQ(static_cast<std::int64_t>(weights.made.size()), grouped);
    EXPECT_EQ(weights.report.quantised_bytes, grouped);
    const std::int64_t kept = (50 * 40 + 64 * 16 + 3 * 40 + 16) * static_cast<std::int64_t>(dtype_bytes(dtype));
    EXPECT_EQ(weights.report.bytes, grouped + kept) << dtype_name(dtype);
  }
}

TEST_F(QuantiseTest, ProgressCountsBytesUpToAll) {
  const WeightSpec spec = small_spec(2);
  ModelWeights weights = load_or_die(store(random_tensors(spec, DType::kF32)), spec);
  std::int64_t last = 0, whole = 0;
  ASSERT_TRUE(quantise_weights(weights, kMixed, 2, [&](std::int64_t done, std::int64_t all) {
                EXPECT_GT(done, last);
                last = done;
                whole = all;
              }).ok());
  EXPECT_EQ(last, weights.report.quantised_bytes);
  EXPECT_EQ(whole, last);
}

TEST_F(QuantiseTest, WeightsThatAreGroupedAlreadyStay) {
  const WeightSpec spec = small_spec(2);
  Result<ModelWeights> weights = random_weights(spec, DType::kBf16, 3, 1, kMixed);
  ASSERT_TRUE(weights.ok());
  const std::byte* memory = weights->made.data();
  ASSERT_TRUE(quantise_weights(*weights, kMixed, 1).ok());
  EXPECT_EQ(weights->made.data(), memory);
}

TEST_F(QuantiseTest, FilesHoldWhatLoadingWouldHaveMade) {
  for (const bool tied : {false, true}) {
    for (const int experts : {0, 3}) {
      for (const DType dtype : {DType::kF32, DType::kF16}) {
        WeightSpec spec = small_spec(experts);
        spec.tie_word_embeddings = tied;
        const std::string source = store(random_tensors(spec, dtype, experts > 0 && tied));  // fused in one of them
        ModelWeights made = load_or_die(source, spec);
        ASSERT_TRUE(quantise_weights(made, kMixed, 2).ok());
        const std::string name =
            "out" + std::to_string(tied) + std::to_string(experts) + std::string(dtype_name(dtype));
        const ModelWeights stored = load_or_die(quantise(source, spec, {.threads = 2}, name), spec, LoadFor::kCompute);
        expect_same_model(made, stored);
        EXPECT_EQ(stored.made.size(), 0u);
        for (const ConstMatRef& m : grouped_of(stored)) {
          EXPECT_TRUE(stored.checkpoint.is_mapped(m.data));
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(m.data) % 64, 0u);
        }
        EXPECT_EQ(stored.report.parameters, made.report.parameters);
        EXPECT_EQ(stored.report.bytes, made.report.bytes);
        EXPECT_EQ(stored.report.quantised_bytes, made.report.quantised_bytes);
        EXPECT_EQ(stored.report.stored_dtype, dtype);
        EXPECT_EQ(stored.report.copied_bytes, made.report.copied_bytes);
        EXPECT_TRUE(same_matrix(stored.embed, made.embed));
        EXPECT_TRUE(same_matrix(stored.layers[0].input_norm, made.layers[0].input_norm));
        EXPECT_FALSE(stored.report.tied_head_unused);
        EXPECT_EQ(files_.by_type.at("Q8").tensors, 4);
      }
    }
  }
}

TEST_F(QuantiseTest, ShardsAreOneModelAndNamesAreTheSources) {
  WeightSpec spec = small_spec(3);
  const std::string source = store(random_tensors(spec, DType::kF32));
  ModelWeights made = load_or_die(source, spec);
  ASSERT_TRUE(quantise_weights(made, kMixed, 1).ok());
  const std::string folder = quantise(source, spec, {.threads = 1, .most_shard_bytes = 5000});
  EXPECT_GT(files_.files, 5);
  const ModelWeights stored = load_or_die(folder, spec, LoadFor::kCompute);
  expect_same_model(made, stored);
  const Checkpoint original = std::move(*Checkpoint::open(source));
  for (const TensorView& tensor : original.tensors())
    EXPECT_NE(stored.checkpoint.find(tensor.name), nullptr) << tensor.name;
  EXPECT_EQ(stored.checkpoint.tensors().size(), original.tensors().size());
}

TEST_F(QuantiseTest, TheCallerMayStopIt) {
  const WeightSpec spec = small_spec(3);
  ModelWeights weights = load_or_die(store(random_tensors(spec, DType::kF32)), spec);
  {
    const Result<NewFolder> folder = NewFolder::begin(folder_.file("stopped"));
    const Result<QuantisedFiles> stopped = write_quantised_files(
        weights, kMixed, *folder,
        {.threads = 1, .on_progress = [](std::int64_t done, std::int64_t all) { return done < all / 2; }});
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.file("stopped")));
}

/// A quantised checkpoint in which a test changes one tensor.
class QuantisedFileTest : public QuantiseTest {
 protected:
  void SetUp() override {
    spec_ = small_spec(2);
    const std::string folder = quantise(store(random_tensors(spec_, DType::kF32)), spec_);
    tensors_ = test::read_tensors(*Checkpoint::open(folder));
  }
  /// Writes the tensors as latte would, with the data on a page, and loads them.
  std::string refusal() {
    std::vector<TensorSource> sources;
    for (const bool bytes : {true, false}) {
      for (const auto& [name, tensor] : tensors_) {
        if ((tensor.dtype == DType::kU8) == bytes)
          sources.push_back({name, tensor.dtype, tensor.shape, tensor.bytes.data()});
      }
    }
    std::string file = safetensors_head(sources, 4096);
    for (const TensorSource& source : sources) file.append(static_cast<const char*>(source.data), source.bytes());
    folder_.write("model.safetensors", file);
    const Result<ModelWeights> weights = load(folder_.path(), spec_, LoadFor::kCompute);
    return weights.ok() ? "(loaded)" : weights.error().message;
  }

  const std::string name_ = "model.layers.0.mlp.experts.1.up_proj.weight";  // [24, 40] in Q4: 2 panels of 1 block
  WeightSpec spec_;
  test::StoredTensors tensors_;
};

TEST_F(QuantisedFileTest, OtherSizesAreRefusedWithBothByTensor) {
  EXPECT_EQ(refusal(), "(loaded)");
  test::StoredTensor& tensor = tensors_.at(name_);
  ASSERT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 576}));
  const std::string expected =
      ", expected 1152 bytes as [2, 576] for Q4 of [24, 40] (I, D): config.json and weights do "
      "not belong together, run latte quantize again; file " +
      folder_.file("model.safetensors");
  const std::vector<std::vector<std::int64_t>> shapes = {{3, 576}, {2, 512}, {1152}, {576, 2}, {2, 576, 1}, {0, 576}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::size_t bytes = 1;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    tensor.shape = shape;
    tensor.bytes.resize(bytes);
    EXPECT_EQ(refusal(), "[load] tensor \"" + name_ + "\": " + std::to_string(bytes) + " bytes as " +
                             shape_text(shape) + expected);
  }
}

TEST_F(QuantisedFileTest, AnotherPlanOrAnotherConfigurationIsRefused) {
  spec_.grouped->plan.ffn = DType::kQ8;
  EXPECT_NE(refusal().find(" bytes as [2, 576], expected 2176 bytes as [2, 1088] for Q8 of [24, 40]"),
            std::string::npos)
      << refusal();
  spec_.grouped->plan.ffn = DType::kQ4;
  spec_.moe_intermediate = 40;
  EXPECT_NE(refusal().find("expected 1728 bytes as [3, 576] for Q4 of [40, 40]"), std::string::npos) << refusal();
}

TEST_F(QuantisedFileTest, FloatsInTheirPlaceAndPanelsInThatOfFloatsAreRefused) {
  test::StoredTensor& tensor = tensors_.at(name_);
  const test::StoredTensor kept = tensor;
  tensor = {DType::kBf16, {24, 40}, std::vector<char>(24 * 40 * 2)};
  EXPECT_EQ(refusal().find("[load] tensor \"" + name_ + "\": dtype BF16, expected U8, the panels of Q4 of [24, 40]"),
            0u)
      << refusal();
  tensor = kept;
  spec_.grouped.reset();
  EXPECT_NE(refusal().find("dtype U8, expected F32, BF16, F16 or F64"), std::string::npos) << refusal();
}

TEST_F(QuantisedFileTest, MissingTensorNamesWhatItWouldHold) {
  tensors_.erase(name_);
  EXPECT_EQ(refusal().find("[load] tensor \"" + name_ + "\": missing, expected Q4 of [24, 40] (I, D); folder "), 0u)
      << refusal();
}

TEST_F(QuantisedFileTest, DataOffTheCacheLineIsRefused) {
  ASSERT_TRUE(test::write_tensors(folder_.file("model.safetensors"), tensors_).ok());  // as any program would
  const Result<ModelWeights> weights = load(folder_.path(), spec_, LoadFor::kCompute);
  ASSERT_FALSE(weights.ok());
  EXPECT_NE(weights.error().message.find("bytes behind a cache line"), std::string::npos) << weights.error().message;
}

TEST_F(QuantisedFileTest, NanInWhatIsCopiedIsRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(tensors_.at("model.layers.0.input_layernorm.weight").bytes.data() + 8, &nan, sizeof nan);
  EXPECT_NE(refusal().find("\"model.layers.0.input_layernorm.weight\": element 2 is NaN"), std::string::npos);
}

}  // namespace
}  // namespace latte
