#include <gtest/gtest.h>

#include "attention/attention_buffers.h"

namespace latte {
namespace {

std::size_t workspace_bytes(const MlaGeometry& geometry, int rows, int cached, MlaPath path) {
  StepPlan plan;
  plan_step(geometry, cached - rows, rows, Role::kPrompt, path, plan);
  BufferCarver carver(nullptr);
  AttentionBuffers::carve(carver, plan, 1536, DType::kF32);
  return carver.used();
}

// Expanding the whole cache of 128 heads at 32K takes 2.7 GB; the chunked forms stay within 250 MB.
TEST(AttentionWorkspace, AWideStepOverALongCacheIsBounded) {
  for (const MlaPath path : {MlaPath::kAuto, MlaPath::kAbsorbed, MlaPath::kMaterialised}) {
    EXPECT_LT(workspace_bytes(kDeepSeekV3, 512, 32768, path), 250'000'000U);
  }
}

TEST(AttentionWorkspace, DoesNotGrowWithTheCacheOnceChunksAreFull) {
  EXPECT_EQ(workspace_bytes(kDeepSeekV3, 512, 4096, MlaPath::kMaterialised),
            workspace_bytes(kDeepSeekV3, 512, 131072, MlaPath::kMaterialised));
  EXPECT_LE(workspace_bytes(kDeepSeekV3, 512, 131072, MlaPath::kAbsorbed),
            workspace_bytes(kDeepSeekV3, 512, 16384, MlaPath::kAbsorbed));
}

TEST(BufferCarver, MeasuresWhatItCuts) {
  BufferCarver measure(nullptr);
  measure.take(3, 5, DType::kF32), measure.take(1, 1, DType::kF64);
  std::vector<std::byte> memory(measure.used());
  BufferCarver carver(memory.data());
  const MatRef a = carver.take(3, 5, DType::kF32);
  const MatRef b = carver.take(1, 1, DType::kF64);
  EXPECT_EQ(a.data, memory.data());
  EXPECT_GE(static_cast<std::byte*>(b.data), static_cast<std::byte*>(a.data) + 60);
  EXPECT_LE(static_cast<std::byte*>(b.data) + 8, memory.data() + memory.size());
}

}  // namespace
}  // namespace latte
