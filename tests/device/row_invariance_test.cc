// Decode-class rows do not see each other: the bits of a row are the same alone and in company, on any number of
// threads, wherever its pages lie and whatever else is in the batch.
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "support/attention_cases.h"
#include "support/operation_cases.h"
#include "support/test_backends.h"

namespace latte::test {
namespace {

/// An instruction set with the arithmetic it is told to use.
class RowInvariance : public ::testing::TestWithParam<CpuChoice> {
 protected:
  void SetUp() override {
    for (int threads = 1; threads <= 3; ++threads) {
      CpuChoice choice = GetParam();
      choice.threads = threads;
      Result<std::unique_ptr<Backend>> opened = open_cpu(choice);
      if (!opened.ok()) GTEST_SKIP() << opened.error().message;
      backends_.push_back(std::move(opened).value());
    }
  }
  Backend& on_one_thread() { return *backends_[0]; }

  std::vector<std::unique_ptr<Backend>> backends_;  ///< on 1, 2 and 3 threads
};

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

TEST_P(RowInvariance, ARowOfAnOperationIsTheSameAloneAndInCompany) {
  for (const OperationCase& one : operation_cases()) {
    if (!one.any_rows || one.rows != kMaxDecodeRows || one.name.starts_with("attend/")) continue;
    RowValues alone;
    for (int row = 0; row < kMaxDecodeRows; ++row) {
      alone.push_back(run_rows(on_one_thread(), one, std::vector<int>{row})[0]);
    }
    for (int count = 1; count <= kMaxDecodeRows; ++count) {
      std::vector<int> rows(static_cast<std::size_t>(count));
      std::iota(rows.begin(), rows.end(), kMaxDecodeRows - count);
      const RowValues together = run_rows(*backends_[count % backends_.size()], one, rows);
      for (int i = 0; i < count; ++i)
        ASSERT_TRUE(same_bits(together[i], alone[rows[i]])) << one.name << " rows " << count;
      // Other neighbours: row 3 last, behind strangers.
      for (int i = 0; i < count; ++i) rows[i] = i + 1 == count ? 3 : 1000 + 7 * i;
      const RowValues among_strangers = run_rows(*backends_[(count + 1) % backends_.size()], one, rows);
      ASSERT_TRUE(same_bits(among_strangers.back(), alone[3])) << one.name << " behind " << count - 1;
    }
  }
}

/// Queries first .. first + count - 1 of the spec's only sequence, in a cache that ends with them.
AttendSpec run_of(AttendSpec spec, int first, int count) {
  spec.sequences[0].first_query_pos += first;
  spec.sequences[0].queries = count;
  return spec;
}

AttendSpec absorbed(int heads, int r, int p, DType keys, int first_query_pos) {
  return {.rows_per_query = heads,
          .key_width = r + p,
          .value_width = r,
          .keys = keys,
          .sequences = {{.identity = heads, .first_query_pos = first_query_pos, .queries = kMaxDecodeRows}}};
}

std::vector<AttendSpec> attention_specs() {
  std::vector<AttendSpec> specs;
  for (const DType keys : {DType::kF32, DType::kBf16, DType::kF16, DType::kQ8}) {
    specs.push_back(absorbed(8, 128, 32, keys, 1000));
    specs.push_back(absorbed(3, 32, 16, keys, 0));
    specs.push_back(absorbed(20, 64, 0, keys, 50));
    specs.push_back({.lanes = 4,
                     .rows_per_query = 3,
                     .key_width = 40,
                     .value_width = 24,
                     .values_in_keys = false,
                     .keys = keys,
                     .sequences = {{.identity = 5, .first_query_pos = 120, .queries = kMaxDecodeRows}}});
  }
  return specs;
}

RowValues each_alone(Backend& backend, const AttendSpec& spec) {
  RowValues rows;
  for (int query = 0; query < kMaxDecodeRows; ++query) rows.push_back(attend(backend, run_of(spec, query, 1))[0]);
  return rows;
}

void expect_rows(const RowValues& rows, const RowValues& alone, int first, const char* what) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_TRUE(same_bits(rows[i], alone[first + i])) << what << ": row " << i << " of " << rows.size();
  }
}

TEST_P(RowInvariance, AQueryAttendsTheSameAloneAndInCompany) {
  for (const AttendSpec& spec : attention_specs()) {
    const RowValues alone = each_alone(on_one_thread(), spec);
    for (int count = 1; count <= kMaxDecodeRows; ++count) {
      const int first = (kMaxDecodeRows - count) / 2;
      expect_rows(attend(*backends_[count % backends_.size()], run_of(spec, first, count)), alone, first, "company");
    }
  }
}

TEST_P(RowInvariance, AttentionDoesNotDependOnThreads) {
  for (AttendSpec spec : attention_specs()) {
    for (const int leaf : {spec.leaf, 64}) {
      spec.leaf = leaf;
      const RowValues one = attend(on_one_thread(), spec);
      for (const auto& backend : backends_) expect_rows(attend(*backend, spec), one, 0, "threads");
    }
  }
}

TEST_P(RowInvariance, AttentionDoesNotDependOnThePlacementOfPages) {
  for (AttendSpec spec : attention_specs()) {
    const RowValues alone = each_alone(on_one_thread(), spec);
    for (const int page_rows : {64, 256, 0}) {
      spec.page_rows = page_rows;
      spec.placement += 1;
      expect_rows(attend(*backends_[1], spec), alone, 0, "pages");
    }
  }
}

TEST_P(RowInvariance, AttentionDoesNotDependOnOtherSequences) {
  for (AttendSpec spec : attention_specs()) {
    const RowValues alone = each_alone(on_one_thread(), spec);
    const SequenceSpec own = spec.sequences[0];
    spec.sequences = {
        {.identity = 31, .first_query_pos = 700, .queries = 2}, {.identity = 32, .queries = 0}, own, {.identity = 33}};
    for (const bool shared_slots : {true, false}) {
      spec.shared_slots = shared_slots;
      const RowValues batch = attend(*backends_[1], spec);
      expect_rows({batch.begin() + 2, batch.begin() + 2 + kMaxDecodeRows}, alone, 0, "batch");
    }
  }
}

TEST_P(RowInvariance, FoldingAGroupIntoOneSlotIsMergingItLater) {
  for (AttendSpec spec : attention_specs()) {
    spec.leaf = 64;
    spec.leaves_per_slot = kMergeFanIn;
    const RowValues folded = attend(on_one_thread(), spec);
    spec.leaves_per_slot = 1;
    for (const auto& backend : backends_) expect_rows(attend(*backend, spec), folded, 0, "apart");
  }
}

TEST_P(RowInvariance, ALeafBehindFoldedGroupsStaysApart) {
  for (AttendSpec spec : attention_specs()) {
    spec.leaf = 64;
    spec.leaves_per_slot = kMergeFanIn;
    for (const int groups : {2, 3}) {  // and one leaf
      spec.sequences[0].first_query_pos = groups * kMergeFanIn * spec.leaf + 8;
      const RowValues folded = attend(on_one_thread(), spec);
      for (const auto& backend : backends_) expect_rows(attend(*backend, spec), folded, 0, "on threads");
      AttendSpec apart = spec;
      apart.leaves_per_slot = 1;
      expect_rows(attend(on_one_thread(), apart), folded, 0, "apart");
    }
  }
}

TEST_P(RowInvariance, MaskedChunksAtTheEndChangeNothing) {
  for (AttendSpec spec : attention_specs()) {
    const RowValues alone = each_alone(on_one_thread(), spec);
    const int end = spec.sequences[0].length();
    for (const int more : {1, 64, 700}) {
      spec.sequences[0].cached_rows = end + more;
      expect_rows(attend(*backends_[1], spec), alone, 0, "masked tail");
    }
  }
}

std::vector<CpuChoice> arithmetics() {
  return {{"scalar"},
          {"neon"},
          {"avx2"},
          {"avx512"},
          {"avx512_vnni"},
          {"avx512_bf16"},
          {"avx512_bf16", 1, DType::kBf16},
          {"amx"},
          {"amx", 1, DType::kBf16}};
}

std::string arithmetic_name(const ::testing::TestParamInfo<CpuChoice>& one) {
  return one.param.isa + (one.param.compute == DType::kBf16 ? "_bf16_products" : "");
}

INSTANTIATE_TEST_SUITE_P(Cpu, RowInvariance, ::testing::ValuesIn(arithmetics()), arithmetic_name);

}  // namespace
}  // namespace latte::test
