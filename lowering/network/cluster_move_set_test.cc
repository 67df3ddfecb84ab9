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
#include "transforms/redistribution/synchronized.h"

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
                        .to = Split({Axes({1}), Axes({})})};
  const RedistributionPlan plan = planner.Plan(problem);
  // Within the node first, so that an eighth goes over the network.
  EXPECT_EQ(planner.Names(problem, plan), "reduce-scatter hp to 0, all-reduce dp");
  // Columns had to be packed, all of them: an eighth of that is rewritten in an all-to-all.
  Problem columns = problem;
  columns.to = Split({Axes({}), Axes({1})});
  EXPECT_EQ(planner.Names(columns, planner.Plan(columns)),
            "reduce-scatter hp to 0, all-to-all hp from 0 to 1, all-reduce dp");
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
  const ClusterMoveSet move_set(problem, cluster, *cost_model);
  const auto plan = [&](double microseconds) {
    return redistribution::CheapestPlan(redistribution::Synchronized(move_set, microseconds),
                                        PackedLayout(problem.from), PackedLayout(problem.to))
        .value();
  };
  const RedistributionPlan none = plan(0), one_second = plan(1e6);
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

// The steps of `plan` as ops on a value that lies as `problem` says.
ir::Function FunctionOf(const Problem& problem, const RedistributionPlan& plan) {
  ir::Builder builder("plan", problem.mesh);
  const ir::TensorType type{
      .dtype = ir::DType::kF32, .dims = problem.dims, .sharding = problem.from};
  const ir::ValueId x = builder.Data("x", type);
  const auto y = redistribution::Emit(plan, x, "y", builder);
  EXPECT_TRUE(y.ok()) << y.status();
  if (y.ok()) builder.Return(*y);
  auto function = std::move(builder).Finalize();
  EXPECT_TRUE(function.ok()) << function.status();
  return *std::move(function);
}

// Rank by rank, the tensor is what it was, and lies as it should.
void ExpectCarriedOut(const Problem& problem, const RedistributionPlan& plan) {
  const ir::Function function = FunctionOf(problem, plan);
  EXPECT_EQ(function.type(function.outputs()[0].value).sharding, problem.to);
  ir::Tensor whole(ir::DType::kF32, problem.dims);
  for (size_t e = 0; e < whole.floats().size(); ++e) whole.floats()[e] = static_cast<double>(e);
  const auto execution = ir::Execute(function, {{"x", whole}});
  ASSERT_TRUE(execution.ok()) << execution.status();
  EXPECT_EQ(execution->outputs[0], whole);
  EXPECT_EQ(execution->disagreement, 0);
}

// What the kernels before and behind collectives take, which no op of a plan stands for.
double CopiesOf(const Planner& planner, const Problem& problem, const RedistributionPlan& plan) {
  const ClusterMoveSet move_set = planner.MoveSetOf(problem);
  PackedLayout at = move_set.Normal(PackedLayout(problem.from));
  double copies = 0;
  for (const PlannedStep& step : plan.steps) {
    const redistribution::StepCost cost = move_set.CostOf(at, step.step);
    if (redistribution::Communicates(step.step.kind)) copies += cost.launches + cost.copy;
    at = step.step.after;
  }
  return copies;
}

// Each plan, carried out by its ops, leaves the tensor as it was; each step takes in a simulation
// what it was planned with, less copies; and no plan is dearer than one of another search order.
TEST_P(EveryCluster, PlansAreCarriedOutAsPriced) {
  const Planner planner(GetParam());
  const ir::Mesh mesh({{"a", 2}, {"b", 4}, {"c", 2}});
  const ir::Dims dims = {16, 32};
  std::mt19937 random(5);
  int copies = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem{.mesh = mesh,
                          .dims = dims,
                          .itemsize = 4,
                          .from = AnySharding(mesh, dims, /*partial=*/true, random),
                          .to = AnySharding(mesh, dims, /*partial=*/false, random)};
    const RedistributionPlan plan = planner.Plan(problem);
    SCOPED_TRACE(planner.Names(problem, plan));
    ExpectCarriedOut(problem, plan);
    const double copied = CopiesOf(planner, problem, plan);
    copies += copied > 0;
    EXPECT_NEAR(planner.Simulated(problem, plan).seconds() * 1e6, plan.cost - copied, 1e-3);
  }
  EXPECT_GT(copies, 0);
}

// Whatever divides or not, in blocks or chunks, and whatever target is a sum, an average or a
// maximum: replicas become summands, and blocks others, by ops that are simulated as priced.
TEST_P(EveryCluster, UnevenPartsBlocksAndSummandsAreCarriedOutAsPriced) {
  const Planner planner(GetParam());
  const ir::Mesh mesh({{"a", 2}, {"b", 3}, {"c", 2}});
  std::mt19937 random(6);
  int reblocks = 0, partials = 0, uneven = 0;
  for (int i = 0; i < 80; ++i) {
    const ir::Dims dims = {1 + static_cast<int64_t>(random() % 30), 7};
    Problem problem{.mesh = mesh,
                    .dims = dims,
                    .itemsize = 4,
                    .from = AnySharding(mesh, dims, /*partial=*/true, random),
                    .to = AnySharding(mesh, dims, /*partial=*/true, random)};
    const auto reduction = static_cast<ir::Reduction>(random() % 5);
    for (ir::Sharding* const sharding : {&problem.from, &problem.to}) {
      for (const AxisIndex axis : sharding->partial.axes()) sharding->reductions[axis] = reduction;
      if (!sharding->at(0).empty() && random() % 2 == 0) {
        sharding->Set(0, 2, sharding->at(0), static_cast<int64_t>(random() % 4));
      }
      for (size_t d = 0; d < 2; ++d) uneven += dims[d] % mesh.size(sharding->at(d)) != 0;
    }
    if (i % 4 == 0) {  // other blocks, of so many elements that all of them are not gathered
      problem.dims[0] += 20000;
      problem.from = problem.to = {};
      problem.from.Set(0, 2, Axes({0, 1}), 1 + static_cast<int64_t>(random() % 50));
      problem.to.Set(0, 2, i % 8 == 0 ? Axes({1, 0}) : Axes({0, 1}), i % 3);
    }
    const RedistributionPlan plan = planner.Plan(problem);
    SCOPED_TRACE(planner.Names(problem, plan));
    if (plan.steps.empty()) continue;  // samples that nobody moves are dealt evenly
    ExpectCarriedOut(problem, plan);
    bool rewrites = false;
    for (const PlannedStep& step : plan.steps) {
      reblocks += step.step.kind == redistribution::MoveKind::kReblock;
      rewrites = rewrites || step.step.kind == redistribution::MoveKind::kMakePartial;
    }
    partials += rewrites;
    if (rewrites) continue;  // a kernel, at the rate that the cost model has for it
    // Groups of three lie on a torus in several ways: all are priced as the slowest.
    const double planned = plan.cost - CopiesOf(planner, problem, plan);
    EXPECT_NEAR(planner.Simulated(problem, plan).seconds() * 1e6, planned, 1e-3 + 2e-3 * planned);
  }
  EXPECT_GT(reblocks, 10);
  EXPECT_GT(partials, 10);
  EXPECT_GT(uneven, 30);
}

// By hand: an all-gather of columns lands part by part, and is put in order by a kernel that reads
// and writes all of it; of rows it lands where it is wanted. What ranks add is read twice and
// written, at the rate of the memory; what a switch adds is not.
TEST(ClusterMoveSet, HasCopiesAndReductionsAtTheRateOfTheMemory) {
  const auto cost = [](absl::string_view cluster, const Problem& problem) {
    const Planner planner(cluster);
    const RedistributionPlan plan = planner.Plan(problem);
    EXPECT_EQ(plan.steps.size(), 1U);
    const redistribution::StepCost parts =
        planner.MoveSetOf(problem).CostOf(PackedLayout(problem.from), plan.steps[0].step);
    EXPECT_NEAR(parts.total(), plan.cost, 1e-9 * plan.cost);
    return parts;
  };
  const auto problem = [](const Sharding& from, const Sharding& to) {
    return Problem{
        .mesh = ir::Mesh({{"hp", 8}}), .dims = {4096, 4096}, .itemsize = 2, .from = from, .to = to};
  };
  const double bytes = 4096.0 * 4096 * 2, rate = 2000e9;  // of dgx-a100's memory
  const auto rows = cost("dgx-a100:1", problem(Split({Axes({0}), Axes({})}), Split({})));
  EXPECT_EQ(rows.copy, 0);
  EXPECT_EQ(rows.launches, 0);
  EXPECT_EQ(rows.reduction, 0);
  const auto columns = cost("dgx-a100:1", problem(Split({Axes({}), Axes({0})}), Split({})));
  EXPECT_NEAR(columns.copy, 2 * bytes / rate * 1e6, 1e-3);
  EXPECT_GT(columns.launches, 0);
  EXPECT_DOUBLE_EQ(columns.transfer, rows.transfer);
  const auto exchange =
      cost("dgx-a100:1", problem(Split({Axes({0}), Axes({})}), Split({Axes({}), Axes({0})})));
  EXPECT_NEAR(exchange.copy, 2 * bytes / 8 / rate * 1e6, 1e-3) << "packed, not unpacked";
  const auto scatter =
      cost("dgx-a100:1", problem(Split({}, Axes({0})), Split({Axes({0}), Axes({})})));
  EXPECT_NEAR(scatter.reduction, 3 * bytes * 7 / 8 / rate * 1e6, 1e-3);
  const auto whole = cost("dgx-a100:1", problem(Split({}, Axes({0})), Split({})));
  EXPECT_NEAR(whole.reduction, scatter.reduction, 1e-3);
  EXPECT_GT(whole.transfer, scatter.transfer);
  EXPECT_EQ(cost("dgx-h100:1", problem(Split({}, Axes({0})), Split({}))).reduction, 0) << "NVLS";
}

}  // namespace
}  // namespace cluster_move_set_test_cc
}  // namespace orrery::lowering
