#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/verifier.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"

// Equal layers are solved as one: which changes nothing but the time that it takes.

namespace orrery::transforms {
namespace auto_shard_layers_test_cc {
namespace {

AutoShardReport Solve(const ir::Function& step, const ir::Mesh& mesh, const ShardingPrices& prices,
                      const AutoShardOptions& options) {
  AutoShardReport report;
  const auto sharded = AutoShard(step, mesh, BatchedInputs(step), prices, options, &report);
  EXPECT_TRUE(sharded.ok()) << sharded.status();
  if (!sharded.ok()) return report;
  EXPECT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
  return report;
}

struct Both {
  AutoShardReport composed, alone;
};

// With equal layers composed, and with each solved by itself.
Both SolveBoth(const ir::Function& step, const ir::Mesh& mesh, const ShardingPrices& prices,
               AutoShardOptions options = {}) {
  Both both{.composed = Solve(step, mesh, prices, options), .alone = {}};
  options.solve.repeats = {{.blocks = {}}};  // given, so none are sought
  both.alone = Solve(step, mesh, prices, options);
  EXPECT_EQ(both.alone.composed, 0);
  EXPECT_NEAR(both.composed.seconds, both.alone.seconds, 1e-9 * both.alone.seconds);
  EXPECT_EQ(both.composed.optimal, both.alone.optimal);
  return both;
}

// Products count; memory above all; links.
constexpr PlainPrices::Rates kRates[] = {
    {.flops = 1e9, .bytes = 1e15, .link = 1e10, .latency = 1e-6},
    {.flops = 1e12, .bytes = 1e9, .link = 1e11, .latency = 1e-9},
    {.flops = 1e12, .bytes = 1e11, .link = 1e10, .latency = 1e-8},
};

TEST(AutoShardLayers, OfGptCostWhatTheyCostOneByOne) {
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  for (int layers = 2; layers <= 12; ++layers) {
    SCOPED_TRACE(layers);
    const ir::Function step =
        ModelStep("gpt", absl::StrCat("layers=", layers, ",hidden=64,heads=4,seq=8,vocab=33"), 1);
    for (const PlainPrices::Rates& rates : kRates) {
      const Both both = SolveBoth(step, mesh, PlainPrices(mesh, rates));
      EXPECT_TRUE(both.composed.optimal);
      // A few layers at the ends are like no others.
      EXPECT_GE(both.composed.composed, layers < 8 ? 0 : layers - 5);
      EXPECT_LE(both.composed.composed, layers);
    }
  }
}

// All layers read the angles of rotary embeddings.
TEST(AutoShardLayers, OfLlamaShareTheirAngles) {
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  const ir::Function step =
      ModelStep("gpt",
                "layers=10,mlp=swiglu,norm=rms,tied_embeddings=0,hidden=64,heads="
                "4,kv_heads=2,seq=8,vocab=33,ffn=96",
                1);
  for (const PlainPrices::Rates& rates : kRates) {
    const Both both = SolveBoth(step, mesh, PlainPrices(mesh, rates));
    EXPECT_TRUE(both.composed.optimal);
    EXPECT_GE(both.composed.composed, 5);
  }
}

TEST(AutoShardLayers, KeepToALimitOfMemory) {
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  const ir::Function step = ModelStep("gpt", "layers=9,hidden=64,heads=4,seq=8,vocab=33", 1);
  constexpr PlainPrices::Rates kDear = {.flops = 1e15, .bytes = 1e15, .link = 1e6, .latency = 1e-3};
  const PlainPrices prices(mesh, kDear);
  const Both free = SolveBoth(step, mesh, prices);
  const Bytes limit(static_cast<int64_t>(0.7 * free.alone.memory));
  const Both tight = SolveBoth(step, mesh, prices, {.memory_limit = limit});
  EXPECT_LE(tight.composed.memory, static_cast<double>(limit.count()));
  EXPECT_GT(tight.composed.seconds, free.composed.seconds);
  EXPECT_GE(tight.composed.composed, 4);
}

// One axis after another; each has its own layers.
TEST(AutoShardLayers, AreFoundAlongEachAxis) {
  const ir::Mesh mesh({{"dp", 1}, {"cp", 2}, {"hp", 2}});
  const ir::Function step = ModelStep("gpt", "layers=10,hidden=64,heads=4,seq=8,vocab=33", 1);
  const Both both = SolveBoth(step, mesh, PlainPrices(mesh, kRates[2]));
  EXPECT_GE(both.composed.composed, 10);
}

}  // namespace
}  // namespace auto_shard_layers_test_cc
}  // namespace orrery::transforms
