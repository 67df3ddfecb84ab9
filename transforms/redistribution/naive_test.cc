#include "transforms/redistribution/naive.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/tensorcraft.h"
#include "transforms/redistribution/toy_test_util.h"

namespace orrery::transforms::redistribution {
namespace naive_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ToyMoveSet Toy(std::vector<ToyEdge> edges) {
  ToyMoveSet move_set;
  move_set.edges = std::move(edges);
  return move_set;
}

std::vector<PackedLayout> Nodes(const std::vector<int>& nodes) {
  std::vector<PackedLayout> layouts;
  for (const int node : nodes) layouts.push_back(Node(node));
  return layouts;
}

TEST(Follow, TakesTheCheapestMoveToEachLayout) {
  ToyMoveSet move_set =
      Toy({{0, 1, 3, 9}, {0, 1, 2, 8}, {0, 1, 2, 1}, {1, 2, 0, 7}, {1, 0, 1, 5}, {0, 2, 0, 1}});
  move_set.elements = {{0, 4}};
  const auto plan = Follow(move_set, Node(0), Nodes({1, 2}));
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(EdgesOf(*plan), ElementsAre(1, 3)) << "of equal ones the first";
  EXPECT_EQ(plan->cost, 2);
  EXPECT_EQ(plan->peak, 8);
  EXPECT_THAT(EdgesOf(*Follow(move_set, Node(0), Nodes({1, 0, 2}))), ElementsAre(1, 4, 5));
  const auto nowhere = Follow(move_set, Node(0), {});
  ASSERT_TRUE(nowhere.has_value());
  EXPECT_THAT(nowhere->steps, IsEmpty());
  EXPECT_EQ(nowhere->peak, 4);
}

TEST(Follow, PassesOverLayoutsThatItIsIn) {
  ToyMoveSet move_set = Toy({{0, 1}, {1, 2}});
  move_set.normal = {{3, 0}, {4, 1}};
  const auto plan = Follow(move_set, Node(3), Nodes({0, 3, 4, 1, 4, 2}));
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(EdgesOf(*plan), ElementsAre(0, 1));
}

TEST(Follow, NeedsARegularMoveForEach) {
  ToyMoveSet move_set = Toy({{0, 1}, {1, 2}});
  move_set.last_resorts = {{0, 2}};
  EXPECT_FALSE(Follow(move_set, Node(0), Nodes({2})).has_value());
  EXPECT_FALSE(Follow(move_set, Node(0), Nodes({1, 0})).has_value());
  EXPECT_TRUE(Follow(move_set, Node(0), Nodes({1, 2})).has_value());
}

std::vector<std::string> NaiveSteps(const Problem& problem, const DtensorOptions& options = {}) {
  const auto plan = NaivePlan(*DtensorOf(problem, options), problem);
  if (!plan.has_value()) return {"none"};
  EXPECT_TRUE(plan->steps.empty() || plan->steps.back().step.after == PackedLayout(problem.to));
  return StepsOf(*plan);
}

TEST(NaivePlan, GathersTheLastDimensionFirstAndSplitsTheFirstFirst) {
  const Problem problem =
      ProblemOf({2, 2, 2, 2}, {16, 16}, {"Psum", "S0", "S0", "S1"}, {"S1", "S1", "S0", "Psum"});
  EXPECT_THAT(NaiveSteps(problem),
              ElementsAre("all-reduce(0)", "all-gather(3) from 1", "all-gather(2) from 0",
                          "all-gather(1) from 0", "slice(2) to 0", "slice(0) to 1", "slice(1) to 1",
                          "make-partial(3)"));
}

TEST(NaivePlan, GathersTheInnermostAxisFirstWhateverItsNumber) {
  Problem problem = ProblemOf({2, 3, 4}, {48}, {"S0", "S0", "S0"}, {"S0", "S0", "S0"});
  Reorder(problem.from, {{"0", {2, 0, 1}}}, 1);
  Reorder(problem.to, {{"0", {1, 2, 0}}}, 1);
  EXPECT_THAT(NaiveSteps(problem),
              ElementsAre("all-gather(1) from 0", "all-gather(0) from 0", "all-gather(2) from 0",
                          "slice(1) to 0", "slice(2) to 0", "slice(0) to 0"));
}

// It does not look at the target until every rank has everything.
TEST(NaivePlan, GathersEvenWhatStays) {
  EXPECT_THAT(NaiveSteps(ProblemOf({2}, {8}, {"S0"}, {"S0"})),
              ElementsAre("all-gather(0) from 0", "slice(0) to 0"));
  EXPECT_THAT(NaiveSteps(ProblemOf({2}, {8}, {"Pmax"}, {"Pmax"})),
              ElementsAre("all-reduce(0)", "make-partial(0)"));
  EXPECT_THAT(NaiveSteps(ProblemOf({2, 2}, {8}, {"R", "R"}, {"R", "R"})), IsEmpty());
  EXPECT_THAT(NaiveSteps(ProblemOf({2, 2}, {}, {"Psum", "R"}, {"R", "Psum"})),
              ElementsAre("all-reduce(0)", "make-partial(1)"));
}

TEST(NaivePlan, KeepsTheTargetsReductions) {
  const Problem problem = ProblemOf({2, 2}, {8}, {"Psum", "Psum"}, {"Pavg", "Psum"});
  const auto plan = NaivePlan(*DtensorOf(problem), problem);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->steps.back().step.after.reduction(0), ir::Reduction::kAverage);
  EXPECT_EQ(plan->steps.back().step.after.reduction(1), ir::Reduction::kSum);
}

TEST(NaivePlan, IsNoneWhereAxesMayNotBeReducedOneByOne) {
  const Problem problem = ProblemOf({2, 2}, {8}, {"Psum", "Psum"}, {"R", "R"});
  EXPECT_THAT(NaiveSteps(problem), ElementsAre("all-reduce(0)", "all-reduce(1)"));
  for (const auto consistency :
       {ReplicaConsistency::kReducedOnce, ReplicaConsistency::kOneAllReduce}) {
    EXPECT_THAT(NaiveSteps(problem, {.consistency = consistency}), ElementsAre("none"));
  }
}

ir::AxisList Axes(const std::vector<int>& axes) {
  ir::AxisList list;
  for (const int axis : axes) list.push_back(static_cast<ir::AxisIndex>(axis));
  return list;
}

// The steps by tensorcraft's names, where layouts are in blocks.
std::vector<std::string> NaiveNames(const Problem& problem) {
  const auto move_set = TensorcraftMoveSet::Create(problem, {});
  EXPECT_TRUE(move_set.ok()) << move_set.status();
  const auto plan = NaivePlan(**move_set, problem);
  if (!plan.has_value()) return {"none"};
  std::vector<std::string> names;
  PackedLayout at = (*move_set)->Normal(PackedLayout(problem.from));
  for (const PlannedStep& step : plan->steps) {
    names.push_back((*move_set)->NameOf(at, step.step));
    at = step.step.after;
  }
  EXPECT_EQ(at, (*move_set)->Normal(PackedLayout(problem.to)));
  return names;
}

TEST(NaivePlan, TakesAllOfADimensionInBlocksAtOnce) {
  Problem problem{.mesh = MeshOf({2, 4}), .dims = {64, 64}, .from = {}, .to = {}};
  problem.from.Set(0, 2, Axes({1, 0}), 2);
  EXPECT_THAT(NaiveNames(problem), ElementsAre("allgather_*"));
  problem.to.Set(1, 2, Axes({1}), 8);
  EXPECT_THAT(NaiveNames(problem), ElementsAre("allgather_*", "split_1_1_8"));
  problem.to.Set(1, 2, Axes({1, 0}), 2);  // no operation splits a dimension twice
  EXPECT_THAT(NaiveNames(problem), ElementsAre("none"));
}

TEST(NaivePlan, GathersBlocksDimensionByDimension) {
  Problem problem{.mesh = MeshOf({2, 4}), .dims = {64, 64}, .from = {}, .to = {}};
  problem.from.Set(0, 2, Axes({0}), 2);
  problem.from.Set(1, 2, Axes({1}), 2);
  problem.to.Set(0, 2, Axes({1}), 3);
  problem.to.Set(1, 2, Axes({0}), 4);
  EXPECT_THAT(NaiveNames(problem),
              ElementsAre("allgather_1", "allgather_*", "split_0_1_3", "split_1_0_4"));
}

}  // namespace
}  // namespace naive_test_cc
}  // namespace orrery::transforms::redistribution
