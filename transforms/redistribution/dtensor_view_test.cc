#include "transforms/redistribution/dtensor_view.h"

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/layout.h"
#include "transforms/redistribution/dtensor_bound.h"
#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/testing/dtensor_cost_by_axis.h"

// What DTensor's moves read of a layout, how good its bound is, and its errors word by word.

namespace orrery::transforms::redistribution {
namespace dtensor_view_test_cc {
namespace {

using ir::AxisIndex;
using ir::Reduction;
using testing::ElementsAre;

TEST(DtensorView, IsTheLayout) {
  std::mt19937 random(41);
  for (int i = 0; i < 200; ++i) {
    const Problem problem = RandomProblem(random, 5);
    const PackedLayout layout(problem.from);
    const DtensorView view = ReadDtensor(layout, problem.mesh, problem.dims);
    EXPECT_EQ(view.layout, &layout);
    EXPECT_EQ(view.elements, ir::LargestLocalElements(problem.from, problem.dims, problem.mesh));
    const ir::Dims local = ir::LargestLocalDims(problem.from, problem.dims, problem.mesh);
    for (size_t d = 0; d < problem.dims.size(); ++d) {
      const ir::AxisList axes = problem.from.at(d);
      EXPECT_EQ(view.size[d], local[d]);
      EXPECT_EQ(view.depth[d], axes.axes().size());
      ir::Sharding wider = problem.from;
      if (!axes.empty()) wider.Set(d, problem.dims.size(), axes.Without(axes.axes().back()));
      EXPECT_EQ(view.wider[d], ir::LargestLocalDims(wider, problem.dims, problem.mesh)[d]);
      EXPECT_EQ(view.With(static_cast<int>(d), view.wider[d]),
                ir::LargestLocalElements(wider, problem.dims, problem.mesh));
    }
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(problem.mesh.axes().size()); ++axis) {
      const AxisRole role = layout.role(axis);
      EXPECT_EQ(view.splitting >> axis & 1, role == AxisRole::kSplits);
      EXPECT_EQ(view.partial >> axis & 1, role == AxisRole::kPartial);
      EXPECT_EQ(view.replicating >> axis & 1, role == AxisRole::kReplicates);
      if (role != AxisRole::kSplits) continue;
      EXPECT_EQ(view.dim[axis], layout.dim(axis));
      EXPECT_EQ(view.position[axis], layout.position(axis));
    }
  }
}

TEST(DtensorView, HasTheReductionsOfItsPartialAxes) {
  const auto reductions = [](const Placements& placements) {
    const PackedLayout layout(ShardingOf(placements, 1));
    return ReadDtensor(layout, MeshOf({2, 2, 2}), {8}).reductions;
  };
  EXPECT_EQ(reductions({"R", "S0", "R"}), 0);
  EXPECT_EQ(reductions({"Psum", "S0", "Pavg"}), 0b00011);
  EXPECT_EQ(reductions({"R", "Pmin", "R"}), 0b10000);
}

TEST(DtensorView, SumsAndAveragesStandSideBySide) {
  EXPECT_EQ(Beside(Reduction::kSum), 0b00011);
  EXPECT_EQ(Beside(Reduction::kAverage), 0b00011);
  EXPECT_EQ(Beside(Reduction::kProduct), 0b00100);
  EXPECT_EQ(Beside(Reduction::kMax), 0b01000);
  EXPECT_EQ(Beside(Reduction::kMin), 0b10000);
  EXPECT_EQ(FullestPart(7, 3), 3);
  EXPECT_EQ(FullestPart(6, 3), 2);
  EXPECT_EQ(FullestPart(1, 3), 1);
  EXPECT_EQ(FullestPart(0, 3), 0);
}

// Of one axis the smaller graph is the whole one: the bound is the cost, or the search is for
// nothing.
TEST(DtensorBound, OfOneAxisIsTheCost) {
  const Placements all = {"R", "S0", "S1", "Psum", "Pmax"};
  for (const std::string& from : all) {
    for (const std::string& to : all) {
      const Problem problem = ProblemOf({4}, {64, 1024}, {from}, {to});
      const DtensorOptions options = {.partial_cost = 3, .memory_bandwidth = 100};
      const double bound = DtensorOf(problem, options)->LowerBound(PackedLayout(problem.from));
      const double cost = PlanOf(problem, options).cost;
      EXPECT_NEAR(bound, cost, 1e-9 * cost) << from << " to " << to;
      EXPECT_LE(bound, cost);
    }
  }
}

// With a dimension to spare for each axis, none is in the way of another.
TEST(DtensorBound, OfAxesThatDoNotMeetIsTheCost) {
  for (const Placements& to :
       {Placements{"S0", "R", "S1"}, {"R", "R", "R"}, {"S0", "S1", "R"}, {"R", "Psum", "S0"}}) {
    const Problem problem =
        ProblemOf({2, 4, 8}, {16, 16, 16, 16, 16}, {"Psum", "Psum", "Psum"}, to);
    const RedistributionPlan plan = PlanOf(problem);
    EXPECT_NEAR(DtensorOf(problem)->LowerBound(PackedLayout(problem.from)), plan.cost, 1e-6);
    EXPECT_LE(plan.expanded, 200);
  }
}

// An axis that is in its dimension, but outside of what it should be within, has to leave it.
TEST(DtensorBound, KnowsAxesThatAreStuck) {
  Problem problem = ProblemOf({2, 4}, {1024, 1024}, {"S0", "S0"}, {"S0", "S0"});
  Reorder(problem.from, {{"0", {1, 0}}}, 2);
  const auto move_set = DtensorOf(problem);
  EXPECT_GT(move_set->LowerBound(PackedLayout(problem.from)), 2 * kDtensorLaunch);
  EXPECT_EQ(move_set->LowerBound(PackedLayout(problem.to)), 0);
  EXPECT_EQ(move_set->LowerBound(PackedLayout(ShardingOf({"S0", "R"}, 2))), 0) << "a slice is free";
  EXPECT_GT(move_set->LowerBound(PackedLayout(ShardingOf({"R", "S0"}, 2))), kDtensorLaunch);
  EXPECT_EQ(DtensorOf(ProblemOf({}, {8}, {}, {}))->LowerBound(PackedLayout()), 0) << "without axes";
}

TEST(DtensorTopology, IsWithinHostsAsLongAsTheRanksFit) {
  const auto latencies = [](int64_t devices) {
    const DtensorTopology topology(MeshOf({2, 4, 2}), devices);
    return std::vector<double>{topology.ring(0).latency, topology.ring(1).latency,
                               topology.ring(2).latency};
  };
  EXPECT_THAT(latencies(1), ElementsAre(2.7, 2.7, 2.7));
  EXPECT_THAT(latencies(2), ElementsAre(2.7, 2.7, 0.6));
  EXPECT_THAT(latencies(7), ElementsAre(2.7, 2.7, 0.6));
  EXPECT_THAT(latencies(8), ElementsAre(2.7, 0.6, 0.6));
  EXPECT_THAT(latencies(15), ElementsAre(2.7, 0.6, 0.6));
  EXPECT_THAT(latencies(16), ElementsAre(0.6, 0.6, 0.6));
}

TEST(DtensorPrices, WithoutMergeAreThoseOfFlatRings) {
  const DtensorTopology topology(MeshOf({2, 8}), 8);
  const DtensorPrices flat(topology, 1 << 25, 2.5, false);
  EXPECT_EQ(flat.reduce(0b11, 0), DtensorAllReduce(topology.Flat(0b11), 1 << 25).total());
  EXPECT_EQ(flat.scatter(0b11, 0), DtensorAllGather(topology.Flat(0b11), 1 << 25).total());
  EXPECT_EQ(flat.bytes(0b01), 1 << 24);
  EXPECT_EQ(flat.bytes(0b11), 1 << 21);
  EXPECT_EQ(flat.scatter(0b10, 0b01), DtensorAllGather(topology.ring(1), 1 << 24).total());
  EXPECT_EQ(flat.ExchangeCost(0, 0b01).copy, 2.5);
  EXPECT_EQ(flat.exchange(0, 0b11), DtensorAllToAll(topology.ring(0), 1 << 21, 2.5).total());
  EXPECT_EQ(MaskOf(ir::AxisList(3)), 0b1000);
  EXPECT_EQ(MaskOf({}), 0);
}

std::string ErrorOf(const Problem& problem, const DtensorOptions& options = {}) {
  return std::string(MakeDtensor(problem, options).status().message());
}

TEST(DtensorErrors, OfTensors) {
  Problem problem = ProblemOf({2}, {int64_t{1} << 30, int64_t{1} << 28}, {"R"}, {"S0"});
  EXPECT_EQ(ErrorOf(problem), "") << "2^60 bytes";
  problem.itemsize = 8;
  EXPECT_EQ(ErrorOf(problem),
            "dtensor: a dimension of 268435456; wanted a tensor of at most 2^60 bytes");
  problem.dims[1] = 0;
  EXPECT_EQ(ErrorOf(problem), "");
  problem.dims[0] = -4;
  EXPECT_EQ(ErrorOf(problem), "dtensor: a dimension of -4; wanted a tensor of at most 2^60 bytes");
  EXPECT_EQ(ErrorOf(problem, {.devices_per_host = -1}),
            "dtensor: devices_per_host is -1; wanted at least 1");
}

TEST(DtensorErrors, OfLayouts) {
  Problem problem = ProblemOf({2, 2}, {8, 8}, {"S0", "R"}, {"R", "S1"});
  for (const int64_t block : {ir::kBalancedChunks, int64_t{4}}) {
    problem.to.Set(1, 2, ir::AxisList(1), block);
    EXPECT_EQ(ErrorOf(problem),
              "target: dimension 1 is in blocks; wanted nested chunks, all that DTensor has; try "
              "`cost` tensorcraft");
    EXPECT_EQ(DtensorCostByAxis(problem, {}).status(), MakeDtensor(problem, {}).status());
    EXPECT_EQ(DtensorGreedyPlan(problem, {}).status(), MakeDtensor(problem, {}).status());
  }
  EXPECT_EQ(ErrorOf(ProblemOf({2, 2}, {8}, {"R", "R"}, {"Pmin", "Pmax"})),
            "target: partial with different reductions; wanted one, or sum and average");
  EXPECT_EQ(ErrorOf(ProblemOf({2, 2}, {8}, {"Pproduct", "Pproduct"}, {"Pmin", "Pmin"})), "");
  problem = ProblemOf({2, 4}, {8, 8}, {"S0", "S0"}, {"S0", "S0"});
  Reorder(problem.to, {{"0", {1, 0}}}, 2);
  EXPECT_EQ(DtensorGreedyPlan(problem, {}).status().message(),
            "target: a dimension's axes are not in the order of the mesh, as DTensor's greedy "
            "planner wants them; try `planner` optimal, as DTensor does");
}

TEST(DtensorGreedyPlan, HasNoStepFromASplitToASum) {
  for (const auto& [from, to] : {std::pair{"S0", "Psum"}, {"Pmax", "Psum"}}) {
    const Problem problem = ProblemOf({2}, {8}, {from}, {to});
    const auto plan = DtensorGreedyPlan(problem, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->cost, std::numeric_limits<double>::infinity());
    EXPECT_EQ(plan->steps.back().step.kind, MoveKind::kMakePartial);
    EXPECT_EQ(*DtensorCostByAxis(problem, {}), plan->cost);
    EXPECT_LT(PlanOf(problem).cost, 20) << "by way of replicas";
  }
  // From replicas there is one, and it is free.
  EXPECT_EQ(*DtensorCostByAxis(ProblemOf({2}, {8}, {"R"}, {"Psum"}), {.partial_cost = 9}), 0);
  EXPECT_EQ(DtensorGreedyPlan(ProblemOf({2}, {8}, {"R"}, {"Psum"}), {.partial_cost = 9})->cost, 9);
}

TEST(ParseDtensorOptions, ErrorsWordByWord) {
  const auto error = [](absl::string_view text) {
    return std::string(ParseDtensorOptions(text).status().message());
  };
  EXPECT_EQ(error("devices_per_host"),
            "dtensor: devices_per_host is ''; wanted a whole number of at least 1, as in "
            "devices_per_host=8");
  EXPECT_EQ(error("memory_bandwidth=fast"),
            "dtensor: memory_bandwidth is 'fast'; wanted a number that is not negative, as in "
            "all_to_all_penalty=1");
  EXPECT_EQ(error("all_to_all_penalty=inf"),
            "dtensor: all_to_all_penalty is 'inf'; wanted a number that is not negative, as in "
            "all_to_all_penalty=1");
  EXPECT_EQ(error("replica_consistent=twice"),
            "dtensor: replica_consistent is 'twice'; wanted no value, or reduced-once");
  EXPECT_EQ(error("replica_consistent,replica_consistent=reduced-once"),
            "dtensor: replica_consistent is given twice; wanted each option once");
  EXPECT_EQ(error("hosts"),
            "dtensor: no option 'hosts'; wanted devices_per_host, all_to_all_penalty, merge, "
            "partial_cost, memory_bandwidth or replica_consistent");
  EXPECT_FALSE(ParseDtensorOptions("")->merge);
  EXPECT_EQ(ParseDtensorOptions("merge")->consistency, ReplicaConsistency::kAny);
}

}  // namespace
}  // namespace dtensor_view_test_cc
}  // namespace orrery::transforms::redistribution
