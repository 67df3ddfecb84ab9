#include "transforms/redistribution/ties.h"

#include <gtest/gtest.h>

#include <random>

#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/toy_test_util.h"

namespace orrery::transforms::redistribution {
namespace ties_test_cc {
namespace {

// What a plan costs but for what ranks do by themselves, and that.
std::pair<double, double> Parts(const Problem& problem, const DtensorOptions& options,
                                const RedistributionPlan& plan) {
  const auto moves = DtensorOf(problem, options);
  PackedLayout at(problem.from);
  double others = 0, local = 0;
  for (const PlannedStep& step : plan.steps) {
    const StepCost cost = moves->CostOf(at, step.step);
    (Communicates(step.step.kind) ? others : local) += cost.total();
    at = step.step.after;
  }
  return {others, local};
}

// Of layouts 0 to 2 there are two ways of the same cost: through 1 in two steps, and at once.
TEST(Ties, AreBrokenByTheTieBeforeTheNumberOfSteps) {
  class Tied final : public MoveSet {
   public:
    void Expand(const PackedLayout& layout, std::vector<Move>& moves) const override {
      const int node = NodeOf(layout);
      if (node == 0) moves.push_back(Make(2, 2, direct_tie));
      if (node < 2) moves.push_back(Make(node + 1, 1, 1));
    }
    StepCost CostOf(const PackedLayout&, const Step&) const override { return {}; }
    int64_t Elements(const PackedLayout&) const override { return 1; }
    std::string NameOf(const PackedLayout&, const Step&) const override { return "edge"; }
    static Move Make(int to, double cost, double tie) {
      Move move;
      move.step.kind = MoveKind::kReblock;
      move.step.after = Node(to);
      move.cost = cost;
      move.tie = tie;
      return move;
    }
    double direct_tie = 3;
  };
  Tied moves;
  EXPECT_EQ(NodesOf(*CheapestPlan(moves, Node(0), Node(2))), (std::vector<int>{1, 2}));
  moves.direct_tie = 2;
  EXPECT_EQ(NodesOf(*CheapestPlan(moves, Node(0), Node(2))), (std::vector<int>{2}));
  moves.direct_tie = 1;
  EXPECT_EQ(NodesOf(*CheapestPlan(moves, Node(0), Node(2))), (std::vector<int>{2}));
}

// Against prices of what is local that are so low that they decide between equals alone. Without a
// price a plan may do what it need not.
TEST(Ties, OfWhatIsLocalTakeTheLeastOfItAmongTheCheapest) {
  std::mt19937 random(20261128);
  int less = 0, some = 0, compared = 0;
  for (int i = 0; i < 300; ++i) {
    const Problem problem = RandomProblem(random, 4);
    const DtensorOptions priced{.partial_cost = 7, .memory_bandwidth = 2000},
        hardly{.partial_cost = 7e-6, .memory_bandwidth = 2e9};
    const auto moves = DtensorOf(problem, priced);
    const auto plan = CheapestPlan(TieBroken(*moves, *FindCostPart("local")),
                                   PackedLayout(problem.from), PackedLayout(problem.to));
    ASSERT_TRUE(plan.has_value());
    const auto [others, local] = Parts(problem, priced, *plan);
    const RedistributionPlan cheapest = PlanOf(problem), least = PlanOf(problem, hardly);
    EXPECT_NEAR(others, cheapest.cost, 1e-4 + 1e-9 * others);
    // Of the largest tensors even such a price is more than a latency.
    const auto [others_of_least, local_of_least] = Parts(problem, priced, least);
    if (others_of_least > others + 1e-4) continue;
    EXPECT_NEAR(local, local_of_least, 1e-4 + 1e-6 * local) << i;
    ++compared;
    less += local < Parts(problem, priced, cheapest).second - 1e-3;
    some += local > 0;
  }
  EXPECT_GT(less, 0);
  EXPECT_GT(some, 10);
  EXPECT_GT(compared, 250);
}

// A field of the cost, whatever else the step costs: an all-to-all's penalty is a copy.
TEST(Ties, OfAFieldLeaveTheOtherFields) {
  Problem problem = {.mesh = MeshOf({4}), .dims = {64, 64}, .itemsize = 4, .from = {}, .to = {}};
  problem.from = ShardingOf({"S0"}, 2);
  problem.to = ShardingOf({"S1"}, 2);
  const auto moves = DtensorOf(problem, {.all_to_all_penalty = 5});
  const TieBroken broken(*moves, *FindCostPart("copy"));
  const PackedLayout from(problem.from), to(problem.to);
  const auto plan = CheapestPlan(broken, from, to);
  ASSERT_EQ(plan->steps.size(), 1u);
  EXPECT_NEAR(plan->cost, PlanOf(problem, {.all_to_all_penalty = 0}).cost, 1e-5);
  // With the penalty DTensor gathers and slices where that is cheaper (issue 177669).
  EXPECT_EQ(plan->steps[0].step.kind, MoveKind::kAllToAll);
  EXPECT_EQ(PlanOf(problem, {.all_to_all_penalty = 5}).steps.size(), 2u);
}

TEST(Ties, HaveThePartsOfACost) {
  EXPECT_EQ(FindCostPart("copy")->field, &StepCost::copy);
  EXPECT_EQ(FindCostPart("memory")->field, &StepCost::memory);
  EXPECT_EQ(FindCostPart("local")->field, nullptr);
  EXPECT_EQ(FindCostPart("time").status().message(),
            "'time': wanted one of launches, latency, transfer, copy, reduction, synchronization, "
            "memory, local");
}

}  // namespace
}  // namespace ties_test_cc
}  // namespace orrery::transforms::redistribution
