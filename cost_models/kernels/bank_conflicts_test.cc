#include "cost_models/kernels/bank_conflicts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "cost_models/kernels/loop_walk_test_util.h"

// Cycles of shared memory against 32 banks that are simulated access by access, and against what is
// known of strides.

namespace orrery::cost_models {
namespace bank_conflicts_test_cc {
namespace {

// Lane i goes to i * stride words.
int CyclesOfStride(int64_t stride, int lanes = 32) {
  std::vector<int64_t> addresses;
  for (int i = 0; i < lanes; ++i) addresses.push_back(4 * stride * i);
  return BankCycles(addresses, 4);
}

// gcd(stride, 32) lanes meet in each bank: none with an odd stride, all with 32.
TEST(BankConflicts, FollowFromTheStride) {
  for (int64_t stride = 1; stride <= 96; ++stride) {
    EXPECT_EQ(CyclesOfStride(stride), std::gcd(stride, int64_t{32})) << stride;
  }
  EXPECT_EQ(CyclesOfStride(0), 1);  // all read one word
  EXPECT_EQ(CyclesOfStride(32), 32);
  EXPECT_EQ(CyclesOfStride(33), 1);
  EXPECT_EQ(CyclesOfStride(32, 8), 8);
}

// 16 bytes a thread: quarters of a warp, each all banks once where threads stand side by side.
TEST(BankConflicts, OfWideLoads) {
  std::vector<int64_t> side_by_side, apart;
  for (int64_t i = 0; i < 32; ++i) {
    side_by_side.push_back(16 * i);
    apart.push_back(32 * i);
  }
  EXPECT_EQ(BankCycles(side_by_side, 16), 4);
  EXPECT_EQ(BankCycles(apart, 16), 8);
  EXPECT_EQ(BankCycles(apart, 8), 8);  // halves, of which each wants 4 words of four pairs of banks
  std::vector<int64_t> halves;
  for (int64_t i = 0; i < 32; ++i) halves.push_back(2 * i);
  EXPECT_EQ(BankCycles(halves, 2), 1);  // two threads a word
}

void ExpectAsSimulated(const ir::ProductShape& s, const LoopTiles& t, const SharedLayout& layout) {
  LoopWalk walk(s.m, s.n, s.k);
  SharedWalk simulated(walk, t, layout);
  simulated.Run();
  ASSERT_TRUE(walk.IsRight());
  const BankUse use = SharedUseOf(t, layout).Sum();
  const int64_t pieces = s.m / t.block_m * (s.n / t.block_n) * (s.k / t.depth);
  EXPECT_EQ(use.cycles * pieces, simulated.cycles)
      << t.block_m << "x" << t.block_n << "x" << t.depth << " " << t.thread_m << "x" << t.thread_n
      << " pad " << layout.pad << " vector " << layout.vector << " of " << layout.element_bytes;
  EXPECT_EQ(use.instructions * pieces, simulated.instructions);
  EXPECT_GE(use.cycles, use.least);
}

TEST(BankConflicts, AreThoseOfTheKernel) {
  std::mt19937_64 random(20);
  const auto draw = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1;
  };
  for (int round = 0; round < 60; ++round) {
    const int64_t vector = int64_t{1} << (draw(3) - 1);
    LoopTiles t = {.depth = draw(5), .thread_m = vector * draw(3), .thread_n = vector * draw(3)};
    t.block_m = t.thread_m * draw(9);
    t.block_n = t.thread_n * draw(9);
    const SharedLayout layout = {.element_bytes = draw(2) == 1 ? 2 : 4,
                                 .pad = vector * (draw(3) - 1),
                                 .vector = vector,
                                 .a_along_k = draw(2) == 1,
                                 .b_along_k = draw(2) == 1};
    ExpectAsSimulated({.batch = 1, .m = t.block_m, .n = 2 * t.block_n, .k = 2 * t.depth}, t,
                      layout);
  }
}

// The usual kernel of 128 x 128 x 8 with 8 x 8 a thread: a warp's 16 threads of a row stand 8 words
// apart, 4 to a bank; whole loads of 4 words meet twice. What is transposed on its way to shared
// memory falls into one bank 32 / 8 times, unless rows are 4 elements longer.
TEST(BankConflicts, OfTheUsualKernel) {
  const LoopTiles tiles = {
      .block_m = 128, .block_n = 128, .depth = 8, .thread_m = 8, .thread_n = 8};
  const SharedUse plain = SharedUseOf(tiles, {.a_along_k = true, .b_along_k = false});
  EXPECT_DOUBLE_EQ(plain.a_loads.conflicts(), 1);
  EXPECT_DOUBLE_EQ(plain.b_loads.conflicts(), 4);
  EXPECT_DOUBLE_EQ(plain.a_stores.conflicts(), 8);
  EXPECT_DOUBLE_EQ(plain.b_stores.conflicts(), 1);
  const SharedUse wide =
      SharedUseOf(tiles, {.pad = 4, .vector = 4, .a_along_k = true, .b_along_k = false});
  EXPECT_DOUBLE_EQ(wide.b_loads.conflicts(), 2);
  EXPECT_DOUBLE_EQ(wide.a_stores.conflicts(), 1);
}

}  // namespace
}  // namespace bank_conflicts_test_cc
}  // namespace orrery::cost_models
