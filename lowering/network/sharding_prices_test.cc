#include "lowering/network/sharding_prices.h"

#include <gtest/gtest.h>

#include <memory>
#include <tuple>
#include <vector>

#include "ir/models/mlp.h"
#include "lowering/lower.h"
#include "lowering/network/cluster_move_set.h"
#include "simulator/engine/play.h"
#include "transforms/schedules/schedule.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/shard.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace sharding_prices_test_cc {
namespace {

class OnCluster : public testing::Test {
 protected:
  const cluster::Cluster cluster_ = cluster::ParseCluster("dgx-h100:2").value();
  const std::unique_ptr<const cost_models::CostModel> cost_model_ =
      cost_models::MakeCostModel("roofline").value();

  // Of one step on one stream, as it is simulated.
  double Simulated(const ir::Function& sharded) const {
    const std::vector<bool> batched(sharded.outputs().size(), true);
    const auto step = transforms::PartitionStages(sharded, sharded.mesh(), 1, batched);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) return 0;
    const auto program = Lower({.step = *step,
                                .schedule = *transforms::FindSchedule("gpipe").value(),
                                .cluster = cluster_,
                                .cost_model = *cost_model_,
                                .options = {.blocking = true}});
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? simulator::Play(*program).value().makespan.seconds() : 0;
  }
};

// What a search of shardings adds up is what a step takes on one stream.
TEST_F(OnCluster, PricesAreThoseOfTheSimulation) {
  for (const auto& [dp, hp, batch] :
       std::vector<std::tuple<int64_t, int64_t, int64_t>>{{1, 8, 512}, {1, 3, 512}, {2, 8, 4096}}) {
    ir::Function step = ir::Mlp({.layers = 4, .dim = 3072, .batch = batch}).value();
    ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
    const ir::Mesh mesh({{"dp", dp}, {"hp", hp}});
    const ClusterShardingPrices prices(mesh, cluster_, *cost_model_);
    const std::vector<bool> batched = transforms::BatchedInputs(step);
    const auto found = transforms::AutoShard(step, mesh, batched, prices);
    ASSERT_TRUE(found.ok()) << found.status();
    const auto pattern = transforms::Shard(step, mesh, batched);
    ASSERT_TRUE(pattern.ok()) << pattern.status();
    for (const ir::Function* sharded : {&*found, &*pattern}) {
      const double seconds = transforms::SerialSeconds(*sharded, prices);
      EXPECT_NEAR(seconds, Simulated(*sharded), 1e-9 * seconds) << ir::ToString(mesh);
    }
    EXPECT_LE(Simulated(*found), Simulated(*pattern));
  }
}

// A step of a redistribution costs what it costs where redistributions are planned alone, but for
// the kernels that put in order what lies otherwise: in a step, ops leave it as the next want it.
TEST_F(OnCluster, StepsCostWhatTheMoveSetSays) {
  const ir::Mesh mesh({{"dp", 2}, {"hp", 8}});
  const ClusterShardingPrices prices(mesh, cluster_, *cost_model_);
  redistribution::Problem problem{
      .mesh = mesh, .dims = {4096, 1024}, .itemsize = 2, .from = {}, .to = {}};
  problem.from.Set(0, 2, ir::AxisList(1));
  const ClusterMoveSet move_set(problem, cluster_, *cost_model_);
  for (const bool partial : {false, true}) {
    ir::Sharding from = problem.from;
    if (partial) {
      from = {};
      from.partial.push_back(1);
    }
    const redistribution::PackedLayout before(from);
    std::vector<redistribution::Move> moves;
    move_set.Expand(before, moves);
    int seen = 0;
    for (const redistribution::Move& move : moves) {
      if (move.step.axes != ir::AxisList(1)) continue;
      const bool gathers = move.step.kind == redistribution::MoveKind::kAllGather;
      const int64_t held = move_set.Elements(gathers ? move.step.after : before);
      const redistribution::StepCost cost = move_set.CostOf(before, move.step);
      EXPECT_NEAR(prices.StepSeconds(move.step.kind, move.step.axes, Bytes(2 * held)) * 1e6,
                  move.cost - cost.copy - cost.launches, 1e-9 * move.cost)
          << move_set.NameOf(before, move.step);
      ++seen;
    }
    EXPECT_GE(seen, 2);
  }
}

}  // namespace
}  // namespace sharding_prices_test_cc
}  // namespace orrery::lowering
