// A folder that quantize_model writes against its model opened with the same choice.
#include "latte/quantize.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "api/engine_access.h"
#include "cache_file.h"
#include "decode/open_model.h"
#include "io/checkpoint.h"
#include "io/json_file.h"
#include "latte/report.h"
#include "support/temp_folder.h"
#include "support/test_model.h"
#include "tensor/grouped.h"

namespace latte::test {
namespace {

namespace fs = std::filesystem;

constexpr Quantize kChoices[] = {Quantize::kQ8, Quantize::kQ4, Quantize::kQ4Q8Attention};

QuantizeReport quantize_or_die(const QuantizeRequest& request) {
  Result<QuantizeReport> report = quantize_model(request);
  if (!report.ok()) ADD_FAILURE() << report.error().message;
  return std::move(report).value();
}

std::string refusal(const QuantizeRequest& request) {
  const Result<QuantizeReport> report = quantize_model(request);
  return report.ok() ? "(written)" : report.error().message;
}

EngineOptions options_of(const std::string& model, Quantize quantize = Quantize::kNone) {
  EngineOptions options;
  options.model = model;
  options.threads = 1;
  options.context = 64;
  options.quantize = quantize;
  return options;
}

/// Every bit of the logits of a prompt, of decode steps behind it and of the MTP layer.
std::vector<float> all_logits(const Engine& engine) {
  std::vector<float> all;
  const auto take = [&](int, std::span<const float> logits) -> Status {
    all.insert(all.end(), logits.begin(), logits.end());
    return {};
  };
  Session session = session_or_die(engine);
  const Status done =
      session.logits(some_ids(24), {.steps = {20, 1, 1, 2}}, take, engine.info().has_mtp ? LogitsSink(take) : nullptr);
  if (!done.ok()) ADD_FAILURE() << done.error().message;
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

int entries(const std::string& folder) { return static_cast<int>(std::distance(fs::directory_iterator(folder), {})); }

/// A model, quantised in the three ways, computes what it computes when it is quantised at load.
void expect_equal_bits(const std::string& model) {
  const TempFolder place;
  const std::vector<float> floats = all_logits(open_or_die(options_of(model)));
  for (const Quantize choice : kChoices) {
    SCOPED_TRACE(std::string(word(choice)) + " of " + model);
    const std::string folder = place.file(std::string(word(choice)).substr(0, 5));
    const QuantizeReport report = quantize_or_die({.model = model, .directory = folder, .quantize = choice});
    const Engine at_load = open_or_die(options_of(model, choice)), stored = open_or_die(options_of(folder));
    const std::vector<float> expected = all_logits(at_load);
    EXPECT_TRUE(same_bits(all_logits(stored), expected));
    EXPECT_FALSE(same_bits(floats, expected)) << "the choice changes something";
    EXPECT_EQ(stored.info().quantize, word(choice));
    EXPECT_EQ(stored.info().weight_bytes, at_load.info().weight_bytes);
    EXPECT_EQ(stored.info().weight_bytes, report.bytes);
    EXPECT_EQ(stored.info().parameters, at_load.info().parameters);
    EXPECT_EQ(stored.info().compute, at_load.info().compute);
    EXPECT_EQ(stored.info().cache, at_load.info().cache);
    EXPECT_EQ(stored.info().has_mtp, at_load.info().has_mtp);
    EXPECT_EQ(report.mtp, at_load.info().has_mtp);
    EXPECT_EQ(EngineAccess::model(stored)->model.weights.made.size(), 0u) << "nothing is made at load";
  }
}

TEST(QuantizeModel, LogitsAreThoseOfQuantisingAtLoad) { expect_equal_bits(family_folder()); }

TEST(QuantizeModel, OtherFamiliesHaveTheirBitsToo) {
  // Without q_lora_rank; a tied head; grouped queries with experts; a text model inside a larger one.
  for (const char* name : {"moonlight", "youtu", "qwen3_moe", "youtu_vl"}) {
    const auto folder = test::family_folder(name);
    if (!folder.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA names no folder with " << name;
    expect_equal_bits(*folder);
  }
}

TEST(QuantizeModel, LatteTinyIsWholeAndReadsFromItsFiles) {
  const auto model = test::model_folder("latte-tiny");
  if (!model.has_value()) GTEST_SKIP() << "no latte-tiny";
  const TempFolder place;
  const QuantizeReport report = quantize_or_die({.model = *model,
                                                 .directory = place.file("q4"),
                                                 .quantize = Quantize::kQ4,
                                                 .threads = 2,
                                                 .most_shard_bytes = 10'000'000});
  EXPECT_EQ(report.weight_files, 3);
  EXPECT_EQ(report.copied,
            (std::vector<std::string>{"generation_config.json", "tokenizer.json", "tokenizer_config.json"}));
  EXPECT_LT(report.bytes * 2, report.bytes_before);
  EXPECT_TRUE(report.left_out.empty());
  const Engine at_load = open_or_die(options_of(*model, Quantize::kQ4)),
               stored = open_or_die(options_of(place.file("q4")));
  EXPECT_TRUE(same_bits(all_logits(stored), all_logits(at_load)));
  const ModelWeights& weights = EngineAccess::model(stored)->model.weights;
  EXPECT_LT(weights.report.copied_bytes * 50, report.bytes) << "norms and routers";
  EXPECT_TRUE(weights.checkpoint.is_mapped(weights.head.data));
  EXPECT_TRUE(weights.checkpoint.is_mapped(weights.mtp[0].layer.ffn.shared.gate.data));
  const Result<InspectReport> one = inspect(stored), two = inspect(at_load);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->quantisation, "q4");
  EXPECT_EQ(one->tensors_used, two->tensors_used);
  EXPECT_EQ(one->weight_bytes, two->weight_bytes);
  EXPECT_EQ(one->mtp_parameters, two->mtp_parameters);
  EXPECT_EQ(one->mtp_acceptance, two->mtp_acceptance);
  Session session = session_or_die(stored, SpecType::kMtp);
  EXPECT_EQ(session.generate("The harbour at dawn", greedy(8))->generated_tokens, 8);
}

TEST(QuantizeModel, AStoredChoiceTakesItsOwnWordAndNoOther) {
  const TempFolder place;
  const std::string folder = place.file("q4");
  quantize_or_die({.model = family_folder(), .directory = folder, .quantize = Quantize::kQ4});
  EXPECT_TRUE(Engine::open(options_of(folder, Quantize::kQ4)).ok());
  const Result<Engine> other = Engine::open(options_of(folder, Quantize::kQ4Q8Attention));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message.find("[open] --quantize q4:q8-attn with " + folder +
                                       ", whose weights are stored as q4: "
                                       "leave --quantize out"),
            0u)
      << other.error().message;
}

TEST(QuantizeModel, WhatCannotBeQuantisedIsRefusedAndLeavesNothing) {
  const TempFolder place;
  const std::string folder = place.file("q4"), other = place.file("other");
  quantize_or_die({.model = family_folder(), .directory = folder, .quantize = Quantize::kQ4});
  EXPECT_EQ(refusal({.model = folder, .directory = other, .quantize = Quantize::kQ4}),
            folder + ": is q4 already, expected a model of floats: open it as it is");
  EXPECT_EQ(
      refusal({.model = folder, .directory = other, .quantize = Quantize::kQ8}),
      folder + ": is quantised already, as q4, expected a model of floats: quantise the model that it was made from");
  EXPECT_EQ(refusal({.model = family_folder(), .directory = other, .quantize = Quantize::kNone}),
            "[quantize] quantize none, expected q8, q4, q4:q8-attn");
  EXPECT_EQ(
      refusal({.model = family_folder(), .directory = folder, .quantize = Quantize::kQ4}).find(folder + ": is a "), 0u);
  EXPECT_NE(refusal({.model = place.path(), .directory = other, .quantize = Quantize::kQ4}).find("no config.json"),
            std::string::npos);
  const Result<QuantizeReport> stopped =
      quantize_model({.model = family_folder(), .directory = other, .quantize = Quantize::kQ8},
                     [](std::int64_t done, std::int64_t all) { return done < all / 2; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(entries(place.path()), 1);
}

TEST(QuantizeModel, AFullDiskIsAnErrorAndLeavesNothing) {
  const TempFolder place;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t limit : {rlim_t{100}, rlim_t{100'000}}) {
    const rlimit small{.rlim_cur = limit, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string error =
        refusal({.model = family_folder(), .directory = place.file("out"), .quantize = Quantize::kQ8});
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_NE(error.find("cannot be written: File too large"), std::string::npos) << error;
    EXPECT_EQ(entries(place.path()), 0);
  }
}

/// A quantised folder in which a test changes the configuration.
class QuantizedFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    quantize_or_die({.model = family_folder(), .directory = folder_, .quantize = Quantize::kQ4});
  }
  void change_config(const std::function<void(Json&)>& change) {
    Json config = *read_json_file(folder_ + "/config.json");
    change(config);
    std::ofstream(folder_ + "/config.json") << config.dump();
  }
  std::string open_error() {
    const Result<Engine> engine = Engine::open(options_of(folder_));
    return engine.ok() ? "(opened)" : engine.error().message;
  }

  TempFolder place_;
  std::string folder_ = place_.file("q4");
};

TEST_F(QuantizedFolderTest, AnotherLayoutIsRefusedWithAdvice) {
  change_config([](Json& config) { config["quantization_config"]["group_layout"] = 2; });
  EXPECT_EQ(open_error(), folder_ +
                              "/config.json: key \"quantization_config.group_layout\": arrived 2, expected 1, which "
                              "this build reads: run latte quantize on the original model again");
}

TEST_F(QuantizedFolderTest, AnotherChoiceOrNoneDoesNotFitTheTensors) {
  change_config([](Json& config) { config["quantization_config"]["quantize"] = "q8"; });
  EXPECT_NE(open_error().find(" bytes as "), std::string::npos) << open_error();
  EXPECT_NE(open_error().find("run latte quantize again"), std::string::npos) << open_error();
  change_config([](Json& config) { config.erase("quantization_config"); });
  EXPECT_NE(open_error().find("dtype U8, expected F32, BF16, F16 or F64"), std::string::npos) << open_error();
}

TEST_F(QuantizedFolderTest, SizesThatFillTheSamePanelsAreRefused) {
  for (const char* key : {"intermediate_size", "moe_intermediate_size", "q_lora_rank"}) {
    const int size = (*read_json_file(folder_ + "/config.json"))[key];
    for (const int other : {size - 1, size + 1}) {
      change_config([&](Json& config) { config[key] = other; });
      EXPECT_EQ(open_error(), fmt::format("{}/config.json: {} is {}, expected {}, which the folder's matrices were "
                                          "quantised with: put config.json back, or run latte quantize on the original "
                                          "model again",
                                          folder_, key, other, size));
    }
    change_config([&](Json& config) { config[key] = size; });
    EXPECT_EQ(open_error(), "(opened)");
  }
  change_config([](Json& config) { config["quantization_config"]["sizes"].erase("kv_lora_rank"); });
  EXPECT_NE(open_error().find("key \"quantization_config.sizes\" lacks kv_lora_rank"), std::string::npos)
      << open_error();
}

TEST_F(QuantizedFolderTest, InspectFindsADamagedScale) {
  const std::string file = folder_ + "/model.safetensors";
  ASSERT_TRUE(inspect(open_or_die(options_of(folder_))).ok());
  {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t head = 0;
    bytes.read(reinterpret_cast<char*>(&head), sizeof head);
    bytes.seekp(static_cast<std::streamoff>(sizeof head + head));  // the first scale of the first matrix, the head
    bytes.write("\xc0\x7f", 2);
  }
  const Result<InspectReport> report = inspect(open_or_die(options_of(folder_)));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message,
            "[inspect] tensor \"lm_head.weight\": a scale of its Q8 panels is NaN or infinite, expected finite ones: "
            "the file is damaged, run latte quantize again; file " +
                file);
}

TEST_F(QuantizedFolderTest, InspectFindsADamagedFloatThatIsReadInPlace) {
  const Checkpoint stored = std::move(*Checkpoint::open(folder_));
  const TensorView* embed = stored.find("model.embed_tokens.weight");
  ASSERT_NE(embed, nullptr);
  ASSERT_EQ(embed->dtype, DType::kF32);
  const std::string file = folder_ + "/model.safetensors";
  std::ifstream bytes(file, std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(bytes)), {});
  const std::string values(static_cast<const char*>(embed->data), embed->bytes);
  const std::size_t at = all.find(values);
  ASSERT_NE(at, std::string::npos);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(all.data() + at + embed->bytes - sizeof nan, &nan, sizeof nan);
  std::ofstream(file, std::ios::binary) << all;
  const Result<Engine> engine = Engine::open(options_of(folder_));
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const Result<InspectReport> report = inspect(*engine);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("\"model.embed_tokens.weight\": element"), std::string::npos)
      << report.error().message;
}

TEST_F(QuantizedFolderTest, InspectFindsAnyChangedByte) {
  const std::string file = folder_ + "/model.safetensors";
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t head = 0;
  bytes.read(reinterpret_cast<char*>(&head), sizeof head);
  const auto code = static_cast<std::streamoff>(sizeof head + head + kBlockScaleBytes);  // the first behind the scales
  bytes.seekg(code);
  const int was = bytes.get();
  bytes.seekp(code);
  bytes.put(static_cast<char>(was ^ 1));
  bytes.close();
  const Result<InspectReport> report = inspect(open_or_die(options_of(folder_)));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("not those that were written with its config.json"), std::string::npos)
      << report.error().message;
}

TEST_F(QuantizedFolderTest, ACutFileIsRefused) {
  const std::string file = folder_ + "/model.safetensors";
  fs::resize_file(file, fs::file_size(file) - 64);
  EXPECT_NE(open_error().find(file + ": tensor "), std::string::npos) << open_error();
  fs::resize_file(file, 0);
  EXPECT_EQ(open_error().find(file + ": "), 0u) << open_error();
}

TEST_F(QuantizedFolderTest, PromptCachesAreSharedWithTheModelThatItWasMadeFrom) {
  const std::string path = place_.file("cache"), again = place_.file("again");
  const Engine at_load = open_or_die(options_of(family_folder(), Quantize::kQ4)),
               stored = open_or_die(options_of(folder_));
  for (const bool from_folder : {false, true}) {
    Session first = session_or_die(from_folder ? stored : at_load, SpecType::kMtp);
    ASSERT_TRUE(first.generate(some_ids(20), greedy(6)).ok());
    save_or_fail(first, path);
    Session second = session_or_die(from_folder ? at_load : stored, SpecType::kMtp);
    CacheFileReport report;
    const Result<std::string> loaded = second.load(path, &report);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(report.rows, 25);
    EXPECT_EQ(report.drafter_note, "");
    ASSERT_TRUE(second.generate(some_ids(30), greedy(6)).ok());
    ASSERT_TRUE(first.generate(some_ids(30), greedy(6)).ok());
    EXPECT_TRUE(std::equal(first.tokens().begin(), first.tokens().end(), second.tokens().begin()));
  }
  // Other bits, so another computation.
  Session floats = session_or_die(open_or_die(options_of(family_folder())), SpecType::kMtp);
  EXPECT_FALSE(floats.load(path).ok());
  Session other = session_or_die(open_or_die(options_of(family_folder(), Quantize::kQ8)), SpecType::kMtp);
  EXPECT_FALSE(other.load(path).ok());
}

TEST_F(QuantizedFolderTest, PromptCachesOfAnEditedFolderAreItsOwn) {
  const std::string path = place_.file("cache");
  Session source = session_or_die(open_or_die(options_of(family_folder(), Quantize::kQ4)));
  ASSERT_TRUE(source.generate(some_ids(9), greedy(2)).ok());
  save_or_fail(source, path);
  {
    std::fstream file(folder_ + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('\x3d');  // one byte of the last tensor
  }
  Session edited = session_or_die(open_or_die(options_of(folder_)));
  const Result<std::string> loaded = edited.load(path);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("weights"), std::string::npos) << loaded.error().message;
}

}  // namespace
}  // namespace latte::test
