#include <gtest/gtest.h>

#include "device/cpu/dispatch.h"
#include "device/cpu/processor_model.h"
#include "device/open_backend.h"
#include "plan/choose_isa.h"

namespace latte {
namespace {

TEST(OpenBackend, TilesAloneMultiplyCachedRowsAsBf16AndOnlyWhereProductsDo) {
  for (const std::string_view isa : usable_instruction_sets()) {
    for (const DType compute : {DType::kF32, DType::kBf16}) {
      const auto cpu = open_backend({.device = "cpu", .isa = std::string(isa), .threads = 1, .compute = compute});
      ASSERT_TRUE(cpu.ok());
      const bool tiles = isa == "amx" && compute == DType::kBf16;
      EXPECT_EQ((*cpu)->info().bf16_rows, tiles ? (std::vector<DType>{DType::kBf16, DType::kQ8}) : std::vector<DType>{})
          << isa;
    }
  }
}

TEST(Dispatch, ScalarIsEverywhere) {
  const Result<const KernelTable*> kernels = find_kernels("scalar");
  ASSERT_TRUE(kernels.ok());
  EXPECT_STREQ((*kernels)->isa, "scalar");
}

TEST(Dispatch, AutoIsTheWidestSupportedSetUnlessATableKnowsBetter) {
  const Result<const KernelTable*> kernels = find_kernels("auto");
  ASSERT_TRUE(kernels.ok());
  const std::vector<std::string_view> usable = usable_instruction_sets();
  EXPECT_EQ((*kernels)->isa, choose_isa(usable, processor_model()));
  if (usable.back() != "avx512_bf16") {
    EXPECT_TRUE(supported_isas().ends_with((*kernels)->isa));
  }
}

TEST(Dispatch, TheProcessorTellsItsName) {
  const ProcessorModel model = processor_model();
  EXPECT_EQ(model.vendor.empty(), usable_instruction_sets().back() == "neon");
  EXPECT_EQ(model.family > 0, !model.vendor.empty());
}

TEST(Dispatch, EverySetIsGivenByNameOrRefusedWithWhatThereIs) {
  const std::string supported = ", " + supported_isas() + ",";
  for (const char* isa : {"scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}) {
    const Result<const KernelTable*> kernels = find_kernels(isa);
    EXPECT_EQ(kernels.ok(), supported.find(std::string(", ") + isa + ",") != std::string::npos) << isa;
    if (kernels.ok()) {
      EXPECT_STREQ((*kernels)->isa, isa);
    } else {
      EXPECT_EQ(kernels.error().kind, ErrorKind::kUnsupported);
      EXPECT_NE(kernels.error().message.find(supported_isas()), std::string::npos) << kernels.error().message;
    }
  }
}

TEST(Dispatch, AnUnknownNameIsAnError) {
  const Result<const KernelTable*> kernels = find_kernels("avx3");
  ASSERT_FALSE(kernels.ok());
  EXPECT_EQ(kernels.error().kind, ErrorKind::kInvalidInput);
  EXPECT_NE(kernels.error().message.find("\"avx3\""), std::string::npos);
}

TEST(OpenBackend, SaysWhatWasOpened) {
  const Result<std::unique_ptr<Backend>> cpu = open_backend({.device = "cpu", .isa = "scalar", .threads = 3});
  ASSERT_TRUE(cpu.ok());
  EXPECT_EQ((*cpu)->info().name, "cpu");
  EXPECT_EQ((*cpu)->info().isa, "scalar");
  EXPECT_EQ((*cpu)->info().threads, 3);
  const Result<std::unique_ptr<Backend>> reference = open_backend({.device = "reference"});
  ASSERT_TRUE(reference.ok());
  EXPECT_EQ((*reference)->info().name, "reference");
  const Result<std::unique_ptr<Backend>> chosen = open_backend({});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ((*chosen)->info().name, "cpu");
}

TEST(OpenBackend, RefusesWhatItCannotDo) {
  EXPECT_FALSE(open_backend({.device = "abacus"}).ok());
  EXPECT_FALSE(open_backend({.device = "cpu", .isa = "mmx"}).ok());
  EXPECT_FALSE(open_backend({.device = "cpu", .threads = -2}).ok());
  EXPECT_FALSE(open_backend({.device = "cpu", .compute = DType::kF16}).ok());
}

}  // namespace
}  // namespace latte
