#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "run_program.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

void expect_misused(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
}

TEST(Usage, NoCommandIsMisuse) { expect_misused(run_latte({}), "--help"); }

TEST(Usage, UnknownCommandSuggestsTheNearest) {
  expect_misused(run_latte({"genrate"}), "(did you mean \"generate\"?), expected one");
}

TEST(Usage, HelpOfACommandHasTwoSpellings) {
  const Outcome words = run_latte({"help", "generate"});
  EXPECT_EQ(words.exit_code, 0);
  EXPECT_EQ(words.out, run_latte({"generate", "--help"}).out);
  EXPECT_EQ(run_latte({"help"}).out, run_latte({"--help"}).out);
  expect_misused(run_latte({"frobnicate"}), "expected one that latte --help lists");
}

TEST(Usage, UnknownOptionSuggestsTheNearest) {
  expect_misused(run_latte({"generate", "--pormpt", "x"}), "(did you mean \"--prompt\"?)");
}

TEST(Usage, ValuesAreChecked) {
  expect_misused(run_latte({"generate", "-n", "many"}), "whole number");
  expect_misused(run_latte({"generate", "--min-p", "1.5"}), "from 0 to 1");
  expect_misused(run_latte({"generate", "--spec-type", "magic"}), "none|mtp|draft|lookup|auto");
  expect_misused(run_latte({"generate", "-m"}), "expects a value");
  expect_misused(run_latte({"generate", "--raw=1", "x"}), "takes no value");
  expect_misused(run_latte({"generate", "stray"}), "unexpected argument");
  expect_misused(run_latte({"generate", "--seed", "-1"}), "a whole number from 0 to 18446744073709551615");
  for (const char* list : {"-r", "-l"}) expect_misused(run_latte({"generate", list, ""}), "expected some text");
}

TEST(Usage, SamplingThatMakesNoDistributionIsMisuse) {
  for (const char* value : {"0", "-0.5", "nan", "inf", "1.5"})
    expect_misused(run_latte({"generate", "--top-p", value}),
                   "--top-p \"" + std::string(value) + "\": expected a number above 0 and up to 1");
  for (const char* value : {"1e-9", "-1", "nan", "101"})
    expect_misused(run_latte({"generate", "--temp", value}),
                   "--temp \"" + std::string(value) + "\": expected 0 (greedy) or a number from 1e-6 to 100");
  for (const char* value : {"-0.1", "nan", "2"}) expect_misused(run_latte({"generate", "--min-p", value}), "--min-p");
  expect_misused(run_latte({"generate", "--top-k", "-1"}), "--top-k");
}

TEST(Usage, PenaltiesAndLogprobsOutOfRangeAreMisuse) {
  for (const char* value : {"0", "-1", "nan", "101"})
    expect_misused(run_latte({"generate", "--repeat-penalty", value}),
                   "--repeat-penalty \"" + std::string(value) + "\": expected a number from 0.01 to 100");
  expect_misused(run_latte({"generate", "--repeat-last-n", "-2"}), "--repeat-last-n \"-2\": expected a whole number");
  for (const char* option : {"--presence-penalty", "--frequency-penalty"})
    for (const char* value : {"-101", "inf", "x"})
      expect_misused(run_latte({"generate", option, value}), "expected a number from -100 to 100");
  for (const char* value : {"-1", "21", "1.5"})
    expect_misused(run_latte({"generate", "--logprobs", value}), "expected a whole number from 0 to 20");
}

TEST(Usage, LogitBiasThatIsNoneIsMisuse) {
  for (const char* value : {"5", "x+1", "5+", "5+x", "5+inf", "5=inf", "5--1", "5+-1", "5-nan", "-5+1", "5+1,",
                            "5+1,,6+1", "99999999999+1", "eos", "5 +1"})
    expect_misused(run_latte({"generate", "-m", family_model(), "--ids", "1", "-l", value}), "expected a token id");
}

TEST(Usage, TwoWordsOnTheCacheTypeAreMisuse) {
  expect_misused(run_latte({"generate", "-ctk", "bf16", "--kv-bits", "32"}), "--kv-bits 32");
  expect_misused(run_latte({"plan", "-m", family_model(), "-ctk", "bf16", "--kv-bits", "32"}), "--cache-type bf16");
}

TEST(Usage, PromptComesFromExactlyOnePlace) {
  expect_misused(run_latte({"generate", "-m", "x"}), "0 prompts");
  expect_misused(run_latte({"generate", "-m", "x", "-p", "a", "--ids", "1"}), "2 prompts");
  expect_misused(run_latte({"generate", "-p", "a"}), "no model");
}

TEST(Usage, UnknownOptionSaysWhoHasIt) {
  const struct {
    std::vector<std::string> words;
    const char* answer;
  } all[] = {
      {{"tokenize", "--steps", "1"}, "unknown option \"--steps\" of latte tokenize; latte logits has it"},
      {{"tokenize", "--temp", "1"}, "; latte generate and chat have it"},
      {{"eval", "-p", "x"}, "; latte generate and tokenize have it, as --prompt; here --file takes its place"},
      {{"detokenize", "-f", "x"}, "; here --ids takes its place"},
      {{"generate", "--draft", "4"}, "; it is --num-draft-tokens here"},
      {{"eval", "--draft", "4"}, "; latte generate, chat and bench have it, as --num-draft-tokens"},
      {{"generate", "--max-new-tokens=4"}, "; it is --predict here"},
      {{"generate", "-ngl", "99"}, "--device says where the whole model computes"},
      {{"generate", "-fa"}, "there is nothing to switch on"},
      {{"generate", "-cnv"}, "a conversation is latte chat"},
      {{"tune", "--retune"}, "latte tune --crossover measures anew each time"},
      {{"plan", "--zzzzzzzz"}, "latte plan --help lists those it has"},
  };
  for (const auto& one : all) expect_misused(run_latte(one.words), one.answer);
}

TEST(Usage, PlannedCommandSaysWhatThereIs) {
  for (const char* name : {"serve"}) {
    const Outcome outcome = run_latte({name, "-m", "x"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
    EXPECT_EQ(
        outcome.err.find("error: latte " + std::string(name) + " is not there yet, expected one of generate, chat"), 0u)
        << outcome.err;
  }
}

TEST(Usage, FileOfOneDashIsRefused) {
  expect_misused(run_latte({"logits", "-m", family_model(), "--ids", "1", "-o", "-"}),
                 "-o \"-\": expected the name of a file");
  expect_misused(run_latte({"logits", "-m", family_model(), "--ids", "1", "-o", "x", "--mtp", "-"}), "--mtp \"-\"");
  expect_misused(run_latte({"generate", "-m", family_model(), "--ids", "1", "--prompt-cache-file", "-"}),
                 "--prompt-cache-file \"-\"");
}

TEST(Usage, OptionWithoutEffectIsSaid) {
  const std::vector<std::string> run = {"generate", "-m", family_model(), "--ids", "1,2", "-n", "2", "-t", "1"};
  const struct {
    std::vector<std::string> more;
    const char* warning;
  } all[] = {
      {{"--spec-type", "none", "--num-draft-tokens", "3"},
       "warning: --num-draft-tokens is not used: --spec-type is none\n"},
      {{"--spec-type", "none", "-md", family_model()}, "warning: --draft-model is not used: --spec-type is none\n"},
      {{"--spec-type", "mtp", "-md", family_model()}, "warning: --draft-model is not used: --spec-type is mtp\n"},
      {{"-tb", "2"}, "warning: --threads 1 and --threads-batch 2: one pool serves all steps, it gets 2 threads\n"},
      {{"-t", "0", "-tb", "2"}, "warning: --threads-batch 2 is not used"},
  };
  for (const auto& one : all) {
    std::vector<std::string> words = run;
    words.insert(words.end(), one.more.begin(), one.more.end());
    const Outcome outcome = run_latte(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find(one.warning), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run_latte(run).err.find("warning"), std::string::npos);
}

TEST(Usage, LogFileGetsTheLinesOfStandardError) {
  const TempFolder folder;
  const std::string log = folder.write("log", "before\n");
  const auto content = [&] {
    std::ifstream file(log, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  const Outcome failed = run_latte({"plan", "-m", "/no/such/folder", "--log-file", log});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(content(), "before\n" + failed.err);
  const Outcome ran = run_latte({"generate", "-m", family_model(), "--ids", "1,2", "-n", "2", "--log-file", log});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(content(), "before\n" + failed.err + ran.err);
  const Outcome full =
      run_latte({"generate", "-m", family_model(), "--ids", "1,2", "-n", "2", "--log-file", "/dev/full"});
  EXPECT_EQ(full.exit_code, 0) << full.err;
  const std::string warning = "warning: --log-file /dev/full: No space left on device; nothing more goes to it\n";
  const std::size_t first = full.err.find(warning);
  EXPECT_NE(first, std::string::npos) << full.err;
  EXPECT_EQ(full.err.find("warning: --log-file", first + 1), std::string::npos) << full.err;
  const Outcome unwritable = run_latte({"doctor", "--log-file", "/no/such/folder/log"});
  EXPECT_EQ(unwritable.exit_code, 1);
  EXPECT_TRUE(is_one_error_line(unwritable.err)) << unwritable.err;
}

TEST(Usage, HelpListsWhatExists) {
  const Outcome help = run_latte({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* command : {"generate", "chat", "logits", "eval", "plan", "inspect", "quantize", "bench", "tune",
                              "doctor", "tokenize", "detokenize", "apply-template", "completion", "man"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
    EXPECT_EQ(run_latte({command, "--help"}).exit_code, 0) << command;
  }
  EXPECT_EQ(help.out.find("serve"), std::string::npos);
}

TEST(Usage, VersionIsOneLine) {
  const Outcome version = run_latte({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, "latte 0.1.0\n");
}

TEST(Usage, CommittedOptionsPageIsTheTable) {
  std::ifstream page(LATTE_SOURCE_DIR "/docs/options.md", std::ios::binary);
  const std::string committed((std::istreambuf_iterator<char>(page)), {});
  EXPECT_EQ(run_latte({"--help-markdown"}).out, committed) << "latte --help-markdown > docs/options.md";
}

TEST(Usage, FailedWorkIsOneLineAndOne) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", "-m", "/no/such/folder", "-p", "x"},
        {"inspect", "-m", LATTE_SOURCE_DIR "/tests"},
        {"plan", "--config", "/no/such/config.json"},
        {"tokenize", "-m", family_model(), "-p", "x"},
        {"generate", "-m", family_model(), "-p", "text without a tokenizer"},
        {"generate", "-m", family_model(), "--ids", "@/no/such/ids.json"},
        {"generate", "-m", family_model(), "--ids", "@/dev/zero"},
        {"generate", "-m", family_model(), "--ids", "1,2", "-ctk", "fp8"},
        {"generate", "-m", family_model(), "--ids", "1,2", "--spec-type", "draft"},
        {"generate", "-m", family_model(), "--ids", "1,2", "-l", "272+1"},
        {"generate", "-m", family_model(), "--ids", "1,2,999"}}) {
    const Outcome outcome = run_latte(words);
    EXPECT_EQ(outcome.exit_code, 1) << words[0];
    EXPECT_EQ(outcome.out, "") << words[0];
    EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
  }
}

}  // namespace
}  // namespace latte::test
