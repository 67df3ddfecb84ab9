#include <cmath>
#include <random>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "transforms/redistribution/dtensor.h"
#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/testing/dtensor_cost_by_axis.h"

namespace orrery::transforms::redistribution {
namespace dtensor_greedy_test_cc {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

std::string PlacementAt(const PackedLayout& layout, ir::AxisIndex axis) {
  switch (layout.role(axis)) {
    case AxisRole::kReplicates:
      return "R";
    case AxisRole::kSplits:
      return absl::StrCat("S", layout.dim(axis));
    case AxisRole::kPartial:
      break;
  }
  return layout.reduction(axis) == ir::Reduction::kSum ? "Psum" : "Pmax";
}

void ExpectCost(double found, const nlohmann::json& expected, const std::string& what) {
  const double wanted = NumberOf(expected);
  if (std::isinf(wanted)) {
    EXPECT_EQ(found, wanted) << what;
  } else {
    EXPECT_THAT(found, DoubleNear(wanted, 1e-9 * wanted)) << what;
  }
}

TEST(DtensorGreedy, PlansAreTheGoldens) {
  size_t planned = 0;
  for (const auto& golden : DtensorGolden()["cases"]) {
    if (!golden.contains("greedy_cost_us")) continue;
    const std::string name = golden["name"];
    const Problem problem = ProblemOf(golden);
    const DtensorOptions options = {.devices_per_host = golden["devices_per_host"]};
    const auto plan = DtensorGreedyPlan(problem, options);
    ASSERT_TRUE(plan.ok()) << name << plan.status();
    ExpectCost(plan->cost, golden["greedy_cost_us"], name);
    const auto& steps = golden["greedy_steps"];
    ASSERT_EQ(plan->steps.size(), steps.size()) << name;
    const auto move_set = DtensorOf(problem, options);
    PackedLayout layout(problem.from);
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& step = plan->steps[i].step;
      const ir::AxisIndex axis = step.axes.axes()[0];
      EXPECT_EQ(axis, steps[i]["mesh_dim"]) << name;
      EXPECT_EQ(PlacementAt(layout, axis), steps[i]["frm"]) << name;
      EXPECT_EQ(PlacementAt(step.after, axis), steps[i]["to"]) << name;
      EXPECT_EQ(move_set->NameOf(layout, step), steps[i]["op"]) << name;
      ExpectCost(plan->steps[i].cost, steps[i]["cost_us"], name);
      layout = step.after;
    }
    EXPECT_TRUE(layout == PackedLayout(problem.to)) << name;
    ExpectCost(*DtensorCostByAxis(problem, options), golden["legacy_per_dim_cost_us"], name);
    ++planned;
  }
  EXPECT_EQ(planned, 28);
}

// What DTensor's op strategies pay for their operands: a product of P(max) and R.
TEST(DtensorCostByAxis, IsTheTableOfPullRequest172282) {
  const DtensorOptions options = {.devices_per_host = 1};
  for (const auto& row : DtensorGolden()["strategy_table_pr172282"]) {
    std::string text = row["strategy_out_lhs_rhs"];
    text = text.substr(1, text.find(']') - 1);
    const std::vector<std::string> strategy = absl::StrSplit(text, ',');
    const auto cost = [&](const std::string& from, const std::string& to) {
      return *DtensorCostByAxis(ProblemOf({4}, {8, 8}, {from}, {to}), options);
    };
    ExpectCost(cost("Pmax", strategy[1]), row["lhs_cost_us"], text);
    ExpectCost(cost("R", strategy[2]), row["rhs_cost_us"], text);
  }
  EXPECT_THAT(*DtensorCostByAxis(ProblemOf({4}, {8, 8}, {"Psum"}, {"R"}), options),
              DoubleNear(DtensorGolden()["published_anchors"][0]["value"].get<double>(), 5e-3));
}

TEST(DtensorGreedy, LeavesOtherOrdersToTheGraph) {
  Problem problem = ProblemOf({2, 4}, {8, 8}, {"S0", "S0"}, {"S0", "S1"});
  Reorder(problem.from, {{"0", {1, 0}}}, 2);
  EXPECT_THAT(DtensorGreedyPlan(problem, {}).status().message(),
              HasSubstr("source: a dimension's axes are not in the order of the mesh"));
}

TEST(DtensorGreedy, SaysWhatTheFullestRankHolds) {
  // 10 rows as 4, 4 and 2, and these as 2 and 2, 2 and 2, 1 and 1.
  const auto plan = DtensorGreedyPlan(ProblemOf({3, 2}, {10, 1}, {"S0", "S0"}, {"R", "R"}), {});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(StepsOf(*plan), ElementsAre("all-gather(1) from 0", "all-gather(0) from 0"));
  EXPECT_EQ(plan->steps[0].peak, 2 + 4);
  EXPECT_EQ(plan->peak, 4 + 10);
}

// The best plan is never dearer; intermediate layouts keep the mesh's order of axes.
TEST(DtensorGreedy, OfRandomProblems) {
  std::mt19937 random(1);
  int finite = 0;
  for (int i = 0; i < 300; ++i) {
    Problem problem = RandomProblem(random, 4);
    for (ir::Sharding* sharding : {&problem.from, &problem.to}) {
      for (size_t d = 0; d < problem.dims.size(); ++d) {
        sharding->Set(d, problem.dims.size(), sharding->at(d).Sorted());
      }
    }
    const auto plan = DtensorGreedyPlan(problem, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const PlannedStep& step : plan->steps) {
      const ir::Sharding after = step.step.after.Unpack(problem.dims.size());
      for (const ir::AxisList& axes : after.split) EXPECT_EQ(axes, axes.Sorted());
    }
    if (!plan->steps.empty()) {
      EXPECT_TRUE(plan->steps.back().step.after == PackedLayout(problem.to));
    }
    EXPECT_LE(PlanOf(problem).cost, plan->cost * (1 + 1e-12));
    finite += std::isfinite(plan->cost) ? 1 : 0;
  }
  EXPECT_GT(finite, 100);
  EXPECT_LT(finite, 300);
}

}  // namespace
}  // namespace dtensor_greedy_test_cc
}  // namespace orrery::transforms::redistribution
