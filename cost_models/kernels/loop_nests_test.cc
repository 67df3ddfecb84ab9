#include "cost_models/kernels/loop_nests.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "cost_models/kernels/loop_walk_test_util.h"

// What loops load and store, against the loops themselves, walked on numbers; and against the
// formulas of textbooks where tiles divide the sizes.

namespace orrery::cost_models {
namespace loop_nests_test_cc {
namespace {

LoopCounts Count(const char* name, const ir::ProductShape& shape, const LoopTiles& tiles) {
  const LoopNest* const nest = FindLoopNest(name);
  EXPECT_NE(nest, nullptr) << name;
  return nest->count(shape, tiles);
}

std::string Line(const LoopTraffic& traffic) {
  return absl::StrCat(traffic.a, " + ", traffic.b, " loads, ", traffic.stores, " stores");
}

// Walks the loops of a nest, which have to make the product, and says what they did.
void ExpectAsWalked(const char* name, const ir::ProductShape& s, const LoopTiles& t) {
  const std::string where =
      absl::StrCat(name, " ", s.m, " x ", s.n, " x ", s.k, ", ", t.block_m, " x ", t.block_n, " x ",
                   t.depth, ", ", t.thread_m, " x ", t.thread_n, " x ", t.thread_k);
  LoopWalk walk(s.m, s.n, s.k);
  const std::string nest = name;
  if (nest == "naive") WalkNaive(walk);
  if (nest == "register-rows") WalkRegisterRows(walk, t.thread_m, t.thread_n);
  if (nest == "register") WalkRegister(walk, t.thread_m, t.thread_n, t.thread_k);
  if (nest == "cache") WalkCache(walk, t.block_m, t.block_n, 0, 0);
  if (nest == "cache+register") {
    WalkCache(walk, t.block_m, t.block_n, t.thread_m, t.thread_n);
  }
  if (nest == "shared") SharedWalk(walk, t, {}).Run();
  ASSERT_TRUE(walk.IsRight()) << where;
  const LoopCounts counts = Count(name, s, t);
  EXPECT_EQ(Line(counts.memory), Line(walk.memory)) << where;
  EXPECT_EQ(Line(counts.near), Line(walk.near)) << where;
  if (FindLoopNest(name)->near == NearMemory::kCache) {
    EXPECT_EQ(counts.near_held, walk.near_held) << where;
  }
}

TEST(LoopNests, DoWhatTheLoopsDo) {
  std::mt19937_64 random(20);
  const auto draw = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1;
  };
  for (int round = 0; round < 40; ++round) {
    const ir::ProductShape shape = {.batch = 1, .m = draw(20), .n = draw(20), .k = draw(12)};
    LoopTiles tiles = {
        .depth = draw(6), .thread_m = draw(4), .thread_n = draw(4), .thread_k = draw(4)};
    tiles.block_m = tiles.thread_m * draw(4);
    tiles.block_n = tiles.thread_n * draw(4);
    for (const LoopNest& nest : AllLoopNests()) {
      ExpectAsWalked(std::string(nest.name).c_str(), shape, tiles);
    }
  }
}

TEST(LoopNests, TakeABatchOneAfterTheOther) {
  const LoopTiles tiles = {.block_m = 8, .block_n = 4, .depth = 2, .thread_m = 2, .thread_n = 2};
  for (const LoopNest& nest : AllLoopNests()) {
    const LoopCounts one = nest.count({.batch = 1, .m = 10, .n = 9, .k = 7}, tiles),
                     five = nest.count({.batch = 5, .m = 10, .n = 9, .k = 7}, tiles);
    EXPECT_EQ(five.memory.a, 5 * one.memory.a) << nest.name;
    EXPECT_EQ(five.memory.b, 5 * one.memory.b) << nest.name;
    EXPECT_EQ(five.memory.stores, 5 * one.memory.stores) << nest.name;
    EXPECT_EQ(five.near.loads(), 5 * one.near.loads()) << nest.name;
    EXPECT_EQ(five.blocks, 5 * one.blocks) << nest.name;
    EXPECT_EQ(five.near_held, one.near_held) << nest.name;
  }
}

// The formulas that lecture notes have, by hand for n = 1024: 2 n^3 = 2,147,483,648.
TEST(LoopNests, AreAsTextbooksHaveThem) {
  const ir::ProductShape shape = {.batch = 1, .m = 1024, .n = 1024, .k = 1024};
  constexpr int64_t kN2 = 1'048'576, kN3 = 1'073'741'824;
  const LoopCounts naive = Count("naive", shape, {});
  EXPECT_EQ(naive.memory.loads(), 2'147'483'648);
  EXPECT_EQ(naive.memory.stores, kN2);
  EXPECT_EQ(naive.blocks * naive.threads, kN2);

  const LoopTiles eight = {.thread_m = 8, .thread_n = 8};
  const LoopCounts rows = Count("register-rows", shape, eight);
  EXPECT_EQ(rows.memory.a, kN3 / 8);
  EXPECT_EQ(rows.memory.b, kN3);
  EXPECT_EQ(rows.sums + rows.held, 8 * 8 + 2 * 1024);

  LoopTiles deep = eight;
  deep.thread_k = 4;
  EXPECT_EQ(Count("register", shape, eight).memory.loads(), 268'435'456);  // 2 n^3 / 8
  const LoopCounts in_registers = Count("register", shape, deep);
  EXPECT_EQ(in_registers.memory.loads(), 268'435'456);
  EXPECT_EQ(in_registers.sums + in_registers.held, 8 * 4 + 8 * 4 + 8 * 8);

  const LoopTiles b = {.block_m = 16, .block_n = 8};
  const LoopCounts cached = Count("cache", shape, b);
  EXPECT_EQ(cached.memory.a, kN2);
  EXPECT_EQ(cached.memory.b, kN3 / 16);
  EXPECT_EQ(cached.near_held, 16 * 1024 + 8 * 1024);

  LoopTiles both = b;
  both.thread_m = 4;
  both.thread_n = 2;
  const LoopCounts combined = Count("cache+register", shape, both);
  EXPECT_EQ(combined.memory, cached.memory);
  EXPECT_EQ(combined.near.a, kN3 / 2);
  EXPECT_EQ(combined.near.b, kN3 / 4);

  const LoopTiles blocks = {
      .block_m = 128, .block_n = 128, .depth = 8, .thread_m = 8, .thread_n = 8};
  const LoopCounts shared = Count("shared", shape, blocks);
  EXPECT_EQ(shared.memory.loads(), 16'777'216);  // 2 n^3 / 128
  EXPECT_EQ(shared.near.loads(), 268'435'456);   // 2 n^3 / 8
  EXPECT_EQ(shared.near_held, 2 * 8 * 128);
  EXPECT_EQ(shared.threads, 256);
  EXPECT_EQ(shared.blocks, 64);
}

TEST(LoopNests, HaveNames) {
  EXPECT_EQ(FindLoopNest("shared")->near, NearMemory::kShared);
  EXPECT_EQ(FindLoopNest("share"), nullptr);
  for (const LoopNest& nest : AllLoopNests()) EXPECT_EQ(FindLoopNest(nest.name), &nest);
}

}  // namespace
}  // namespace loop_nests_test_cc
}  // namespace orrery::cost_models
