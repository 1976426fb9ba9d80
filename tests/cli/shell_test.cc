#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "run_program.h"
#include "support/chat_model.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

struct Said {
  int status = -1;
  std::string text;
};

/// What a shell command writes to both outputs.
Said shell(const std::string& command) {
  Said said;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return said;
  std::array<char, 4096> block{};
  for (std::size_t got = 0; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    said.text.append(block.data(), got);
  said.status = pclose(pipe);
  return said;
}

bool has_program(const std::string& name) { return shell("command -v " + name).status == 0; }

/// What bash offers after the words "latte ..."; the last one is being typed.
std::string bash_offers(const std::string& script, const std::string& words) {
  return shell("bash -c 'source " + script + "; COMP_WORDS=(latte " + words +
               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _latte; echo \"${COMPREPLY[@]}\"'")
      .text;
}

TEST(Completion, BashCompletesCommandsOptionsAndWords) {
  const TempFolder folder;
  const Outcome outcome = run_latte({"completion", "bash"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string script = folder.write("latte.bash", outcome.out);
  EXPECT_EQ(shell("bash -n " + script).text, "");
  EXPECT_EQ(bash_offers(script, "gen"), "generate\n");
  EXPECT_EQ(bash_offers(script, "chat --hist"), "--history\n");
  EXPECT_EQ(bash_offers(script, "chat --spec-type d"), "draft\n");
  EXPECT_EQ(bash_offers(script, "completion z"), "zsh\n");
  EXPECT_EQ(bash_offers(script, "generate -p --"), "\n") << "a text is nobody's to complete";
  EXPECT_EQ(bash_offers(script, "tokenize --hist"), "\n") << "an option of another command";
  EXPECT_EQ(bash_offers(script, "eval -f " + folder.file("latte.b")), script + "\n");
}

TEST(Completion, EveryShellsScriptIsRead) {
  const TempFolder folder;
  for (const char* name : {"zsh", "fish"}) {
    const Outcome outcome = run_latte({"completion", name});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const char* word : {"generate", "history", "spec-type"})
      EXPECT_NE(outcome.out.find(word), std::string::npos) << name << " " << word;
    const std::string script = folder.write(name, outcome.out);
    if (has_program(name)) {
      EXPECT_EQ(shell(std::string(name) + " -n " + script).text, "");
    }
  }
  EXPECT_EQ(run_latte({"completion", "tcsh"}).exit_code, 2);
  EXPECT_EQ(run_latte({"completion"}).exit_code, 2);
}

TEST(Man, PageIsWellFormedAndHoldsEveryOption) {
  const TempFolder folder;
  const Outcome outcome = run_latte({"man"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with(".TH LATTE 1"));
  for (const char* part : {".SS latte chat", "\\-\\-history", ".SH EXIT STATUS", "LATTE_CTX_SIZE"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
  const std::string page = folder.write("latte.1", outcome.out);
  if (has_program("groff")) {
    EXPECT_EQ(shell("groff -man -ww -Tutf8 " + page + " >/dev/null").text, "");
  }
  if (has_program("mandoc")) {
    EXPECT_EQ(shell("mandoc -Tlint -Wwarning " + page).text, "");
  }
}

TEST(DoctorCommand, JsonHoldsTheContract) {
  const nlohmann::json report = run_latte({"doctor", "--json", "-t", "1"}).json();
  for (const char* field : {"isa_detected", "isa_used", "threads"}) EXPECT_TRUE(report["cpu"].contains(field)) << field;
  EXPECT_EQ(report["cpu"]["threads"], 1);
  EXPECT_GT(report["memory"]["read_gbytes_per_second"].get<double>(), 0);
  EXPECT_GT(report["matmul"]["gflops"]["f32"].get<double>(), 0);
  EXPECT_GT(report["matmul"]["gflops"]["bf16"].get<double>(), 0);
  ASSERT_FALSE(report["rates"].empty());
  for (const nlohmann::json& rate : report["rates"]) {
    for (const char* field : {"isa", "type", "instruction"}) EXPECT_TRUE(rate[field].is_string()) << field;
    EXPECT_GT(rate["gops"].get<double>(), 0) << rate;
  }
  EXPECT_TRUE(report["onednn"]["installed"].is_boolean());
  EXPECT_TRUE(report["gpu"].is_array());
  EXPECT_TRUE(report["missing"].is_array());
}

TEST(EvalCommand, JsonHoldsTheContract) {
  const TempFolder folder;
  write_chat_model(folder.path(), family_model(), "");
  const std::string text = folder.write("text", "the end of it");
  const nlohmann::json report = run_latte({"eval", "-m", folder.path(), "-f", text, "-c", "8", "--json"}).json();
  for (const char* field : {"tokens", "nll", "bits_per_byte", "perplexity", "windows"})
    EXPECT_TRUE(report.contains(field)) << field;
  EXPECT_EQ(report["bytes"], 13);
  EXPECT_EQ(report["windows"].size(), 2u);
  EXPECT_EQ(run_latte({"eval", "-m", folder.path()}).exit_code, 2);
  EXPECT_EQ(run_latte({"eval", "-m", family_model(), "-f", text}).exit_code, 1) << "no tokenizer";
}

TEST(Usage, KnownButNotBuiltIsOneClearAnswer) {
  for (const auto& [option, value] : {std::pair{"--device", "cuda"}, {"--device", "mlx"}}) {
    const Outcome outcome = run_latte({"generate", "-m", family_model(), "--ids", "1,2", option, value});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
    EXPECT_NE(outcome.err.find("known, but not in this build"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace latte::test
