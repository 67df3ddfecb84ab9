#include "transforms/sharding/sharding_memo.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"

namespace orrery::transforms {
namespace sharding_memo_test_cc {
namespace {

TEST(ShardingMemo, KnowsWhatWasAskedBefore) {
  ShardingMemo memo;
  const ir::Function step = ModelStep("mlp", "layers=2,dim=64", 8);
  const AutoShardOptions asked = {.memory_limit = Bytes(100), .in_flight = 2};
  EXPECT_EQ(memo.Find(asked), nullptr);
  memo.Add(asked, step, {.solved = 7});
  ASSERT_NE(memo.Find(asked), nullptr);
  EXPECT_EQ(ir::Print(*memo.Find(asked)), ir::Print(step));
  EXPECT_EQ(memo.solved(), 7);
  EXPECT_EQ(memo.found(), 2);
  AutoShardOptions other = asked;
  other.memory_limit = Bytes(99);
  EXPECT_EQ(memo.Find(other), nullptr);
  other = asked;
  other.in_flight = 1;
  EXPECT_EQ(memo.Find(other), nullptr);
  other = asked;
  other.context_attention = ContextAttention::kRing;
  EXPECT_EQ(memo.Find(other), nullptr);
}

TEST(ShardingMemo, KnowsThatNothingTakesLess) {
  ShardingMemo memo;
  memo.Add({.memory_limit = Bytes(100)}, ModelStep("mlp", "layers=2,dim=64", 8),
           {.least_memory = true});
  EXPECT_NE(memo.Find({.memory_limit = Bytes(1)}), nullptr);
  EXPECT_EQ(memo.Find({.memory_limit = Bytes(101)}), nullptr);
  EXPECT_EQ(memo.Find({}), nullptr);  // no limit
}

// What AutoShard says of limits that nothing keeps to holds for all that are lower.
TEST(AutoShard, OfTheLeastMemoryIsTheSameBelow) {
  const ir::Function step =
      ModelStep("gpt", "layers=4,hidden=64,heads=8,seq=64,vocab=64,flash=1", 8);
  const ir::Mesh mesh({{"dp", 1}, {"cp", 2}, {"hp", 2}});
  const PlainPrices prices(mesh, {.flops = 1e12, .bytes = 1e11, .link = 1e9, .latency = 1e-6});
  const auto shard = [&](int64_t limit, AutoShardReport& report) {
    const auto sharded =
        AutoShard(step, mesh, BatchedInputs(step), prices, {.memory_limit = Bytes(limit)}, &report);
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    return ir::Print(*sharded);
  };
  AutoShardReport unlimited, roomy, tight;
  shard(0, unlimited);
  shard(int64_t{1} << 40, roomy);
  EXPECT_FALSE(unlimited.least_memory);
  EXPECT_FALSE(roomy.least_memory);
  const std::string least = shard(1000, tight);
  EXPECT_TRUE(tight.least_memory);
  EXPECT_GT(tight.solved, unlimited.solved);
  for (const int64_t limit : {999, 100, 1}) {
    AutoShardReport report;
    EXPECT_EQ(shard(limit, report), least);
    EXPECT_TRUE(report.least_memory);
  }
}

}  // namespace
}  // namespace sharding_memo_test_cc
}  // namespace orrery::transforms
