#include <gtest/gtest.h>

#include "device/cpu/dispatch.h"
#include "device/open_backend.h"

namespace latte {
namespace {

TEST(Dispatch, ScalarIsEverywhere) {
  const Result<const KernelTable*> kernels = find_kernels("scalar");
  ASSERT_TRUE(kernels.ok());
  EXPECT_STREQ((*kernels)->isa, "scalar");
}

TEST(Dispatch, AutoIsTheWidestSupportedSet) {
  const Result<const KernelTable*> kernels = find_kernels("auto");
  ASSERT_TRUE(kernels.ok());
  EXPECT_TRUE(supported_isas().ends_with((*kernels)->isa));
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
