#include <gtest/gtest.h>

#include <algorithm>

#include "run_program.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

std::vector<std::string> generate(std::vector<std::string> more) {
  std::vector<std::string> words = {"generate", "-m", family_model(), "--ids", "5,6,7,8", "--ignore-eos", "-t", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

RunHow how_with(std::vector<std::string> environment) {
  RunHow how;
  how.environment = std::move(environment);
  return how;
}

TEST(Generate, JsonHoldsTheContract) {
  const Outcome outcome = run_latte(generate({"-n", "20", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const nlohmann::json result = outcome.json();
  for (const char* field : {"text",
                            "ids",
                            "prompt_ids",
                            "finish_reason",
                            "seed",
                            "prompt_tokens",
                            "cached_tokens",
                            "generated_tokens",
                            "prompt_seconds",
                            "generate_seconds",
                            "rounds",
                            "drafted",
                            "accepted",
                            "accepted_per_position",
                            "tested_per_position",
                            "draft_depth",
                            "paths",
                            "path_rows",
                            "peak_bytes",
                            "device",
                            "isa",
                            "numerics"}) {
    EXPECT_TRUE(result.contains(field)) << field;
  }
  EXPECT_EQ(result["ids"].size(), 20u);
  EXPECT_EQ(result["prompt_ids"], nlohmann::json({5, 6, 7, 8}));
  EXPECT_EQ(result["finish_reason"], "length");
  EXPECT_EQ(result["spec_type"], "mtp");
  EXPECT_EQ(result["draft_depth"], 4);
  EXPECT_EQ(result["rounds_per_depth"].size(), 5u);
  EXPECT_GT(result["paths"]["absorbed"], 0);
}

TEST(Generate, SpeculationChangesNothingButTheCounters) {
  const nlohmann::json plain = run_latte(generate({"-n", "30", "--json", "--spec-type", "none"})).json();
  EXPECT_EQ(plain["drafted"], 0);
  for (const char* depth : {"1", "2", "8"}) {
    const nlohmann::json drafted = run_latte(generate({"-n", "30", "--json", "--max-draft", depth})).json();
    EXPECT_EQ(drafted["ids"], plain["ids"]) << depth;
    EXPECT_GT(drafted["drafted"], 0);
  }
}

TEST(Generate, SeedDecidesTheSample) {
  const auto ids = [](const char* seed) {
    return run_latte(generate({"-n", "24", "--json", "--temp", "1.2", "-s", seed})).json()["ids"];
  };
  EXPECT_EQ(ids("11"), ids("11"));
  EXPECT_NE(ids("11"), ids("12"));
  EXPECT_EQ(run_latte(generate({"-n", "1", "--json", "-s", "18446744073709551615"})).json()["seed"],
            18446744073709551615ull);
}

TEST(Generate, EnvironmentStandsInForOptions) {
  const Outcome outcome = run_latte(generate({"--json"}), how_with({"LATTE_PREDICT=3", "LATTE_SPEC_TYPE=none"}));
  EXPECT_EQ(outcome.json()["ids"].size(), 3u);
  EXPECT_EQ(outcome.json()["spec_type"], "none");
  EXPECT_EQ(run_latte(generate({}), how_with({"LATTE_PREDICT=x"})).exit_code, 2);
}

TEST(Generate, CommandLineOutranksTheEnvironmentsPrompt) {
  const Outcome outcome = run_latte(generate({"--json", "-n", "1"}),
                                    how_with({"LATTE_PROMPT=a", "LATTE_FILE=/no/such/file", "LATTE_IDS=1"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["prompt_ids"], nlohmann::json({5, 6, 7, 8}));
  EXPECT_EQ(run_latte(generate({"-n", "1", "--kv-bits", "32"}), how_with({"LATTE_CACHE_TYPE=q8"})).exit_code, 0);
  EXPECT_EQ(run_latte({"generate", "-m", family_model(), "--ids", "1,x"}).exit_code, 2);
  EXPECT_EQ(run_latte({"generate", "-m", family_model()}, how_with({"LATTE_PROMPT=a", "LATTE_IDS=1"})).exit_code, 2);
}

TEST(Generate, UnusedSystemPromptIsSaidOnce) {
  const Outcome outcome = run_latte(generate({"--json", "-n", "1", "-sys", "be brief", "--raw"}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "warning: --system-prompt is not used: --ids give the whole prompt\n");
}

TEST(Generate, ReferenceSaysWhatItDoesNotUse) {
  const Outcome outcome = run_latte(generate({"--json", "-n", "1", "--device", "reference", "-t", "3"}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "warning: --threads 3 is not used: device reference chooses for itself\n");
  const Outcome refused = run_latte(generate({"-n", "1", "--device", "reference", "--isa", "avx2"}));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(is_one_error_line(refused.err)) << refused.err;
}

TEST(Generate, AModelWithoutATokenizerWritesIds) {
  const nlohmann::json ids = run_latte(generate({"-n", "3", "--json"})).json()["ids"];
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(run_latte(generate({"-n", "3"})).out, ids[0].dump() + "," + ids[1].dump() + "," + ids[2].dump() + "\n");
}

TEST(Generate, IdsComeFromAFile) {
  const TempFolder folder;
  const std::string file = folder.write("ids.json", " [5, 6,\n 7, 8 ]\n");
  const nlohmann::json result =
      run_latte({"generate", "-m", family_model(), "--ids", "@" + file, "-n", "2", "--json"}).json();
  EXPECT_EQ(result["prompt_ids"], nlohmann::json({5, 6, 7, 8}));
}

TEST(Generate, WithoutLimitItEndsAtTheContext) {
  const nlohmann::json result = run_latte(generate({"--json"})).json();
  EXPECT_EQ(result["generated_tokens"], 64 - 4 + 1);
  EXPECT_EQ(result["finish_reason"], "length");
}

TEST(Generate, SummaryGoesToStandardError) {
  const Outcome outcome = run_latte(generate({"-n", "8"}));
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* part : {"prompt: 4 tokens", "generated: 8 tokens", "speculation: mtp, depth 4", "emitted per round",
                           "paths: absorbed", "peak memory"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.err;
  }
}

TEST(Generate, NoRateIsShownWhereNothingWasTimed) {
  const std::string one = run_latte(generate({"-n", "1"})).err;
  EXPECT_NE(one.find("generated: 1 tokens, finished by length\n"), std::string::npos) << one;
  EXPECT_NE(one.find("prompt: 4 tokens, "), std::string::npos) << one;
  const std::string none = run_latte(generate({"-n", "0"})).err;
  EXPECT_NE(none.find("prompt: 4 tokens\n"), std::string::npos) << none;
  EXPECT_NE(run_latte(generate({"-n", "9"})).err.find("generated: 9 tokens, "), std::string::npos);
}

TEST(Generate, PenaltiesAndBiasReachTheText) {
  const auto ids = [](std::vector<std::string> more) {
    more.insert(more.end(), {"-n", "20", "--json", "--temp", "0"});
    return run_latte(generate(more)).json()["ids"];
  };
  const nlohmann::json free = ids({});
  const std::string first = std::to_string(free[0].get<int>());
  const nlohmann::json banned = ids({"-l", first + "-inf,3+0.5"});
  EXPECT_EQ(std::count(banned.begin(), banned.end(), free[0]), 0);
  EXPECT_EQ(ids({"--logit-bias", first + "=-inf", "-l", "3=0.5"}), banned);
  EXPECT_EQ(ids({"-l", "42+1000"}), nlohmann::json(std::vector<int>(20, 42)));
  for (const char* penalty : {"--presence-penalty", "--frequency-penalty"}) {
    const nlohmann::json distinct = ids({penalty, "100", "-l", "42+50"});
    EXPECT_EQ(distinct[0], 42);
    EXPECT_EQ(std::count(distinct.begin(), distinct.end(), 42), 1) << penalty;
  }
  // The prompt is 5,6,7,8: it lies in the window unless that is too short.
  EXPECT_EQ(ids({"-l", "5+20", "--repeat-penalty", "100", "--repeat-last-n", "0"})[0], 5);
  EXPECT_EQ(ids({"-l", "5+20", "--repeat-penalty", "100", "--repeat-last-n", "3"})[0], 5);
  EXPECT_NE(ids({"-l", "5+20", "--repeat-penalty", "100", "--repeat-last-n", "4"})[0], 5);
  EXPECT_NE(ids({"-l", "5+20", "--repeat-penalty", "100"})[0], 5);
}

TEST(Generate, EosStandsForEveryStopToken) {
  const nlohmann::json forced = run_latte(generate({"-n", "3", "--json", "-l", "eos+1000"})).json();
  const nlohmann::json free = run_latte(generate({"-n", "3", "--json", "-l", "eos+1000,eos-inf"})).json();
  ASSERT_EQ(forced["ids"].size(), 3u) << "they are ignored, not forbidden";
  EXPECT_EQ(std::count(free["ids"].begin(), free["ids"].end(), forced["ids"][0]), 0);
}

TEST(Generate, LogprobsAreInTheJsonWhenAskedFor) {
  EXPECT_FALSE(run_latte(generate({"-n", "3", "--json"})).json().contains("logprobs"));
  const nlohmann::json result = run_latte(generate({"-n", "3", "--json", "--logprobs", "2"})).json();
  ASSERT_EQ(result["logprobs"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const nlohmann::json& token = result["logprobs"][i];
    EXPECT_EQ(token["id"], result["ids"][i]);
    EXPECT_EQ(token["token"], "") << "there is no tokenizer";
    EXPECT_EQ(token["top"].size(), 2u);
    EXPECT_EQ(token["top"][0]["logprob"], token["logprob"]) << "greedy takes the likeliest";
  }
  const Outcome text = run_latte(generate({"-n", "1", "--logprobs", "2"}));
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_TRUE(text.err.starts_with("warning: --logprobs is not used: they are printed with --json\n")) << text.err;
}

TEST(Generate, GroupedQueryAttentionIsCountedAsItself) {
  const auto folder = family_folder("qwen3");
  if (!folder.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set: the model is not in the repository";
  const std::vector<std::string> command = {"generate", "-m", *folder, "--ids", "1,2,3", "-n", "4", "--temp", "0"};
  std::vector<std::string> as_json = command;
  as_json.push_back("--json");
  const nlohmann::json result = run_latte(as_json).json();
  EXPECT_EQ(result["paths"]["absorbed"], 0);
  EXPECT_EQ(result["paths"]["materialised"], 0);
  EXPECT_EQ(result["paths"]["gqa"], result["rounds"].get<int>() + 1);
  EXPECT_EQ(result["path_rows"]["absorbed"], 0);
  EXPECT_NE(run_latte(command).err.find("paths: gqa "), std::string::npos);
}

TEST(Generate, BrokenPipeEndsQuietly) {
  const Outcome outcome =
      run_latte(generate({"-n", "8", "--json"}), {.environment = {}, .close_stdout = true, .interrupt_after_ms = 0});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
}

TEST(Generate, InterruptEndsWith130) {
  const Outcome outcome = run_latte(generate({"-c", "1000000", "--json"}),
                                    {.environment = {}, .close_stdout = false, .interrupt_after_ms = 500});
  EXPECT_EQ(outcome.exit_code, 130);
  if (outcome.out.empty()) return;  // it had not got as far as the first token
  EXPECT_EQ(outcome.json()["finish_reason"], "cancelled");
}

class TinyModel : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::optional<std::string> found = model_folder("latte-tiny");
    if (!found.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked and LATTE_TEST_DATA is not set";
    model_ = *found;
  }
  std::string model_;
};

TEST_F(TinyModel, StreamedTextIsTheTextOfTheResult) {
  const std::vector<std::string> words = {"generate", "-m", model_, "-p", "The harbour at dawn", "-n", "40", "-t", "1"};
  const Outcome streamed = run_latte(words);
  std::vector<std::string> with_json = words;
  with_json.push_back("--json");
  const nlohmann::json result = run_latte(with_json).json();
  EXPECT_EQ(streamed.exit_code, 0);
  EXPECT_EQ(streamed.out, result["text"].get<std::string>() + "\n");
  EXPECT_EQ(result["prompt_ids"][0], 0) << "BOS comes first";
  EXPECT_EQ(result["seed"].is_number_unsigned(), true);
}

TEST_F(TinyModel, SystemPromptWithoutTemplateIsSaidOnce) {
  const Outcome outcome =
      run_latte({"generate", "-m", model_, "-p", "The harbour", "-n", "1", "-t", "1", "--json", "--raw", "-sys", "x"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "warning: --system-prompt is not used: --raw takes the prompt as text\n");
}

TEST_F(TinyModel, StopTextEndsTheTextBeforeIt) {
  const nlohmann::json whole =
      run_latte({"generate", "-m", model_, "-p", "The harbour at dawn", "-n", "40", "-t", "1", "--json"}).json();
  const std::string text = whole["text"];
  ASSERT_GT(text.size(), 20u);
  const std::string stop = text.substr(10, 5);
  const nlohmann::json cut =
      run_latte({"generate", "-m", model_, "-p", "The harbour at dawn", "-n", "40", "-t", "1", "--json", "-r", stop})
          .json();
  EXPECT_EQ(cut["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(cut["finish_reason"], "stop");
}

TEST_F(TinyModel, DraftModelDrafts) {
  const std::optional<std::string> draft = model_folder("latte-tiny-draft");
  if (!draft.has_value()) GTEST_SKIP() << "latte-tiny-draft is not unpacked";
  const nlohmann::json plain = run_latte({"generate", "-m", model_, "-p", "int main(void)", "-n", "48", "-t", "1",
                                          "--spec-type", "none", "--json"})
                                   .json();
  const nlohmann::json drafted = run_latte({"generate", "-m", model_, "-md", *draft, "-p", "int main(void)", "-n", "48",
                                            "-t", "1", "--num-draft-tokens", "4", "--json"})
                                     .json();
  EXPECT_EQ(drafted["spec_type"], "draft");
  EXPECT_EQ(drafted["draft_depth"], 4);
  EXPECT_GT(drafted["accepted"], 0);
  EXPECT_EQ(drafted["ids"], plain["ids"]);
}

}  // namespace
}  // namespace latte::test
