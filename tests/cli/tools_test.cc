#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "run_program.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

// The shape part of a .npy header and the values behind it.
struct Npy {
  std::string header;
  std::vector<float> values;
};

Npy read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_GT(bytes.size(), 128u);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t length = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ((10 + length) % 64, 0u);
  Npy npy{bytes.substr(10, length), std::vector<float>((bytes.size() - 10 - length) / sizeof(float))};
  std::memcpy(npy.values.data(), bytes.data() + 10 + length, npy.values.size() * sizeof(float));
  return npy;
}

TEST(Logits, WritesTheMatricesOfTheContract) {
  const TempFolder folder;
  const Outcome outcome =
      run_latte({"logits", "-m", family_model(), "--ids", "1,2,3,4,5,6,7,8,9,10", "-o", folder.file("all.npy"), "--mtp",
                 folder.file("mtp.npy"), "--steps", "6,1x4", "--redo", "2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const Npy all = read_npy(folder.file("all.npy")), mtp = read_npy(folder.file("mtp.npy"));
  EXPECT_NE(all.header.find("'shape': (10, 272)"), std::string::npos) << all.header;
  EXPECT_NE(all.header.find("'descr': '<f4'"), std::string::npos);
  EXPECT_EQ(all.values.size(), 10u * 272u);
  EXPECT_EQ(mtp.values.size(), 9u * 272u);
}

TEST(Logits, StepsMustAddUp) {
  const TempFolder folder;
  EXPECT_EQ(run_latte({"logits", "-m", family_model(), "--ids", "1,2,3", "-o", folder.file("x.npy"), "--steps", "2,2"})
                .exit_code,
            2);
  EXPECT_EQ(run_latte({"logits", "-m", family_model(), "--ids", "1,2,3", "-o", folder.file("x.npy"), "--steps", "3x"})
                .exit_code,
            2);
  EXPECT_EQ(run_latte({"logits", "-m", family_model(), "--ids", "1,2,3"}).exit_code, 2);
  const std::string same = folder.file("same.npy");
  EXPECT_EQ(run_latte({"logits", "-m", family_model(), "--ids", "1,2", "-o", same, "--mtp", same}).exit_code, 2);
}

TEST(Logits, RedoBeyondEveryStepIsSaid) {
  const TempFolder folder;
  const auto said = [&](const char* redo, const char* steps) {
    return run_latte({"logits", "-m", family_model(), "--ids", "1,2,3", "-o", folder.file("x.npy"), "--steps", steps,
                      "--redo", redo})
        .err;
  };
  EXPECT_EQ(said("3", "2,1"), "warning: --redo 3 is not used: no step has more rows, the longest has 2\n");
  EXPECT_NE(said("2", "2,1"), "");
  EXPECT_EQ(said("1", "2,1"), "");
}

TEST(Logits, UnwritableFileIsAnError) {
  const Outcome outcome = run_latte({"logits", "-m", family_model(), "--ids", "1,2,3", "-o", "/no/such/folder/x.npy"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
}

TEST(Logits, AFailedRunLeavesWhatWasThere) {
  const TempFolder folder;
  const std::string kept = folder.write("kept.npy", "before");
  const auto files = [&] {
    const std::filesystem::directory_iterator all(folder.path());
    return std::distance(begin(all), end(all));
  };
  const auto run = [&](const std::string& ids, const std::string& path) {
    return run_latte({"logits", "-m", family_model(), "--ids", ids, "-o", path, "--steps", "2,1"}).exit_code;
  };
  EXPECT_EQ(run("1,2,999", kept), 1) << "the second step fails, after rows were written";
  EXPECT_EQ(run("1,2,999", folder.file("new.npy")), 1);
  EXPECT_EQ(files(), 1) << "neither a half nor a temporary file";
  std::ifstream before(kept);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(before)), {}), "before");
  EXPECT_EQ(run("1,2,3", kept), 0);
  EXPECT_EQ(read_npy(kept).values.size(), 3u * 272u);
  EXPECT_EQ(run("1,2,3", "/dev/null"), 0) << "what is no plain file is written as it is";
  EXPECT_EQ(files(), 1);
}

TEST(PlanCommand, MultiplyAddsAreNumbersHoweverLong) {
  const TempFolder folder;
  std::ifstream original(family_model() + "/config.json", std::ios::binary);
  nlohmann::json config = nlohmann::json::parse(original);
  config["kv_lora_rank"] = 1 << 20;
  const std::string path = folder.write("config.json", config.dump());
  const std::string rows = std::to_string(1 << 30);
  const Outcome outcome = run_latte({"plan", "--config", path, "--json", "--new", rows, "--cached", rows});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // 2^30 * 2^20 * 44 + 2 * 2^30 * 2^30 * 2^20
  EXPECT_NE(outcome.out.find("\"absorbed_macs\":2417851688768854250487808,"), std::string::npos) << outcome.out;
  EXPECT_TRUE(outcome.json()["absorbed_macs"].is_number());
  EXPECT_TRUE(outcome.json()["materialised_macs"].is_number());
}

TEST(PlanCommand, JsonHoldsTheContract) {
  const nlohmann::json plan =
      run_latte({"plan", "--config", family_model() + "/config.json", "--json", "--new", "1", "--cached", "9"}).json();
  EXPECT_EQ(plan["geometry"], nlohmann::json({{"heads", 3}, {"r", 32}, {"p", 16}, {"n", 24}, {"v", 20}}));
  for (const char* field : {"latent_bytes_per_token", "expanded_bytes_per_token", "weights_bytes", "crossover", "form",
                            "reason", "absorbed_macs", "materialised_macs"}) {
    EXPECT_TRUE(plan.contains(field)) << field;
  }
  EXPECT_EQ(plan["form"], "absorbed");
  EXPECT_EQ(plan["absorbed_macs"], 32 * 44 + 2 * 9 * 32);
  EXPECT_EQ(plan["crossover"][0]["cached"], 512);
}

TEST(PlanCommand, FewerCachedThanNewRowsIsMisuse) {
  EXPECT_EQ(run_latte({"plan", "-m", family_model(), "--new", "5", "--cached", "4"}).exit_code, 2);
  EXPECT_EQ(run_latte({"plan", "-m", family_model(), "--new", "5"}).exit_code, 2);
  EXPECT_EQ(run_latte({"plan"}).exit_code, 2);
  EXPECT_EQ(run_latte({"plan", "-m", family_model()}).exit_code, 0);
}

TEST(PlanCommand, CacheIsSizedForTheAskedContext) {
  const auto plan = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"plan", "-m", family_model()};
    words.insert(words.end(), more.begin(), more.end());
    return run_latte(words);
  };
  const nlohmann::json own = plan({"--json"}).json(), asked = plan({"--json", "-c", "50"}).json();
  const auto bytes = own["latent_bytes_per_token"].get<std::int64_t>();
  EXPECT_EQ(own["context"], 64);
  EXPECT_EQ(own["cache_bytes"], 64 * bytes);
  EXPECT_EQ(asked["context"], 50);
  EXPECT_EQ(asked["cache_bytes"], 50 * bytes);
  const Outcome beyond = plan({"-c", "2000000"});
  EXPECT_EQ(beyond.err, "warning: --ctx-size 2000000 is beyond the model's length 64: text past it may be poor\n");
  EXPECT_NE(beyond.out.find("latent cache at 2000000 tokens: 1.43 GiB"), std::string::npos) << beyond.out;
  EXPECT_NE(plan({}).out.find(" MiB per 1024 tokens"), std::string::npos);
}

TEST(PlanCommand, AssumedKeysAreShown) {
  const TempFolder folder;
  std::ifstream original(family_model() + "/config.json", std::ios::binary);
  nlohmann::json config = nlohmann::json::parse(original);
  config.erase("num_experts_per_tok");
  const Outcome outcome = run_latte({"plan", "--config", folder.write("config.json", config.dump()), "--json"});
  EXPECT_EQ(outcome.json()["assumed"], nlohmann::json({"num_experts_per_tok 8"}));
  EXPECT_EQ(outcome.err, "warning: " + folder.file("config.json") +
                             " leaves out keys, and the values that family deepseek_v3 documents are taken: "
                             "num_experts_per_tok 8\n");
}

TEST(InspectCommand, JsonHoldsTheContract) {
  const nlohmann::json report = run_latte({"inspect", "-m", family_model(), "--json"}).json();
  for (const char* field :
       {"family", "tensors", "folded_layers", "layers", "mtp", "quantisation", "parameters", "context_length"}) {
    EXPECT_TRUE(report.contains(field)) << field;
  }
  EXPECT_TRUE(report["tensors"].contains("used") && report["tensors"].contains("dropped"));
  EXPECT_EQ(report["mtp"]["present"], true);
  EXPECT_TRUE(report["mtp"]["acceptance"].is_null());
}

TEST(TextCommands, IdsAndTextGoBothWays) {
  const std::optional<std::string> tiny = model_folder("latte-tiny");
  if (!tiny.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked and LATTE_TEST_DATA is not set";
  const std::string text = "Grüße, 漢字 and\ttabs\n";
  const nlohmann::json ids = run_latte({"tokenize", "-m", *tiny, "-p", text, "--json"}).json();
  EXPECT_NE(ids[0], 0) << "no BOS unless asked for";
  EXPECT_EQ(run_latte({"tokenize", "-m", *tiny, "-p", text, "--bos", "--json"}).json()[0], 0);
  std::string list;
  for (const auto& id : ids) list += (list.empty() ? "" : ",") + id.dump();
  EXPECT_EQ(run_latte({"tokenize", "-m", *tiny, "-p", text}).out, list + "\n");
  EXPECT_EQ(run_latte({"detokenize", "-m", *tiny, "--ids", list}).out, text);
  EXPECT_EQ(run_latte({"detokenize", "-m", *tiny, "--ids", "99999999"}).exit_code, 1);
  EXPECT_EQ(run_latte({"detokenize", "-m", *tiny, "--ids", "1,x"}).exit_code, 2);
  const TempFolder folder;
  EXPECT_EQ(run_latte({"detokenize", "-m", *tiny, "--ids", "@" + folder.write("ids", "1,x")}).exit_code, 1);
}

TEST(TextCommands, TemplateIsRenderedByteForByte) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  std::ifstream small(LATTE_SOURCE_DIR "/tests/data/tokenizer/small/tokenizer.json", std::ios::binary);
  folder.write("tokenizer.json", std::string((std::istreambuf_iterator<char>(small)), {}));
  folder.write("chat_template.jinja",
               "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<go>{% "
               "endif %}{{ extra }}");
  const std::string messages = folder.write("messages.json", R"([{"role": "user", "content": "hé"}])");
  const Outcome outcome =
      run_latte({"apply-template", "-m", folder.path(), "-f", messages, "--kwargs", R"({"extra": "!"})"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "<user>hé<go>!");

  const struct {
    const char* messages;
    const char* error;
  } refused[] = {
      {"[", ": broken JSON at byte"},
      {"{}", ": an object, expected a list of messages"},
      {R"([{"role": "user", "content": "x"}, 3])", ": message 1 is a number, expected an object"},
      {R"([{"content": "x"}])", ": message 0: role: arrived nothing, expected a text such as"},
      {R"([{"role": ["user"], "content": "x"}])", ": message 0: role: arrived an array"},
      {R"([{"role": "user"}])", ": message 0: content: arrived nothing, expected a text, or a list of parts"},
      {R"([{"role": "user", "content": {"a": 1}}])", ": message 0: content: arrived an object"},
      {R"([{"role": "user", "content": ["x"]}])", ": message 0: content part 0 is a string, expected an object"},
      {R"([{"role": "user", "content": [{"type": "text"}]}])", ": message 0: content part 0 has nothing as \"text\""},
      {R"([{"role": "user", "content": [{"type": "image"}]}])",
       ": message 0: content part 0 is of type \"image\", expected text"},
  };
  for (const auto& one : refused) {
    const std::string file = folder.write("refused.json", one.messages);
    const Outcome said = run_latte({"apply-template", "-m", folder.path(), "-f", file});
    EXPECT_EQ(said.exit_code, 1) << one.messages << said.out;
    EXPECT_TRUE(is_one_error_line(said.err)) << said.err;
    EXPECT_EQ(said.err.find("error: " + file + one.error), 0u) << said.err;
  }
  const std::string tools = folder.write("tools.json", "3");
  EXPECT_EQ(run_latte({"apply-template", "-m", folder.path(), "-f", messages, "--tools", tools}).err,
            "error: " + tools + ": a number, expected a list of tools\n");
  const std::string parts = folder.write(
      "parts.json", R"([{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]},
                        {"role": "assistant", "content": null, "tool_calls": []}])");
  EXPECT_EQ(run_latte({"apply-template", "-m", folder.path(), "-f", parts}).out, "<user>a b<assistant>None<go>");
  folder.write("chat_template.jinja",
               "{% for m in messages %}{% for part in m.content %}[{{ part.type }}:{{ part.text }}]{% endfor %}{% "
               "endfor %}");
  const std::string image = folder.write(
      "image.json", R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}])");
  EXPECT_EQ(run_latte({"apply-template", "-m", folder.path(), "-f", image}).out, "[text:a][image:]");
}

}  // namespace
}  // namespace latte::test
