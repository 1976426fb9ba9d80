#include "plan/split_kv.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace latte {
namespace {

TEST(LengthClass, IsAPowerOfTwoFrom16384Up) {
  EXPECT_EQ(length_class(1), 16384);
  EXPECT_EQ(length_class(16384), 16384);
  EXPECT_EQ(length_class(16385), 32768);
  EXPECT_EQ(length_class(65536), 65536);
  EXPECT_EQ(length_class(65537), 131072);
}

TEST(LeafLength, GivesAtMost64LeavesOfWholeKeyBlocks) {
  for (const std::int64_t visible : {1, 255, 16383, 16384, 16385, 32768, 32769, 1 << 20}) {
    EXPECT_GE(leaf_length(visible), 256);
    EXPECT_EQ(leaf_length(visible) % kKeyBlock, 0);
    EXPECT_LE((visible + leaf_length(visible) - 1) / leaf_length(visible), 64);
  }
}

TEST(SplitByLengthClass, CutsWhereTheClassChanges) {
  std::vector<QueryRun> runs;
  split_by_length_class(16382, 6, runs);  // queries see 16382 .. 16387 keys
  EXPECT_EQ(runs, (std::vector<QueryRun>{{0, 3}, {3, 3}}));
  runs.clear();
  split_by_length_class(1, 16, runs);
  EXPECT_EQ(runs, (std::vector<QueryRun>{{0, 16}}));
  runs.clear();
  split_by_length_class(16384, 1, runs);
  EXPECT_EQ(runs, (std::vector<QueryRun>{{0, 1}}));
}

RC_GTEST_PROP(SplitByLengthClass, EveryRowOfARunHasTheRunsClass, ()) {
  const int first_visible = *rc::gen::inRange(1, 70000);
  const int queries = *rc::gen::inRange(1, 17);
  std::vector<QueryRun> runs;
  split_by_length_class(first_visible, queries, runs);
  int next = 0;
  for (const QueryRun& run : runs) {
    RC_ASSERT(run.first_query == next);
    RC_ASSERT(run.query_count > 0);
    const std::int64_t wanted = length_class(first_visible + run.first_query);
    for (int i = 0; i < run.query_count; ++i) RC_ASSERT(length_class(first_visible + run.first_query + i) == wanted);
    next += run.query_count;
  }
  RC_ASSERT(next == queries);
}

RC_GTEST_PROP(SplitKeys, CoversTheKeysInOrderWithFixedLeaves, ()) {
  const int visible = *rc::gen::inRange(1, 100000);
  const int leaf = leaf_length(visible);
  const int max_slots = *rc::gen::inRange(1, 160);
  std::vector<KvChunk> chunks;
  const int slots = split_keys(visible, leaf, 3, max_slots, chunks);
  int next = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    RC_ASSERT(chunks[i].sequence == 3);
    RC_ASSERT(chunks[i].begin == next);
    RC_ASSERT(chunks[i].begin ==
              static_cast<int>(i) * leaf);  // absolute multiples: a leaf's place depends on its index alone
    next = chunks[i].end;
  }
  RC_ASSERT(next == visible);
  const int leaves = static_cast<int>(chunks.size());
  RC_ASSERT(slots == (leaves <= max_slots ? leaves : (leaves + kMergeFanIn - 1) / kMergeFanIn));
}

TEST(SplitKeys, LeavesOfAGroupShareASlotWhenSlotsAreFew) {
  std::vector<KvChunk> chunks;
  EXPECT_EQ(split_keys(10 * 128, 128, 0, 4, chunks), 2);
  ASSERT_EQ(chunks.size(), 10U);
  EXPECT_EQ(chunks[7], (KvChunk{0, 7 * 128, 8 * 128, 0, false}));
  EXPECT_EQ(chunks[8], (KvChunk{0, 8 * 128, 9 * 128, 1, true}));
  EXPECT_EQ(chunks[0].opens_slot, true);
}

TEST(SplitKeys, EachLeafHasItsSlotWhileTheyFit) {
  std::vector<KvChunk> chunks;
  EXPECT_EQ(split_keys(300, 128, 0, 3, chunks), 3);
  EXPECT_EQ(chunks[2], (KvChunk{0, 256, 300, 2, true}));
}

}  // namespace
}  // namespace latte
