#include "transforms/sharding/sharding_memo.h"

#include <gtest/gtest.h>

#include <memory>

#include "ir/text/text.h"
#include "transforms/sharding/model_step_test_util.h"

namespace orrery::transforms {
namespace sharding_memo_test_cc {
namespace {

TEST(ShardingMemo, KnowsWhatWasAskedBefore) {
  ShardingMemo memo;
  const ir::Function step = ModelStep("mlp", "layers=2,dim=64", 8);
  const AutoShardOptions asked = {.memory_limit = Bytes(100), .in_flight = 2};
  EXPECT_EQ(memo.Find(asked), nullptr);
  memo.Add(asked, {.sharded = std::make_shared<const ir::Function>(step), .report = {.solved = 7}});
  ASSERT_NE(memo.Find(asked), nullptr);
  EXPECT_EQ(ir::Print(*memo.Find(asked)->sharded), ir::Print(step));
  EXPECT_EQ(memo.solved(), 7);
  EXPECT_EQ(memo.found(), 2);
  AutoShardOptions other = asked;
  other.memory_limit = Bytes(99);
  EXPECT_EQ(memo.Find(other), nullptr);
  other = asked;
  other.gathers = true;
  EXPECT_EQ(memo.Find(other), nullptr);
  other = asked;
  other.in_flight = 1;
  EXPECT_EQ(memo.Find(other), nullptr);
  other = asked;
  other.context_attention = ContextAttention::kRing;
  EXPECT_EQ(memo.Find(other), nullptr);
  other = asked;
  other.memory_price = 1e-9;
  EXPECT_EQ(memo.Find(other), nullptr);
  other = asked;
  other.link_price = 2;
  EXPECT_EQ(memo.Find(other), nullptr);
  other = asked;
  other.pattern = SequenceParallel::kOn;
  EXPECT_EQ(memo.Find(other), nullptr);
}

TEST(SumKept, IsOfWhatAPlanHolds) {
  KeptMemory kept;
  kept.whole.Add(KeptAs::kState, 100);
  kept.whole.Add(KeptAs::kActivation, 10);
  kept.in_parts.Add(KeptAs::kState, 100);
  AutoShardReport report = {.kept = std::make_shared<const KeptMemory>(kept)};
  SumKept({.in_flight = 3, .held = {.states = 0.5}}, report);
  EXPECT_EQ(report.memory, 80);
  EXPECT_EQ(report.in_parts, 50);
}

}  // namespace
}  // namespace sharding_memo_test_cc
}  // namespace orrery::transforms
