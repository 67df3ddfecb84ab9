#include "transforms/stages/dealt_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/schedules/text.h"
#include "transforms/stages/dealt_rounds.h"

namespace orrery::transforms {
namespace dealt_orders_test_cc {
namespace {

using ::testing::ElementsAre;

const PipelineSchedule& Schedule(absl::string_view name) { return **FindSchedule(name); }

// "F0 F2 B0 B2", stage by stage and replica by replica.
std::string Text(const std::vector<ScheduleStep>& order) {
  std::string text;
  for (const ScheduleStep& step : order) {
    absl::StrAppend(&text, text.empty() ? "" : " ", step.kind == StepKind::kForward ? "F" : "B",
                    step.microbatch);
  }
  return text;
}

// Each step once, after what it needs, and slots of a replica ascend.
void Verify(const RankOrders& orders, const DealtMicrobatches& replica_of) {
  std::map<std::tuple<StepKind, int32_t, int32_t>, int32_t> slots;
  for (const auto& order : orders) {
    int32_t last = -1;
    for (const ScheduleStep& step : order) {
      EXPECT_GT(step.slot, last);
      last = step.slot;
      EXPECT_TRUE(
          slots.emplace(std::tuple(step.kind, step.stage, step.microbatch), step.slot).second);
    }
  }
  const auto stages = static_cast<int32_t>(replica_of.size());
  const auto microbatches = static_cast<int32_t>(replica_of.front().size());
  ASSERT_EQ(std::ssize(slots), 2 * stages * microbatches);
  for (int32_t s = 0; s < stages; ++s) {
    for (int32_t m = 0; m < microbatches; ++m) {
      const int32_t forward = slots.at({StepKind::kForward, s, m});
      const int32_t backward = slots.at({StepKind::kBackward, s, m});
      EXPECT_LT(forward, backward);
      if (s == 0) continue;
      EXPECT_LT(slots.at({StepKind::kForward, s - 1, m}), forward);
      EXPECT_LT(backward, slots.at({StepKind::kBackward, s - 1, m}));
    }
  }
}

TEST(DealtOrders, DealInShares) {
  EXPECT_THAT(DealInShares({2, 2}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(DealInShares({3, 1}), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(DealInShares({1, 3}), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(DealInShares({5}), ElementsAre(0, 0, 0, 0, 0));
}

TEST(DealtOrders, AreUnderWayAsPipeDreamHasThem) {
  EXPECT_THAT(UnderWay({1, 1, 1}), ElementsAre(3, 2, 1));
  EXPECT_THAT(UnderWay({3, 1}), ElementsAre(2, 1));  // ceil(4 / 3)
  EXPECT_THAT(UnderWay({1, 3}), ElementsAre(4, 1));
}

TEST(DealtOrders, OfStagesThatDealAlikeAreThoseOfTheSchedule) {
  const DealtMicrobatches replica_of = {{0, 1, 0, 1, 0, 1}, {0, 1, 0, 1, 0, 1}};
  const RankOrders orders = DealtOrders(Schedule("1f1b"), replica_of).value();
  ASSERT_EQ(orders.size(), 4u);
  EXPECT_EQ(Text(orders[0]), "F0 F2 B0 F4 B2 B4");
  EXPECT_EQ(Text(orders[1]), "F0 B0 F2 B2 F4 B4");
  EXPECT_EQ(Text(orders[2]), "F1 F3 B1 F5 B3 B5");
  EXPECT_EQ(Text(orders[3]), "F1 B1 F3 B3 F5 B5");
  Verify(orders, replica_of);
}

TEST(DealtOrders, OfUnequalReplicasAreOneForwardOneBackwardInTurn) {
  const DealtMicrobatches replica_of = {{0, 1, 2, 0, 1, 2}, {0, 0, 0, 0, 0, 0}};
  const RankOrders orders = DealtOrders(Schedule("1f1b"), replica_of).value();
  ASSERT_EQ(orders.size(), 4u);
  EXPECT_EQ(Text(orders[0]), "F0 F3 B0 B3");
  EXPECT_EQ(Text(orders[2]), "F2 F5 B2 B5");
  EXPECT_EQ(Text(orders[3]), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
  Verify(orders, replica_of);
  const RankOrders forwards_first = DealtOrders(Schedule("gpipe"), replica_of).value();
  EXPECT_EQ(Text(forwards_first[3]), "F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5");
  Verify(forwards_first, replica_of);
}

TEST(DealtOrders, NeverWaitInACircle) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const size_t stages = 1 + random() % 5, microbatches = 1 + random() % 16;
    DealtMicrobatches replica_of;
    for (size_t s = 0; s < stages; ++s) {
      const auto replicas = static_cast<size_t>(1 + random() % 5);
      replica_of.emplace_back();
      for (size_t m = 0; m < microbatches; ++m) {
        const bool in_turn = random() % 2 == 0;
        const size_t drawn = in_turn ? m : static_cast<size_t>(random());
        replica_of.back().push_back(static_cast<int32_t>(drawn % replicas));
      }
    }
    for (const char* name : {"1f1b", "gpipe"}) {
      Verify(DealtOrders(Schedule(name), replica_of).value(), replica_of);
    }
  }
}

// Those that never drain run rounds one after the other: no backward of one is in a slot of one
// before it.
TEST(DealtOrders, OfPipeDreamRunRoundByRound) {
  std::mt19937 random(8);
  for (int i = 0; i < 100; ++i) {
    std::vector<int64_t> replicas;
    for (size_t s = 0; s < 1 + random() % 5; ++s) replicas.push_back(1 + random() % 6);
    const DealtMicrobatches replica_of = DealInTurn(replicas, 60);
    const RankOrders orders = DealtOrders(Schedule("pipedream"), replica_of).value();
    Verify(orders, replica_of);
    std::map<std::pair<int32_t, int64_t>, int32_t> last;  // slots of rounds, by stage and round
    std::map<std::pair<int32_t, int64_t>, int32_t> first;
    for (const auto& order : orders) {
      for (const ScheduleStep& step : order) {
        if (step.kind == StepKind::kForward) continue;
        const std::pair round(step.stage,
                              step.microbatch / replicas[static_cast<size_t>(step.stage)]);
        last[round] = std::max(last[round], step.slot);
        first.try_emplace(round, step.slot);
        first[round] = std::min(first[round], step.slot);
      }
    }
    for (const auto& [round, slot] : first) {
      if (round.second == 0) continue;
      EXPECT_GT(slot, last.at({round.first, round.second - 1})) << "stage " << round.first;
    }
  }
}

TEST(DealtOrders, OtherSchedulesHaveNoneForUnequalReplicas) {
  const absl::Status status = DealtOrders(Schedule("zb-h1"), {{0, 1}, {0, 0}}).status();
  EXPECT_EQ(AsInfeasible(status)->reason, InfeasibleReason::kSchedule);
  EXPECT_EQ(AsInfeasible(status)->detail,
            "schedule zb-h1 has no orders for stages with their own numbers of replicas; wanted "
            "1f1b, gpipe or pipedream");
}

}  // namespace
}  // namespace dealt_orders_test_cc
}  // namespace orrery::transforms
