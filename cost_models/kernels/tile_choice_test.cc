#include "cost_models/kernels/tile_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/device.h"
#include "cluster/multiprocessor.h"

// What a device has room for, by hand; and that the best tiles are the best of all.

namespace orrery::cost_models {
namespace tile_choice_test_cc {
namespace {

constexpr ir::ProductShape kCube = {.batch = 1, .m = 1024, .n = 1024, .k = 1024};
constexpr ProductTypes kF32 = {.in = ir::DType::kF32, .out = ir::DType::kF32, .along_k = true};

struct On {
  explicit On(absl::string_view name)
      : device(*cluster::FindDevice(name)), core(*cluster::FindMultiprocessor(device)) {}
  TileQuestion Asks(const ir::ProductShape& shape, ProductTypes types = kF32) const {
    return {.shape = shape, .types = types, .device = device, .core = core};
  }
  TiledNest With(const char* nest, const LoopTiles& tiles, const SharedLayout& layout = {}) const {
    return WithTiles(*FindLoopNest(nest), Asks(kCube), tiles, layout);
  }

  cluster::Device device;
  cluster::Multiprocessor core;
};

constexpr LoopTiles kUsual = {
    .block_m = 128, .block_n = 128, .depth = 8, .thread_m = 8, .thread_n = 8};

// 64 sums, 16 operands and 32 others are 112 registers; of 256 threads 28,672: two blocks of
// 65,536. 64 blocks on 108 cores.
TEST(TileChoice, CountsWhatABlockNeeds) {
  const TiledNest usual = On("a100-80gb").With("shared", kUsual);
  EXPECT_EQ(usual.registers, 112);
  EXPECT_EQ(usual.near_bytes, Bytes(2 * 8 * 128 * 4));
  EXPECT_EQ(usual.unfit, "");
  EXPECT_EQ(usual.blocks_a_core, 2);
  EXPECT_DOUBLE_EQ(usual.occupancy, 0.25);
  EXPECT_DOUBLE_EQ(usual.waves, 64.0 / 216);
  // Operands of 16 bits are two a register; rows in shared memory that are 2 longer take room.
  const On a100("a100-80gb");
  const TiledNest half =
      WithTiles(*FindLoopNest("shared"), a100.Asks(kCube, {}), kUsual, {.pad = 2});
  EXPECT_EQ(half.registers, 64 + 8 + 32);
  EXPECT_EQ(half.near_bytes, Bytes(8 * (130 + 130) * 2));
}

// One core makes a block of 128 x 128 x 1024 at 64 multiply-adds a cycle: 262,144 cycles of 1.41
// GHz. 2 n^3 / 128 loads and n^2 stores of 4 bytes at 2 TB/s are 35.7 us.
TEST(TileChoice, TakesTheLongestOfThree) {
  const On a100("a100-80gb");
  const TiledNest usual = a100.With("shared", kUsual);
  EXPECT_NEAR(usual.arithmetic_s, 262144 / 1.4106e9, 1e-8);
  EXPECT_NEAR(usual.memory_s, (16777216 + 1048576) * 4 / 2e12, 1e-12);
  // 128 pieces of k; conflicts of BankConflicts.OfTheUsualKernel.
  const SharedUse use = SharedUseOf(kUsual, {.a_along_k = true, .b_along_k = true});
  EXPECT_NEAR(usual.near_s, static_cast<double>(128 * use.Sum().cycles) / 1.4106e9, 1e-8);
  EXPECT_EQ(usual.seconds(), std::max({usual.arithmetic_s, usual.memory_s, usual.near_s}));
  EXPECT_EQ(a100.With("naive", {}).limit(), "memory");
  EXPECT_EQ(a100.With("naive", {}).memory_s, (2147483648.0 + 1048576) * 4 / 2e12);
}

TEST(TileChoice, SaysWhatHasNoRoom) {
  const On a100("a100-80gb"), turing("titan-rtx");
  LoopTiles wide = kUsual;
  wide.thread_m = wide.thread_n = 16;
  EXPECT_EQ(a100.With("shared", wide).unfit, "wants 320 registers a thread; at most 255");
  LoopTiles deep = kUsual;
  deep.depth = 64;
  EXPECT_EQ(turing.With("shared", deep).unfit, "");  // 64 KiB of 64
  EXPECT_EQ(turing.With("shared", deep, {.pad = 1}).unfit,
            "wants 66048 bytes of shared memory; at most 65536");
  EXPECT_EQ(a100.With("shared", deep, {.pad = 1}).unfit, "");
  LoopTiles small = kUsual;
  small.thread_m = small.thread_n = 2;
  EXPECT_EQ(a100.With("shared", small).unfit, "wants 4096 threads a block; at most 1024");
  LoopTiles many = {.block_m = 256, .block_n = 256, .depth = 4, .thread_m = 8, .thread_n = 8};
  EXPECT_EQ(a100.With("shared", many).unfit, "wants 114688 registers a block; at most 65536");
  EXPECT_EQ(a100.With("register-rows", {}).unfit, "wants 2081 registers a thread; at most 255");
  EXPECT_EQ(a100.With("cache", {.block_m = 32, .block_n = 16}).unfit, "");
  EXPECT_EQ(a100.With("cache", {.block_m = 32, .block_n = 32}).unfit,
            "wants 262144 bytes of cache; at most 196608");
}

// The first of the ranking is no slower than any tile of a user, and pruning loses none.
TEST(TileChoice, FindsTheBestOfAll) {
  for (const char* device : {"a100-80gb", "rtx-3090"}) {
    const On on(device);
    for (const ir::ProductShape& shape :
         {kCube, ir::ProductShape{.batch = 3, .m = 200, .n = 4096, .k = 64}}) {
      const TileQuestion question = on.Asks(shape);
      const LoopNest& nest = *FindLoopNest("shared");
      const std::vector<TiledNest> ranked = RankTiles(nest, question, {}, 3);
      ASSERT_EQ(ranked.size(), 3u);
      double best = std::numeric_limits<double>::infinity();
      for (int64_t block_m = 16; block_m <= 256; block_m *= 2) {
        for (int64_t block_n = 16; block_n <= 256; block_n *= 2) {
          for (int64_t thread_m = 2; thread_m <= 8; thread_m *= 2) {
            for (int64_t thread_n = 2; thread_n <= 8; thread_n *= 2) {
              const TiledNest one = WithTiles(nest, question,
                                              {.block_m = block_m,
                                               .block_n = block_n,
                                               .depth = 8,
                                               .thread_m = thread_m,
                                               .thread_n = thread_n},
                                              {.pad = 4, .vector = 2});
              if (one.unfit.empty()) best = std::min(best, one.seconds());
            }
          }
        }
      }
      EXPECT_LE(ranked[0].seconds(), best);
      EXPECT_LE(ranked[0].seconds(), ranked[1].seconds());
      EXPECT_LE(ranked[1].seconds(), ranked[2].seconds());
      EXPECT_NE(ranked[0].tiles, ranked[1].tiles);
      for (const TiledNest& tiled : ranked) {
        const TiledNest again = WithTiles(nest, question, tiled.tiles, tiled.layout);
        EXPECT_EQ(again.seconds(), tiled.seconds());
        EXPECT_EQ(tiled.unfit, "");
      }
    }
  }
}

// Of a cache the first operand's rows decide: as many as fit beside one row of the second.
TEST(TileChoice, FillsACacheWithTheFirstOperand) {
  const On a100("a100-80gb");
  const TiledNest cached = RankTiles(*FindLoopNest("cache"), a100.Asks(kCube), {}, 1)[0];
  EXPECT_FALSE(cached.timed());
  EXPECT_EQ(cached.limit(), "");
  EXPECT_EQ(cached.tiles.block_m, 32);  // 48 rows fill 192 KiB alone
  EXPECT_EQ(cached.counts.memory.loads(), 1048576 + 1073741824 / 32);
}

TEST(TileChoice, ObeysWishes) {
  const On a100("a100-80gb");
  const LoopNest& nest = *FindLoopNest("shared");
  const TileWishes wishes = {.block = {{64, 32}}, .thread = {{4, 2}}, .pad = 4};
  const std::vector<TiledNest> ranked = RankTiles(nest, a100.Asks(kCube), wishes, 9);
  EXPECT_EQ(ranked.size(), 5u);  // depths
  for (const TiledNest& tiled : ranked) {
    EXPECT_EQ(tiled.tiles.block_m, 64);
    EXPECT_EQ(tiled.tiles.thread_n, 2);
    EXPECT_EQ(tiled.layout.pad, 4);
  }
  EXPECT_TRUE(
      RankTiles(nest, a100.Asks(kCube), {.block = {{64, 32}}, .thread = {{3, 2}}}, 9).empty());
  const std::vector<TiledNest> none =
      RankTiles(nest, a100.Asks(kCube), {.block = {{1024, 1024}}}, 1);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_NE(none[0].unfit, "");
}

// How wishes contradict themselves: a message for each way.
TEST(TileChoice, SaysWhyThereIsNoTile) {
  const On a100("a100-80gb");
  const LoopNest& nest = *FindLoopNest("shared");
  const TileQuestion question = a100.Asks(kCube);
  const auto why = [&](const TileWishes& wishes) {
    EXPECT_TRUE(RankTiles(nest, question, wishes, 1).empty());
    return WhyNoTiles(nest, question, wishes);
  };
  using Block = TileWishes::Block;
  EXPECT_EQ(why({.block = Block{128, 128}, .thread = Block{3, 3}}),
            "tiles of threads do not divide those of blocks, 3x3 not 128x128; wanted sides that "
            "do, as --tile 128x128 --register-tile 8x8");
  EXPECT_EQ(why({.thread = Block{3, 3}}),
            "tiles of threads divide none of the blocks that are tried, 3x3 no sides of 16, 32, "
            "64, 128, 256; wanted sides that do, as --register-tile 8x8, or a block's, by --tile");
  EXPECT_EQ(why({.thread = Block{8, 2}, .vector = 4}),
            "loads of 4 elements do not divide tiles of threads, 8x2; wanted sides that they do, "
            "as --register-tile 8x8 --vector 4");
  EXPECT_EQ(why({.vector = 3}),
            "loads of 3 elements do not divide tiles of threads; wanted sides that they do, as "
            "--register-tile 8x8 --vector 4");
  EXPECT_EQ(why({.vector = 8}),
            "loads of 8 elements of f32 are of 32 bytes; wanted at most 16, as --vector 4");
  EXPECT_FALSE(RankTiles(nest, a100.Asks(kCube, {}), {.vector = 8}, 1).empty());  // of bf16
  EXPECT_EQ(why({.block = Block{128, 64}, .pad = 3, .vector = 4}),
            "rows of a tile, of 128 and 64 elements with 3 between them, are not multiples of "
            "loads of 4; wanted such as --tile 128x128 --pad 4 --vector 4");
}

}  // namespace
}  // namespace tile_choice_test_cc
}  // namespace orrery::cost_models
