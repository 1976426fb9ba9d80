// What an open model takes, measured in a process of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "family_engine.h"
#include "io/json_file.h"
#include "io/safetensors.h"
#include "latte/quantize.h"
#include "support/sanitizers.h"
#include "support/temp_folder.h"
#include "tensor/half.h"

namespace latte::test {
namespace {

constexpr std::int64_t kHidden = 1024, kVocab = 2048, kIntermediate = 4096, kLayers = 7;

/// A dense model of 100 million bf16 weights, 200 MB; tensors of one size hold the same random numbers.
void write_model(const std::string& folder) {
  Json config = *read_json_file(family_folder() + "/config.json");
  config.update({{"hidden_size", kHidden},
                 {"vocab_size", kVocab},
                 {"intermediate_size", kIntermediate},
                 {"num_hidden_layers", kLayers},
                 {"num_attention_heads", 8},
                 {"num_key_value_heads", 8},
                 {"kv_lora_rank", 256},
                 {"qk_rope_head_dim", 32},
                 {"qk_nope_head_dim", 64},
                 {"v_head_dim", 64},
                 {"q_lora_rank", nullptr},
                 {"first_k_dense_replace", kLayers},
                 {"num_nextn_predict_layers", 0},
                 {"torch_dtype", "bfloat16"},
                 {"n_routed_experts", nullptr},
                 {"max_position_embeddings", 512}});
  for (const char* key : {"mlp_layer_types", "rope_scaling", "n_shared_experts"}) config.erase(key);
  std::ofstream(folder + "/config.json") << config.dump();

  std::vector<bf16> numbers(static_cast<std::size_t>(kHidden * kIntermediate));
  constexpr std::size_t kDrawn = 1 << 16;
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < kDrawn; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers[i] = to_bf16(static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-36f);
  }
  for (std::size_t made = kDrawn; made < numbers.size(); made *= 2)
    std::memcpy(numbers.data() + made, numbers.data(), std::min(made, numbers.size() - made) * sizeof(bf16));
  std::vector<TensorSource> tensors;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    tensors.push_back({name, DType::kBf16, std::move(shape), numbers.data()});
  };
  add("model.embed_tokens.weight", {kVocab, kHidden});
  add("model.norm.weight", {kHidden});
  add("lm_head.weight", {kVocab, kHidden});
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add(prefix + "input_layernorm.weight", {kHidden});
    add(prefix + "post_attention_layernorm.weight", {kHidden});
    add(prefix + "self_attn.q_proj.weight", {8 * 96, kHidden});
    add(prefix + "self_attn.kv_a_proj_with_mqa.weight", {256 + 32, kHidden});
    add(prefix + "self_attn.kv_a_layernorm.weight", {256});
    add(prefix + "self_attn.kv_b_proj.weight", {8 * 128, 256});
    add(prefix + "self_attn.o_proj.weight", {kHidden, 8 * 64});
    add(prefix + "mlp.gate_proj.weight", {kIntermediate, kHidden});
    add(prefix + "mlp.up_proj.weight", {kIntermediate, kHidden});
    add(prefix + "mlp.down_proj.weight", {kHidden, kIntermediate});
  }
  const Status written = write_safetensors(folder + "/model.safetensors", tensors);
  ASSERT_TRUE(written.ok()) << written.error().message;
}

/// A number of /proc/self/status, in bytes.
std::int64_t status_bytes(std::string_view label) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(label)) return std::strtoll(line.c_str() + label.size(), nullptr, 10) * 1024;
  }
  return -1;
}

/// What opening a model and writing a few tokens adds to a process.
struct Taken {
  std::int64_t weights = 0;         ///< as the engine counts them
  std::int64_t cache = 0;           ///< of the rows that the caches have room for
  std::int64_t peak = 0;            ///< most resident memory
  std::int64_t anonymous = 0;       ///< resident memory that no file backs, at the end
  std::int64_t anonymous_open = 0;  ///< the same when the model is open
  bool ran = false;
};

Taken measure(const EngineOptions& options) {
  const std::int64_t resident = status_bytes("VmRSS:"), anonymous = status_bytes("RssAnon:");
  Taken taken;
  const Result<Engine> engine = Engine::open(options);
  if (!engine.ok()) return taken;
  taken.anonymous_open = status_bytes("RssAnon:") - anonymous;
  Result<Session> session = Session::open(*engine, {.spec = SpecType::kNone, .num_draft_tokens = 0});
  if (!session.ok()) return taken;
  taken.ran = session->generate(some_ids(12), greedy(4)).ok();
  constexpr int kPageRows = 256;  // a cache takes whole pages
  taken.weights = engine->info().weight_bytes;
  taken.cache = kPageRows * engine->info().cache_bytes_per_token;
  taken.peak = status_bytes("VmHWM:") - resident;
  taken.anonymous = status_bytes("RssAnon:") - anonymous;
  return taken;
}

/// measure() in a child process: the kernel counts its peak from the fork on.
Taken measure_apart(const EngineOptions& options) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) ADD_FAILURE() << "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const Taken taken = measure(options);
    _exit(write(ends[1], &taken, sizeof taken) == sizeof taken ? 0 : 1);
  }
  close(ends[1]);
  Taken taken;
  if (read(ends[0], &taken, sizeof taken) != sizeof taken) ADD_FAILURE() << "the child told nothing";
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(taken.ran);
  return taken;
}

void expect_little(const Taken& taken) { EXPECT_LE(taken.peak, taken.weights / 100 * 105 + taken.cache); }

TEST(Memory, AnOpenModelIsItsWeightsAndItsCache) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  const TempFolder place;
  ASSERT_NO_FATAL_FAILURE(write_model(place.path()));
  EngineOptions options;
  options.model = place.path();
  options.threads = 2;
  options.calibration = Calibration::kOff;
  const Taken floats = measure_apart(options);
  expect_little(floats);
  EXPECT_GT(floats.weights, 200'000'000);
  EXPECT_LT(floats.anonymous, floats.weights / 50 + floats.cache);

  options.quantize = Quantize::kQ8;  // made sooner than Q4
  const Taken at_load = measure_apart(options);
  expect_little(at_load);
  EXPECT_GT(at_load.anonymous_open, at_load.weights * 9 / 10) << "made at load, so it is in memory";

  const std::string quantised = place.file("q8");
  const Result<QuantizeReport> written =
      quantize_model({.model = place.path(), .directory = quantised, .quantize = Quantize::kQ8, .threads = 2});
  ASSERT_TRUE(written.ok()) << written.error().message;
  options.model = quantised;
  options.quantize = Quantize::kNone;
  const Taken stored = measure_apart(options);
  expect_little(stored);
  EXPECT_EQ(stored.weights, at_load.weights);
  EXPECT_LT(stored.anonymous_open, stored.weights / 50) << "nothing of it is copied";
  EXPECT_LT(stored.anonymous, stored.weights / 20 + stored.cache);
}

}  // namespace
}  // namespace latte::test
