#include "decode/isa_choice.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "own_cache_home.h"

namespace latte::test {
namespace {

/// A machine made up, whose bf16 instruction is slower than f32.
class IsaChoice : public OwnCacheHome {
 protected:
  IsaMachine machine(double pairs) {
    return {{"scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16"}, [this, pairs](int) {
              ++measured_;
              return std::vector<DotRate>{{"avx512", DotType::kF32, "vfmadd zmm", 145},
                                          {"avx512_bf16", DotType::kBf16, "vdpbf16ps zmm", pairs}};
            }};
  }
  bool nothing_stored() const { return !std::filesystem::exists(folder_.path() + "/latte"); }

  int measured_ = 0;
};

const IsaRequest kAuto{.isa = "auto", .device = "auto", .threads = 2};

TEST_F(IsaChoice, IsMeasuredOnceAndThenRead) {
  int told = 0;
  const FoundIsa first = find_isa(machine(78), kAuto, IsaSource::kMeasure, [&](std::string_view) { ++told; });
  EXPECT_EQ(first.isa, "avx512_vnni");
  EXPECT_EQ(first.source, "measured");
  EXPECT_EQ(told, 1);
  for (const IsaSource source : {IsaSource::kMeasure, IsaSource::kStored}) {
    const FoundIsa again = find_isa(machine(300), kAuto, source);
    EXPECT_EQ(again.isa, "avx512_vnni") << "the stored choice, whatever a new measurement would say";
    EXPECT_EQ(again.source, "stored");
    EXPECT_EQ(again.file, first.file);
    EXPECT_TRUE(again.warnings.empty());
  }
  EXPECT_EQ(measured_, 1);
  EXPECT_EQ(find_isa(machine(300), kAuto, IsaSource::kAnew).isa, "avx512_bf16") << "latte tune";
  EXPECT_EQ(find_isa(machine(78), kAuto, IsaSource::kStored).isa, "avx512_bf16");
}

TEST_F(IsaChoice, NothingIsMeasuredUnasked) {
  for (const IsaSource source : {IsaSource::kTable, IsaSource::kStored}) {
    const FoundIsa found = find_isa(machine(78), kAuto, source);
    EXPECT_EQ(found.isa, "auto");
    EXPECT_EQ(found.source, "table");
    EXPECT_TRUE(found.warnings.empty());
  }
  EXPECT_EQ(measured_, 0);
  EXPECT_TRUE(nothing_stored());
}

TEST_F(IsaChoice, TheTableDecidesWithoutCalibrationThoughAChoiceIsStored) {
  ASSERT_EQ(find_isa(machine(78), kAuto, IsaSource::kMeasure).source, "measured");
  EXPECT_EQ(find_isa(machine(78), kAuto, IsaSource::kTable).isa, "auto");
  EXPECT_EQ(isa_source(Calibration::kOff, true), IsaSource::kTable);
  EXPECT_EQ(isa_source(Calibration::kStored, true), IsaSource::kStored);
  EXPECT_EQ(isa_source(Calibration::kMeasure, true), IsaSource::kMeasure);
  EXPECT_EQ(isa_source(Calibration::kMeasure, false), IsaSource::kStored) << "a small model";
}

TEST_F(IsaChoice, AnExplicitSetAlwaysWins) {
  ASSERT_EQ(find_isa(machine(78), kAuto, IsaSource::kMeasure).isa, "avx512_vnni");
  const FoundIsa found = find_isa(machine(78), {.isa = "avx2", .device = "cpu", .threads = 2}, IsaSource::kAnew);
  EXPECT_EQ(found.isa, "avx2");
  EXPECT_EQ(found.source, "asked");
  EXPECT_EQ(measured_, 1);
}

TEST_F(IsaChoice, WhereThereIsNoChoiceNothingIsMeasured) {
  IsaMachine narrow = machine(78);
  narrow.usable = {"scalar", "avx2"};
  EXPECT_EQ(find_isa(narrow, kAuto, IsaSource::kMeasure).isa, "auto");
  EXPECT_EQ(find_isa(machine(78), {.isa = "auto", .device = "reference", .threads = 0}, IsaSource::kMeasure).isa,
            "auto");
  EXPECT_EQ(measured_, 0);
  EXPECT_TRUE(nothing_stored());
}

TEST_F(IsaChoice, HasAPlaceOfItsOwnForEverythingItDependsOn) {
  const std::string file = find_isa(machine(78), kAuto, IsaSource::kMeasure).file;
  EXPECT_EQ(file.find(folder_.path() + "/latte/machine-"), 0u) << file;
  IsaMachine more = machine(78);
  more.usable.push_back("amx");
  EXPECT_NE(find_isa(more, kAuto, IsaSource::kMeasure).file, file) << "permission for tiles";
  EXPECT_NE(find_isa(machine(78), {.isa = "auto", .device = "auto", .threads = 3}, IsaSource::kMeasure).file, file);
  EXPECT_EQ(measured_, 3);
}

TEST_F(IsaChoice, ABrokenFileIsMeasuredAgainWithAWarning) {
  const std::string file = find_isa(machine(78), kAuto, IsaSource::kMeasure).file;
  std::ifstream stored(file);
  const std::string whole((std::istreambuf_iterator<char>(stored)), std::istreambuf_iterator<char>());
  std::string unusable = whole, foreign = whole;
  unusable.replace(unusable.find("\"avx512_vnni\""), 13, "\"avx1024\"");
  foreign.replace(foreign.find("threads"), 7, "tastes!");
  for (const std::string& text : {std::string("{"), std::string("[]"), unusable, foreign}) {
    std::ofstream(file) << text;
    const FoundIsa only_read = find_isa(machine(78), kAuto, IsaSource::kStored);
    EXPECT_EQ(only_read.isa, "auto") << text;
    ASSERT_EQ(only_read.warnings.size(), 1u) << text;
    EXPECT_NE(only_read.warnings[0].find("a table of processors"), std::string::npos) << only_read.warnings[0];
    const FoundIsa again = find_isa(machine(78), kAuto, IsaSource::kMeasure);
    EXPECT_EQ(again.source, "measured");
    ASSERT_EQ(again.warnings.size(), 1u);
    EXPECT_NE(again.warnings[0].find("it is measured again"), std::string::npos) << again.warnings[0];
  }
}

TEST_F(IsaChoice, WhatCannotBeStoredIsNotMeasured) {
  use(folder_.write("a-file", "") + "/below");
  const FoundIsa found = find_isa(machine(78), kAuto, IsaSource::kMeasure);
  EXPECT_EQ(found.isa, "auto");
  EXPECT_EQ(measured_, 0);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("a-file/below"), std::string::npos) << found.warnings[0];
}

TEST_F(IsaChoice, AMeasurementThatFailsLeavesTheTable) {
  IsaMachine broken = machine(78);
  broken.measure = [](int) -> Result<std::vector<DotRate>> { return Error{ErrorKind::kInvalidInput, "no threads"}; };
  const FoundIsa found = find_isa(broken, kAuto, IsaSource::kMeasure);
  EXPECT_EQ(found.isa, "auto");
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_NE(found.warnings[0].find("no threads"), std::string::npos);
}

TEST_F(IsaChoice, ThisMachineCanBeMeasured) {
  const IsaMachine machine = this_machine();
  EXPECT_EQ(machine.usable.front(), "scalar");
  const Result<std::vector<DotRate>> rates = machine.measure(1);
  ASSERT_TRUE(rates.ok());
  EXPECT_FALSE(rates->empty());
}

}  // namespace
}  // namespace latte::test
