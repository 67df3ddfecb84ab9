#include "search/planners/expert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/settings/setting_test_util.h"
#include "search/spaces/space_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace expert_test_cc {
namespace {

PlanList Plans(const Lists& lists, int64_t devices, int64_t batch_size) {
  return Enumerate(SpaceOf(lists), {.devices = devices, .batch_size = batch_size}).value();
}

std::string First(const PlanList& plans, int64_t batch_size, int64_t devices_a_node) {
  return transforms::ToString(plans[ExpertOrder(plans, batch_size, devices_a_node).front()]);
}

TEST(ExpertOrder, BeginsWithDataParallelismAndASharedOutOptimizer) {
  EXPECT_EQ(First(Plans({{"zero", "0,1,3"}, {"micro-batches", "1,2,4"}}, 16, 64), 64, 8),
            "--dp 16 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --zero 1");
}

// Of as much model parallelism: tensor parallelism within a node, then pipelines; microbatches of a
// sample; what is odd last.
TEST(ExpertOrder, TakesTensorParallelismWithinANodeFirst) {
  const PlanList plans = Plans({{"dp", "2"}, {"micro-batches", "1,2,4,8"}}, 32, 16);
  EXPECT_EQ(First(plans, 16, 8), "--dp 2 --hp 8 --pp 2 --micro-batches 8 --schedule 1f1b");
  EXPECT_EQ(First(plans, 16, 16), "--dp 2 --hp 16 --pp 1 --micro-batches 1 --schedule 1f1b");
  const PlanList odd =
      Plans({{"hp", "1"}, {"micro-batches", "4"}, {"schedule", "1f1b,gpipe"}}, 4, 16);
  const std::vector<size_t> order = ExpertOrder(odd, 16, 8);
  for (size_t at = 0; at < order.size(); ++at) {
    EXPECT_EQ(odd[order[at]].schedule.name() == "gpipe", 2 * at >= order.size()) << at;
  }
}

class PlayedExpert : public testing::Test {
 protected:
  absl::StatusOr<std::optional<ExpertChoice>> Play(const PlanList& plans, size_t most) const {
    const SettingOf setting_of = [this](const ParallelPlan&) -> const Setting& { return setting_; };
    return PlayExpert(setting_of, plans, {}, most);
  }
  Setting setting_ = MlpSetting();
};

TEST_F(PlayedExpert, IsTheFirstThatFits) {
  const PlanList plans = Plans({{"micro-batches", "1,2,4"}, {"zero", "0,1"}}, 8, 48);
  const auto choice = Play(plans, 10).value();
  ASSERT_TRUE(choice.has_value());
  EXPECT_TRUE(choice->result().feasible());
  EXPECT_EQ(choice->result().plan, plans[choice->place]);
  const size_t first = ExpertOrder(plans, setting_.batch_size, 8).front();
  EXPECT_LE(choice->result().step_time, Evaluate(setting_, plans[first]).value().step_time);
  EXPECT_GE(choice->played, 1);
}

TEST_F(PlayedExpert, IsNoneWhereNothingFits) {
  setting_.lowering.memory_limit = Bytes(1000);
  const PlanList plans = Plans({{"micro-batches", "1,2,4"}}, 8, 48);
  EXPECT_FALSE(Play(plans, 10).value().has_value());
  EXPECT_FALSE(Play(PlanList(), 10).value().has_value());
}

}  // namespace
}  // namespace expert_test_cc
}  // namespace orrery::search
