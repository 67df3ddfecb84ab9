#include "lowering/network/cluster_move_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/execution/execute.h"
#include "ir/tensor_parts.h"
#include "lowering/lower.h"
#include "simulator/engine/play.h"
#include "transforms/redistribution/emit.h"
#include "transforms/redistribution/search.h"

namespace orrery::lowering {
namespace cluster_move_set_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Sharding;
using redistribution::PackedLayout;
using redistribution::PlannedStep;
using redistribution::Problem;
using redistribution::RedistributionPlan;

AxisList Axes(std::initializer_list<AxisIndex> axes) {
  AxisList list;
  for (const AxisIndex axis : axes) list.push_back(axis);
  return list;
}

Sharding Split(std::vector<AxisList> split, const AxisList& partial = {}) {
  Sharding sharding;
  for (size_t d = 0; d < split.size(); ++d) sharding.Set(d, split.size(), split[d]);
  sharding.partial = partial;
  return sharding;
}

// Problems on one cluster.
class Planner {
 public:
  explicit Planner(absl::string_view cluster)
      : cluster_(cluster::ParseCluster(cluster).value()),
        cost_model_(cost_models::MakeCostModel("roofline").value()) {}

  ClusterMoveSet MoveSetOf(const Problem& problem) const {
    return ClusterMoveSet(problem, cluster_, *cost_model_);
  }
  RedistributionPlan Plan(const Problem& problem, int64_t limit = redistribution::kNoLimit) const {
    const auto plan = redistribution::CheapestPlan(MoveSetOf(problem), PackedLayout(problem.from),
                                                   PackedLayout(problem.to), limit);
    EXPECT_TRUE(plan.has_value());
    return plan.value_or(RedistributionPlan());
  }
  std::string Names(const Problem& problem, const RedistributionPlan& plan) const {
    const ClusterMoveSet move_set = MoveSetOf(problem);
    return absl::StrJoin(plan.steps, ", ", [&](std::string* out, const PlannedStep& step) {
      absl::StrAppend(out, move_set.NameOf(PackedLayout(), step.step));
    });
  }

  /// What a simulation of the ops of `plan` takes, on what lies as `problem` says.
  Duration Simulated(const Problem& problem, const RedistributionPlan& plan) const {
    ir::Builder builder("plan", problem.mesh);
    const ir::TensorType type{
        .dtype = ir::DType::kF32, .dims = problem.dims, .sharding = problem.from};
    const ir::ValueId x = builder.Data("x", type);
    builder.Return(redistribution::Emit(plan, x, "y", builder).value());
    transforms::PipelinedStep step;
    step.mesh = problem.mesh;
    step.stages.resize(1);
    step.stages[0].forward.function = std::move(builder).Finalize().value();
    const ir::Function& function = step.stages[0].forward.function;
    for (int32_t v = 0; v < function.value_limit(); ++v) {
      step.stages[0].forward.origins.emplace_back(v);
    }
    const simulator::Program program =
        Lower({.step = step,
               .schedule = *transforms::FindSchedule("gpipe").value(),
               .cluster = cluster_,
               .cost_model = *cost_model_})
            .value();
    return simulator::Play(program).value().makespan;
  }

 private:
  cluster::Cluster cluster_;
  std::unique_ptr<const cost_models::CostModel> cost_model_;
};

const ir::Mesh& TwoNodes() {
  static const auto& mesh = *new ir::Mesh({{"dp", 2}, {"hp", 8}});
  return mesh;
}

TEST(ClusterMoveSet, ReducesInTheOrderThatTheClusterWants) {
  const Planner planner("dgx-a100:2,ideal-collectives");
  const Problem problem{.mesh = TwoNodes(),
                        .dims = {4096, 4096},
                        .itemsize = 2,
                        .from = Split({}, Axes({0, 1})),
                        .to = Split({Axes({}), Axes({1})})};
  const RedistributionPlan plan = planner.Plan(problem);
  // Within the node first, so that an eighth goes over the network.
  EXPECT_EQ(planner.Names(problem, plan), "reduce-scatter hp to 1, all-reduce dp");
}

TEST(ClusterMoveSet, ReducesOverSeveralAxesAtOnce) {
  const Planner planner("dgx-a100:2");
  const Problem problem{.mesh = TwoNodes(),
                        .dims = {4096, 4096},
                        .itemsize = 2,
                        .from = Split({}, Axes({0, 1})),
                        .to = Split({})};
  EXPECT_EQ(planner.Names(problem, planner.Plan(problem)), "all-reduce dp.hp");
}

TEST(ClusterMoveSet, SwapsWithoutGatheringEverything) {
  const Planner planner("dgx-h100:1");
  const ir::Mesh mesh({{"a", 2}, {"b", 4}});
  const Problem problem{.mesh = mesh,
                        .dims = {1024, 1024},
                        .itemsize = 4,
                        .from = Split({Axes({0}), Axes({1})}),
                        .to = Split({Axes({1}), Axes({0})})};
  const RedistributionPlan plan = planner.Plan(problem);
  const int64_t local = 1024 * 1024 / 8;
  EXPECT_LE(plan.peak, 8 * local) << planner.Names(problem, plan);
  for (const PlannedStep& step : plan.steps) {
    EXPECT_NE(step.step.axes.axes().size(), 2U) << planner.Names(problem, plan);
  }
}

TEST(ClusterMoveSet, KeepsWithinMemory) {
  const Planner planner("dgx-h100:2");
  const Problem problem{.mesh = TwoNodes(),
                        .dims = {64, 64},
                        .itemsize = 4,
                        .from = Split({Axes({0, 1}), Axes({})}),
                        .to = Split({Axes({}), Axes({1, 0})})};
  const RedistributionPlan free = planner.Plan(problem);
  const RedistributionPlan tight = planner.Plan(problem, 2 * 64 * 64 / 16);
  EXPECT_LE(tight.peak, 2 * 64 * 64 / 16);
  EXPECT_GE(tight.cost, free.cost);
  EXPECT_FALSE(redistribution::CheapestPlan(planner.MoveSetOf(problem), PackedLayout(problem.from),
                                            PackedLayout(problem.to), 64 * 64 / 16 - 1)
                   .has_value());
}

TEST(ClusterMoveSet, ChargesForStragglersEachTime) {
  const auto cluster = cluster::ParseCluster("dgx-h100:2").value();
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const Problem problem{.mesh = TwoNodes(),
                        .dims = {4096, 4096},
                        .itemsize = 2,
                        .from = Split({}, Axes({0, 1})),
                        .to = Split({Axes({}), Axes({1})})};
  const auto plan = [&](Duration straggler) {
    const ClusterMoveSet move_set(problem, cluster, *cost_model, {.straggler = straggler});
    return redistribution::CheapestPlan(move_set, PackedLayout(problem.from),
                                        PackedLayout(problem.to))
        .value();
  };
  const RedistributionPlan none = plan({}), one_second = plan(Duration::FromSeconds(1));
  // A second each: then one collective is better than two.
  EXPECT_EQ(one_second.steps.size(), 2U);
  EXPECT_EQ(one_second.steps[0].step.kind, redistribution::MoveKind::kAllReduce);
  EXPECT_EQ(one_second.steps[1].step.kind, redistribution::MoveKind::kSlice);
  EXPECT_LE(none.cost, one_second.cost - 1e6);
}

// Random layouts of a tensor on a mesh of three axes: sums too.
Sharding AnySharding(const ir::Mesh& mesh, const ir::Dims& dims, bool partial,
                     std::mt19937& random) {
  std::vector<AxisList> split(dims.size());
  Sharding sharding;
  std::vector<AxisIndex> order(mesh.axes().size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<AxisIndex>(i);
  std::ranges::shuffle(order, random);
  AxisList sums;
  for (const AxisIndex axis : order) {
    const size_t role = random() % (dims.size() + (partial ? 2 : 1));
    if (role < dims.size()) split[role].push_back(axis);
    if (role == dims.size() + 1) sums.push_back(axis);
  }
  return Split(split, sums.Sorted());
}

class EveryCluster : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Clusters, EveryCluster,
                         testing::Values("dgx-a100:2", "torus:4x4@50GB/s,latency=1us",
                                         "dgx-h100:2,ideal-collectives"),
                         [](const auto& info) { return absl::StrCat("number", info.index); });

// Each plan, carried out by its ops, leaves the tensor as it was; each step takes in a simulation
// what it was planned with; and no plan is dearer than one of another search order.
TEST_P(EveryCluster, PlansAreCarriedOutAsPriced) {
  const Planner planner(GetParam());
  const ir::Mesh mesh({{"a", 2}, {"b", 4}, {"c", 2}});
  const ir::Dims dims = {16, 32};
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const Problem problem{.mesh = mesh,
                          .dims = dims,
                          .itemsize = 4,
                          .from = AnySharding(mesh, dims, /*partial=*/true, random),
                          .to = AnySharding(mesh, dims, /*partial=*/false, random)};
    const RedistributionPlan plan = planner.Plan(problem);
    SCOPED_TRACE(planner.Names(problem, plan));

    ir::Builder builder("plan", mesh);
    Sharding from = problem.from;
    const ir::TensorType type{.dtype = ir::DType::kF32, .dims = dims, .sharding = problem.from};
    ir::Tensor whole(ir::DType::kF32, dims);
    for (size_t e = 0; e < whole.floats().size(); ++e) whole.floats()[e] = static_cast<double>(e);
    const ir::ValueId x = builder.Data("x", type);
    const auto y = redistribution::Emit(plan, x, "y", builder);
    ASSERT_TRUE(y.ok()) << y.status();
    builder.Return(*y);
    const auto function = std::move(builder).Finalize();
    ASSERT_TRUE(function.ok()) << function.status();
    EXPECT_EQ(function->type(function->outputs()[0].value).sharding, problem.to);
    const auto execution = ir::Execute(*function, {{"x", whole}});
    ASSERT_TRUE(execution.ok()) << execution.status();
    EXPECT_EQ(execution->outputs[0], whole);
    EXPECT_EQ(execution->disagreement, 0);

    const double planned = plan.cost;
    EXPECT_NEAR(planner.Simulated(problem, plan).seconds() * 1e6, planned, 1e-3);
  }
}

}  // namespace
}  // namespace cluster_move_set_test_cc
}  // namespace orrery::lowering
