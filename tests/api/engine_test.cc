#include "latte/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>

#include "family_engine.h"
#include "io/json_file.h"
#include "latte/report.h"
#include "latte/text_codec.h"
#include "support/chat_model.h"
#include "support/sanitizers.h"
#include "support/stored_tensors.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

float& element(StoredTensors& tensors, const std::string& name, std::int64_t row, std::int64_t col) {
  StoredTensor& tensor = tensors.at(name);
  return reinterpret_cast<float*>(tensor.bytes.data())[row * tensor.shape.back() + col];
}

/// A copy of the family checkpoint with its weights changed by `change`.
template <class Change>
EngineOptions changed_family(const TempFolder& folder, Change change) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(family_folder());
  EXPECT_TRUE(checkpoint.ok());
  StoredTensors tensors = read_tensors(*checkpoint);
  change(tensors);
  EXPECT_TRUE(write_tensors(folder.file("model.safetensors"), tensors).ok());
  std::filesystem::copy_file(family_folder() + "/config.json", folder.file("config.json"));
  EngineOptions options = family_options();
  options.model = folder.path();
  return options;
}

TEST(Engine, SaysWhatItOpened) {
  const Engine engine = open_or_die(family_options());
  const EngineInfo& info = engine.info();
  EXPECT_EQ(info.family, "deepseek_v3");
  EXPECT_EQ(info.device, "cpu");
  EXPECT_EQ(info.compute, "f32") << "an f32 checkpoint computes in f32";
  EXPECT_EQ(info.cache, "f32");
  EXPECT_EQ(info.vocab, 272);
  EXPECT_EQ(info.context, 64);
  EXPECT_TRUE(info.has_mtp);
  EXPECT_EQ(info.cache_bytes_per_token, (32 + 16) * 4 * 4);
  EXPECT_EQ(engine.text(), nullptr);
  EXPECT_TRUE(info.warnings.empty());
}

TEST(Engine, ReferenceCachesInDouble) {
  EngineOptions options = family_options();
  options.device = "reference";
  EXPECT_EQ(open_or_die(options).info().cache, "f64");
}

TEST(Engine, AnIncompleteMtpLayerIsWarnedOf) {
  const TempFolder folder;
  std::filesystem::copy(family_folder() + "/config.json", folder.file("config.json"));
  StoredTensors tensors = read_tensors(*Checkpoint::open(family_folder()));
  ASSERT_EQ(tensors.erase("model.layers.4.mlp.experts.9.up_proj.weight"), 1u);
  ASSERT_TRUE(write_tensors(folder.file("model.safetensors"), tensors).ok());
  EngineOptions options = family_options();
  options.model = folder.path();
  const Engine engine = open_or_die(options);
  EXPECT_FALSE(engine.info().has_mtp);
  ASSERT_EQ(engine.info().warnings.size(), 1u);
  EXPECT_NE(engine.info().warnings[0].find("experts.9.up_proj.weight missing"), std::string::npos)
      << engine.info().warnings[0];
}

TEST(Engine, LayersPastTheConfigurationAreWarnedOf) {
  const TempFolder folder;
  std::filesystem::copy(family_folder() + "/model.safetensors", folder.file("model.safetensors"));
  nlohmann::json config = *read_json_file(family_folder() + "/config.json");
  config["num_nextn_predict_layers"] = 0;
  folder.write("config.json", config.dump());
  EngineOptions options = family_options();
  options.model = folder.path();
  const Engine engine = open_or_die(options);
  ASSERT_EQ(engine.info().warnings.size(), 1u);
  EXPECT_NE(engine.info().warnings[0].find("is past num_hidden_layers"), std::string::npos)
      << engine.info().warnings[0];
}

TEST(Engine, AHeadThatIsNotUsedIsWarnedOf) {
  const TempFolder folder;
  std::filesystem::copy(family_folder() + "/model.safetensors", folder.file("model.safetensors"));
  nlohmann::json config = *read_json_file(family_folder() + "/config.json");
  config["tie_word_embeddings"] = true;
  folder.write("config.json", config.dump());
  EngineOptions options = family_options();
  options.model = folder.path();
  const Engine engine = open_or_die(options);
  ASSERT_EQ(engine.info().warnings.size(), 1u);
  EXPECT_NE(engine.info().warnings[0].find("lm_head.weight is not used: config.json's tie_word_embeddings"),
            std::string::npos)
      << engine.info().warnings[0];
}

TEST(Engine, ComputeIsWhatProductsRunIn) {
  EngineOptions options = family_options();
  options.compute = ComputeType::kBf16;
  const EngineInfo wide = open_or_die(options).info();
  EXPECT_EQ(wide.compute, "f32") << "f32 weights are not rounded";
  ASSERT_EQ(wide.warnings.size(), 1u);
  EXPECT_NE(wide.warnings[0].find("--dtype bf16"), std::string::npos) << wide.warnings[0];

  const std::optional<std::string> tiny = model_folder("latte-tiny");
  if (!tiny.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked and LATTE_TEST_DATA is not set";
  options.model = *tiny;
  for (const char* isa : {"scalar", "avx2", "avx512", "avx512_bf16", "amx"}) {
    options.isa = isa;
    const Result<Engine> engine = Engine::open(options);
    if (!engine.ok()) continue;  // not on this processor
    const bool pairs = options.isa == "avx512_bf16" || options.isa == "amx";
    EXPECT_EQ(engine->info().compute, pairs ? "bf16" : "f32") << isa;
    EXPECT_EQ(engine->info().warnings.size(), pairs ? 0u : 1u) << isa;
  }
}

TEST(Engine, ReferenceHasNoInstructionSetAndOneThread) {
  EngineOptions options = family_options();
  options.device = "reference";
  options.isa = "avx2";
  const Result<Engine> refused = Engine::open(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("isa avx2"), std::string::npos) << refused.error().message;
  options.isa = "auto";
  options.threads = 2;
  const EngineInfo info = open_or_die(options).info();
  ASSERT_EQ(info.warnings.size(), 1u);
  EXPECT_NE(info.warnings[0].find("--threads 2"), std::string::npos) << info.warnings[0];
}

TEST(Engine, SuggestionThatCannotBeSampledIsIgnoredWithAWarning) {
  const TempFolder folder;
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(family_folder() + "/" + file, folder.file(file));
  folder.write("generation_config.json", R"({"do_sample": true, "temperature": 0.5, "top_k": 7, "top_p": 0.0})");
  EngineOptions options = family_options();
  options.model = folder.path();
  const Engine engine = open_or_die(options);
  EXPECT_EQ(engine.info().sampling.temperature, 0.5);
  EXPECT_EQ(engine.info().sampling.top_k, 7);
  EXPECT_EQ(engine.info().sampling.top_p, 1);
  ASSERT_EQ(engine.info().warnings.size(), 1u);
  EXPECT_NE(engine.info().warnings[0].find("top-p 0"), std::string::npos) << engine.info().warnings[0];
  RunOptions run;
  run.max_tokens = 2;
  EXPECT_TRUE(session_or_die(engine).generate(some_ids(4), run).ok());
}

TEST(Engine, ASuggestedPenaltyIsOfTheWholeTextAndOfGreedyChoicesToo) {
  const TempFolder folder;
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(family_folder() + "/" + file, folder.file(file));
  EngineOptions options = family_options();
  options.model = folder.path();
  RunOptions run;
  run.max_tokens = 24;
  const std::vector<std::int32_t> prompt = some_ids(9);
  const auto ids = [&](const RunOptions& how) {
    const Engine engine = open_or_die(options);
    return session_or_die(engine).generate(prompt, how)->ids;
  };
  const std::vector<std::int32_t> plain = ids(run);
  folder.write("generation_config.json", R"({"repetition_penalty": 1.7})");
  const SamplingChoice suggested = open_or_die(options).info().sampling;
  EXPECT_EQ(suggested.repeat_penalty, 1.7);
  EXPECT_EQ(suggested.repeat_last_n, -1);
  EXPECT_EQ(suggested.temperature, 0);
  const std::vector<std::int32_t> followed = ids(run);
  EXPECT_NE(followed, plain);
  run.sampling = SamplingChoice{.repeat_penalty = 1.7, .repeat_last_n = -1};
  EXPECT_EQ(ids(run), followed);
  folder.write("generation_config.json", R"({"repetition_penalty": 0})");
  const EngineInfo info = open_or_die(options).info();
  EXPECT_EQ(info.sampling.repeat_penalty, 1);
  ASSERT_EQ(info.warnings.size(), 1u);
  EXPECT_NE(info.warnings[0].find("repeat-penalty 0"), std::string::npos) << info.warnings[0];
}

TEST(Engine, WhetherATextBeginsWithBosIsNotGuessedInSilence) {
  const TempFolder folder;
  write_chat_model(folder.path(), family_folder(), "");
  EngineOptions options = family_options();
  options.model = folder.path();
  EXPECT_TRUE(open_or_die(options).info().warnings.empty());
  std::filesystem::remove(folder.file("tokenizer_config.json"));
  const EngineInfo info = open_or_die(options).info();
  ASSERT_EQ(info.warnings.size(), 1u);
  EXPECT_NE(info.warnings[0].find("no tokenizer_config.json"), std::string::npos) << info.warnings[0];
  const Result<TextCodec> codec = TextCodec::open(folder.path());
  ASSERT_TRUE(codec.ok());
  const auto ids = codec->encode("a", {.add_bos = true});
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().message.find("no BOS token"), std::string::npos) << ids.error().message;
  std::filesystem::create_symlink("gone", folder.file("tokenizer_config.json"));
  const Result<Engine> refused = Engine::open(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("tokenizer_config.json: a link to"), std::string::npos)
      << refused.error().message;
}

TEST(Engine, NoMemoryAtOpenIsAnError) {
  const Result<Engine> engine = Engine::open(family_options(), [](std::string_view) { throw std::bad_alloc(); });
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().kind, ErrorKind::kOutOfMemory);
}

TEST(Engine, TellsWhatItLoads) {
  EngineOptions options = family_options();
  options.draft_model = family_folder();
  std::vector<std::string> stages;
  ASSERT_TRUE(Engine::open(options, [&](std::string_view stage) { stages.emplace_back(stage); }).ok());
  EXPECT_EQ(stages, (std::vector<std::string>{"weights", "tokenizer", "draft model"}));
}

TEST(Engine, TrainedModelIsReadyInAFifthOfASecond) {
  const std::optional<std::string> tiny = model_folder("latte-tiny");
  if (!tiny.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked and LATTE_TEST_DATA is not set";
  EngineOptions options;
  options.model = *tiny;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Result<Engine> engine = Engine::open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    ASSERT_NE(engine->text(), nullptr);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best, kSanitized ? 20 : 0.2);
}

TEST(Engine, ContextBeyondTheModelWarnsAndWorks) {
  EngineOptions options = family_options();
  options.context = 80;
  const Engine engine = open_or_die(options);
  EXPECT_EQ(engine.info().warnings.size(), 1u);
  Session session = session_or_die(engine);
  EXPECT_TRUE(session.generate(some_ids(70), greedy(5)).ok());
}

TEST(Engine, UnknownNameListsThePlaces) {
  EngineOptions options;
  options.model = "no-such-model";
  const Result<Engine> engine = Engine::open(options);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(engine.error().message.find("share/latte/models"), std::string::npos) << engine.error().message;
}

TEST(Engine, WhatIsNotThereYetIsRefusedByName) {
  EngineOptions options = family_options();
  options.cache = CacheType::kFp8;
  const Result<Engine> engine = Engine::open(options);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().message, "[open] cache type fp8, expected q8, bf16, f16 or f32: choose one of these");
}

TEST(Engine, CachedRowsAreOfTheTypeAskedFor) {
  for (const char* device : {"cpu", "reference"}) {
    for (const auto& [type, bytes] : {std::pair(CacheType::kQ8, 4 + 2 * 16 + 32), std::pair(CacheType::kF16, 2 * 48),
                                      std::pair(CacheType::kBf16, 2 * 48), std::pair(CacheType::kF32, 4 * 48)}) {
      EngineOptions options = family_options();
      options.device = device;
      options.cache = type;
      const Engine engine = open_or_die(options);
      EXPECT_EQ(engine.info().cache, word(type));
      EXPECT_EQ(engine.info().cache_bytes_per_token, 4 * bytes) << word(type);
      const Result<InspectReport> report = inspect(engine);
      ASSERT_TRUE(report.ok());
      EXPECT_EQ(report->cache, word(type));
      EXPECT_EQ(report->latent_bytes_per_token, 4 * bytes);
      EXPECT_EQ(report->mtp_latent_bytes_per_token, bytes);
    }
  }
}

TEST(Engine, PinnedNumericsChooseTheFormThemselves) {
  EngineOptions options = family_options();
  options.numerics = Numerics::kPinned;
  ASSERT_TRUE(Engine::open(options).ok());
  options.path = PathChoice::kAbsorbed;
  ASSERT_FALSE(Engine::open(options).ok());
  EXPECT_NE(Engine::open(options).error().message.find("--mla-path absorbed with --numerics pinned"),
            std::string::npos);
}

TEST(Engine, NanInAWeightIsRefusedAtLoad) {
  const TempFolder folder;
  const EngineOptions options = changed_family(folder, [](StoredTensors& tensors) {
    element(tensors, "model.layers.2.self_attn.o_proj.weight", 3, 5) = std::numeric_limits<float>::quiet_NaN();
  });
  const Result<Engine> engine = Engine::open(options);
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("model.layers.2.self_attn.o_proj.weight"), std::string::npos)
      << engine.error().message;
  EXPECT_NE(engine.error().message.find("model.safetensors"), std::string::npos) << engine.error().message;
}

// Token 7 alone has a first embedding component, which layer 0's feed-forward block multiplies beyond every float.
TEST(Engine, OverflowStopsTheRequestAndNamesTheLayer) {
  const TempFolder folder;
  const EngineOptions options = changed_family(folder, [](StoredTensors& tensors) {
    for (int id = 0; id < 272; ++id) element(tensors, "model.embed_tokens.weight", id, 0) = id == 7 ? 1.0f : 0.0f;
    for (int col = 0; col < 60; ++col) element(tensors, "model.layers.0.self_attn.o_proj.weight", 0, col) = 0;
    for (int row = 0; row < 80; ++row) {
      element(tensors, "model.layers.0.mlp.gate_proj.weight", row, 0) = 1e30f;
      element(tensors, "model.layers.0.mlp.up_proj.weight", row, 0) = 1e30f;
    }
  });
  const Engine engine = open_or_die(options);
  Session session = session_or_die(engine, SpecType::kMtp, 2);
  const std::vector<std::int32_t> clean = {20, 21, 22, 23};
  const Result<GenerateResult> before = session.generate(clean, greedy(3));
  ASSERT_TRUE(before.ok()) << before.error().message;
  const std::vector<std::int32_t> planted = {20, 21, 7, 23};
  const Result<GenerateResult> broken = session.generate(planted, greedy(3));
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().kind, ErrorKind::kNumeric);
  EXPECT_NE(broken.error().message.find("layer 0"), std::string::npos) << broken.error().message;
  const Result<GenerateResult> after = session.generate(clean, greedy(3));
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(after->ids, before->ids);
}

TEST(Engine, DraftModelOfAnotherVocabularyIsRefused) {
  const std::optional<std::string> tiny = model_folder("latte-tiny");
  if (!tiny.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked and LATTE_TEST_DATA is not set";
  const TempFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(*tiny)) {
    const std::string name = entry.path().filename().string();
    if (name != "tokenizer.json")
      std::filesystem::create_symlink(std::filesystem::absolute(entry.path()), folder.file(name));
  }
  std::ifstream original(*tiny + "/tokenizer.json", std::ios::binary);
  nlohmann::json json = nlohmann::json::parse(original);
  const auto token = [&](int id) {
    for (auto& [text, value] : json["model"]["vocab"].items()) {
      if (value == id) return text;
    }
    return std::string();
  };
  const std::string first = token(300), second = token(301);
  json["model"]["vocab"][first] = 301;
  json["model"]["vocab"][second] = 300;
  folder.write("tokenizer.json", json.dump());
  EngineOptions options;
  options.model = *tiny;
  options.draft_model = folder.path();
  const Result<Engine> engine = Engine::open(options);
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("token 300 "), std::string::npos) << engine.error().message;
}

TEST(Inspect, CountsWhatTheFolderHolds) {
  const Result<InspectReport> report = inspect(open_or_die(family_options()));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->layers, 4);
  EXPECT_EQ(report->folded_layers, 4);
  EXPECT_TRUE(report->mtp_present);
  EXPECT_FALSE(report->mtp_acceptance.has_value()) << "no tokenizer, no text to measure on";
  EXPECT_EQ(report->quantisation, "none");
}

TEST(Inspect, MeasuresTheMtpLayerOfATrainedModel) {
  const std::optional<std::string> tiny = model_folder("latte-tiny");
  if (!tiny.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked and LATTE_TEST_DATA is not set";
  EngineOptions options;
  options.model = *tiny;
  const Result<InspectReport> report = inspect(open_or_die(options));
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(report->mtp_acceptance.has_value());
  EXPECT_GT(*report->mtp_acceptance, 0.4);
}

}  // namespace
}  // namespace latte::test
