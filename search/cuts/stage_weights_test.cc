#include "search/cuts/stage_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::search {
namespace stage_weights_test_cc {
namespace {

using ::testing::ElementsAre;
using transforms::StageContext;
using transforms::StagesBy;

TEST(WeighsStages, OnlyWhereNothingElseDecides) {
  EXPECT_TRUE(WeighsStages({.stages_by = StagesBy::kCost}));
  EXPECT_TRUE(WeighsStages({.stages_by = StagesBy::kOps}));
  EXPECT_FALSE(WeighsStages({.stages_by = StagesBy::kLayers}));
  EXPECT_FALSE(WeighsStages({.stages_by = StagesBy::kFlops}));
  EXPECT_FALSE(WeighsStages({.stages_by = StagesBy::kCost, .split_at = "h"}));
  EXPECT_FALSE(WeighsStages({.stages_by = StagesBy::kCost, .layers_per_stage = {1}}));
}

// Two nodes of eight: ranks of neighbouring stages are two apart, so that the fourth and the fifth
// are on different nodes.
TEST(StageSends, TakeThePathBetweenTheirRanks) {
  const cluster::Cluster cluster = cluster::ParseCluster("dgx-a100:2").value();
  const auto roofline = cost_models::MakeCostModel("roofline").value();
  const ir::Mesh mesh({{"pp", 8}, {"dp", 2}});
  const StageSends send(mesh, cluster, *roofline);
  const auto seconds = [&](int32_t from, int32_t to) {
    const auto path = cluster.topology.Path(cluster::DeviceId(from), cluster::DeviceId(to));
    return roofline->Transfer(Bytes(1 << 20), path).seconds();
  };
  EXPECT_EQ(send(Bytes(1 << 20), 0, 1), seconds(0, 2));
  EXPECT_EQ(send(Bytes(1 << 20), 3, 4), seconds(6, 8));
  EXPECT_GT(send(Bytes(1 << 20), 3, 4), send(Bytes(1 << 20), 0, 1));
}

transforms::ScheduledRanks Scheduled(const transforms::PipelineSchedule& schedule) {
  transforms::ScheduledRanks ranks;
  ranks.shape = schedule.ShapeOf(4, 8);
  ranks.orders = schedule.OrdersOf(ranks.shape);
  return ranks;
}

TEST(WeighMemory, CountsWhatTheScheduleHasInFlight) {
  const auto weighed = [](absl::string_view name) {
    const transforms::PipelineSchedule& schedule = *transforms::FindSchedule(name).value();
    StageContext context;
    WeighMemory(schedule, Scheduled(schedule), context);
    return context;
  };
  EXPECT_THAT(weighed("1f1b").in_flight, ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(weighed("gpipe").in_flight, ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(weighed("1f1b").weight_versions, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(weighed("pipedream").weight_versions, ElementsAre(4, 3, 2, 1));
}

}  // namespace
}  // namespace stage_weights_test_cc
}  // namespace orrery::search
