// Cached rows of every type on every instruction set: the floats that a kernel makes of them, and attention over shapes
// that nobody chose.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include "device/cpu/dispatch.h"
#include "device/reference/reference_backend.h"
#include "support/attention_cases.h"
#include "support/random_rows.h"
#include "support/test_backends.h"
#include "support/tolerance.h"
#include "tensor/half.h"

namespace latte::test {
namespace {

class CachedRows : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Result<const KernelTable*> kernels = find_kernels(GetParam());
    if (!kernels.ok()) GTEST_SKIP() << kernels.error().message;
    kernels_ = *kernels;
  }

  /// Rows `first`, ... of one page as the kernels read them.
  std::vector<float> widened(const std::vector<std::byte>& page, LaneRows rows, int first, int count, int width) const {
    void* const data = const_cast<std::byte*>(page.data());
    rows.pages = &data;
    std::vector<float> floats(static_cast<std::size_t>(count) * static_cast<std::size_t>(width) + 1, -7.0f);
    kernels_->widen_rows(rows, first, count, width, floats.data());
    EXPECT_EQ(floats.back(), -7.0f) << "nothing is written past the last column";
    floats.pop_back();
    return floats;
  }

  const KernelTable* kernels_ = nullptr;
};

void expect_bits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i])) << i;
}

TEST_P(CachedRows, EveryHalfBecomesItsFloat) {
  constexpr int kWidth = 37;  // no vector fits it
  std::vector<std::byte> page(65536 * 2 + 2 * kWidth);
  std::vector<float> expected;
  for (int bits = 0; bits < 65536; ++bits) {
    const f16 value{static_cast<std::uint16_t>(bits)};
    std::memcpy(page.data() + 2 * bits, &value, 2);
    expected.push_back(to_float(value));
  }
  const int rows = 65536 / kWidth;
  expected.resize(static_cast<std::size_t>(rows) * kWidth);
  const std::vector<float> found =
      widened(page, {.page_rows = 1 << 20, .row_stride = kWidth, .type = RowType::kF16}, 0, rows, kWidth);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(found[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i])) << i;
    }
  }
}

TEST_P(CachedRows, EveryPieceBecomesTheFloatsItStandsFor) {
  std::mt19937 bits(11);
  for (const CodedPiece piece : {CodedPiece{512, 64}, CodedPiece{200, 32}, CodedPiece{77, 6}, CodedPiece{64, 0},
                                 CodedPiece{1, 2}, CodedPiece{65, 1}, CodedPiece{128, 63}}) {
    constexpr int kRows = 5;
    const auto piece_bytes = static_cast<std::size_t>(piece.bytes());
    std::vector<std::byte> page(kRows * piece_bytes);
    std::vector<std::vector<float>> rows;
    for (std::size_t t = 0; t < kRows; ++t) {
      std::vector<float> columns(static_cast<std::size_t>(piece.width()));
      for (float& value : columns) value = static_cast<float>(bits()) * 0x1p-31f - 1;
      write_piece(columns, piece, std::span(page).subspan(t * piece_bytes, piece_bytes));
      read_piece(std::span(page).subspan(t * piece_bytes, piece_bytes), piece, columns);
      rows.push_back(columns);
    }
    const LaneRows lane{.page_rows = 8,
                        .row_stride = piece.bytes(),
                        .type = RowType::kQ8,
                        .coded = piece.coded,
                        .exact_at = piece.exact_at(),
                        .codes_at = piece.codes_at()};
    for (int width = 1; width <= piece.width(); width += width < 70 ? 1 : 23) {
      std::vector<float> expected;
      for (int t = 1; t < kRows; ++t) expected.insert(expected.end(), rows[t].begin(), rows[t].begin() + width);
      expect_bits(widened(page, lane, 1, kRows - 1, width), expected);
    }
  }
}

TEST_P(CachedRows, AttentionOverRandomShapesAgreesWithTheReference) {
  const std::unique_ptr<Backend> reference = make_reference_backend();
  std::mt19937 bits(5);
  const auto any = [&](int least, int most) { return least + static_cast<int>(bits() % (most - least + 1)); };
  for (int round = 0; round < 40; ++round) {
    const DType keys = std::array{DType::kF16, DType::kQ8, DType::kQ8, DType::kBf16}[round % 4];
    const CpuChoice choice{GetParam(), 1 + round % 2, GetParam() == "amx" ? DType::kBf16 : DType::kF32};
    const auto backend = open_cpu(choice);
    ASSERT_TRUE(backend.ok());
    const int r = any(1, 300);
    AttendSpec spec{.rows_per_query = any(1, 40),
                    .key_width = r + any(0, 64),
                    .value_width = r,
                    .keys = keys,
                    .page_rows = 1 << any(4, 8),
                    .placement = bits(),
                    .leaf = any(1, 200),
                    .leaves_per_slot = any(1, 8)};
    for (int i = any(1, 3); i > 0; --i) {
      const int before = any(0, 2) == 0 ? any(0, 1) : any(0, 400);
      spec.sequences.push_back({.identity = i, .first_query_pos = before, .queries = any(0, 2) * any(0, 9)});
    }
    const RowValues found = attend(**backend, spec), expected = attend(*reference, spec);
    EXPECT_LE(max_relative_difference(found, expected), attention_tolerance(keys, choice.rounding()))
        << "round " << round << ": " << type_word(keys) << ", key width " << spec.key_width << ", values " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, CachedRows,
                         ::testing::Values("scalar", "neon", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"),
                         [](const ::testing::TestParamInfo<std::string>& one) { return one.param; });

}  // namespace
}  // namespace latte::test
