#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/sharding_text.h"
#include "ir/text/layout_text.h"
#include "transforms/redistribution/dtensor.h"
#include "transforms/redistribution/naive.h"
#include "transforms/redistribution/search.h"
#include "transforms/redistribution/tensorcraft.h"
#include "transforms/redistribution/testing/execute.h"

// A thousand random problems, whatever the move set: the plan is the cheapest of all ways there
// are, ends at the target when it is carried out on numbers, and moves what it is charged for.

namespace orrery::transforms::redistribution {
namespace plan_property_test_cc {
namespace {

class Drawing {
 public:
  explicit Drawing(uint32_t seed) : random_(seed) {}
  int64_t Below(int64_t end) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(end));
  }
  int64_t Of(std::initializer_list<int64_t> list) {
    return *(list.begin() + Below(static_cast<int64_t>(list.size())));
  }

  /// Of one to three axes and dimensions. `even`: each dimension divides whatever splits it.
  /// `partial`: the source may be a sum.
  Problem Next(bool even, bool partial) {
    std::vector<ir::Axis> axes;
    for (int64_t i = 1 + Below(3); i > 0; --i) {
      axes.push_back(
          {absl::StrCat("a", i), even ? (axes.empty() ? Of({2, 4}) : 2) : Of({2, 3, 4})});
    }
    Problem problem{.mesh = ir::Mesh(std::move(axes)), .dims = {}, .from = {}, .to = {}};
    for (int64_t i = 1 + Below(problem.mesh.axes().size() == 3 ? 2 : 3); i > 0; --i) {
      problem.dims.push_back(even ? 16 : Of({1, 5, 7, 12, 13}));
    }
    problem.from = Layout(problem, partial);
    problem.to = Layout(problem, /*partial=*/false);
    return problem;
  }

 private:
  ir::Sharding Layout(const Problem& problem, bool partial) {
    const auto rank = static_cast<int64_t>(problem.dims.size());
    std::vector<ir::AxisIndex> order(problem.mesh.axes().size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<ir::AxisIndex>(i);
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(Below(static_cast<int64_t>(i)))]);
    }
    std::vector<ir::AxisList> lists(problem.dims.size());
    ir::Sharding sharding;
    for (const ir::AxisIndex axis : order) {
      const int64_t role = Below(rank + (partial ? 2 : 1));
      if (role < rank) lists[static_cast<size_t>(role)].push_back(axis);
      if (role == rank + 1) sharding.partial.push_back(axis);
    }
    sharding.partial = sharding.partial.Sorted();
    for (size_t d = 0; d < lists.size(); ++d) sharding.Set(d, lists.size(), lists[d]);
    return sharding;
  }

  std::mt19937 random_;
};

// The least cost by going over all moves from all layouts until nothing changes.
double Exhausted(const MoveSet& move_set, const Problem& problem) {
  struct Edge {
    size_t from, to;
    double cost;
  };
  std::vector<PackedLayout> layouts = {move_set.Normal(PackedLayout(problem.from))};
  absl::flat_hash_map<PackedLayout, size_t> numbers = {{layouts[0], 0}};
  std::vector<Edge> edges;
  std::vector<Move> moves;
  for (size_t i = 0; i < layouts.size(); ++i) {
    moves.clear();
    move_set.Expand(PackedLayout(layouts[i]), moves);
    for (const Move& move : moves) {
      const auto [at, added] = numbers.emplace(move.step.after, layouts.size());
      if (added) layouts.push_back(move.step.after);
      edges.push_back({i, at->second, move.cost});
    }
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> costs(layouts.size(), kInfinity);
  costs[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& edge : edges) {
      if (costs[edge.from] + edge.cost >= costs[edge.to]) continue;
      costs[edge.to] = costs[edge.from] + edge.cost;
      changed = true;
    }
  }
  const auto target = numbers.find(move_set.Normal(PackedLayout(problem.to)));
  return target == numbers.end() ? kInfinity : costs[target->second];
}

std::string Show(const Problem& problem) {
  return absl::StrCat(ir::ToString(problem.mesh), " ",
                      ir::LayoutText(problem.from, problem.dims, problem.mesh), " to ",
                      ir::LayoutText(problem.to, problem.dims, problem.mesh));
}

// What a rank must receive in a step of that kind over `n` ranks, of `before` elements a rank that
// become `after`; a permutation may leave ranks as they are.
int64_t Received(MoveKind kind, int64_t n, int64_t before, int64_t after) {
  switch (kind) {
    case MoveKind::kAllGather:
      return after - before;
    case MoveKind::kReduceScatter:
      return (n - 1) * after;
    case MoveKind::kAllReduce:
      return 2 * (n - 1) * before / n;
    case MoveKind::kAllToAll:
      return before - before / n;
    default:
      return 0;
  }
}

TEST(Plans, OfDtensorAreTheCheapestAndRight) {
  Drawing drawing(1);
  for (int i = 0; i < 500; ++i) {
    const bool even = i % 2 == 0;
    const Problem problem = drawing.Next(even, /*partial=*/true);
    SCOPED_TRACE(Show(problem));
    const auto move_set = MakeDtensor(problem, {.devices_per_host = 4, .merge = i % 4 < 2});
    ASSERT_TRUE(move_set.ok()) << move_set.status();
    const auto plan =
        CheapestPlan(**move_set, PackedLayout(problem.from), PackedLayout(problem.to));
    ASSERT_TRUE(plan.has_value());
    EXPECT_NEAR(plan->cost, Exhausted(**move_set, problem), 1e-9 * plan->cost);
    const auto naive = NaivePlan(**move_set, problem);
    ASSERT_TRUE(naive.has_value());
    EXPECT_GE(naive->cost, plan->cost * (1 - 1e-12));
    for (const RedistributionPlan& each : {*plan, *naive}) {
      const auto execution = Execute(problem, each);
      ASSERT_TRUE(execution.ok()) << execution.status();
      int64_t before = (*move_set)->Elements(PackedLayout(problem.from));
      for (size_t s = 0; s < each.steps.size(); ++s) {
        const Step& step = each.steps[s].step;
        const int64_t after = (*move_set)->Elements(step.after);
        if (even && step.kind != MoveKind::kPermute) {
          EXPECT_EQ(execution->steps[s].most_received(),
                    Received(step.kind, problem.mesh.size(step.axes), before, after))
              << ToString(step.kind);
        }
        before = after;
      }
    }
  }
}

TEST(Plans, OfTensorcraftAreTheCheapestAndRight) {
  Drawing drawing(2);
  int checked = 0;
  while (checked < 500) {
    Problem problem = drawing.Next(/*even=*/checked % 2 == 0, /*partial=*/false);
    const auto move_set = TensorcraftMoveSet::Create(problem, {.physical = checked % 3 == 0});
    if (!move_set.ok()) {  // a rank without elements
      problem = drawing.Next(/*even=*/true, /*partial=*/false);
      continue;
    }
    SCOPED_TRACE(Show(problem));
    ++checked;
    const auto plan =
        CheapestPlan(**move_set, PackedLayout(problem.from), PackedLayout(problem.to));
    ASSERT_TRUE(plan.has_value());
    const double best = Exhausted(**move_set, problem);
    // Infinite where only a last resort leads to the target.
    if (best < std::numeric_limits<double>::infinity()) {
      EXPECT_NEAR(plan->cost, best, 1e-9 * plan->cost);
    }
    const auto execution = Execute(problem, *plan);
    ASSERT_TRUE(execution.ok()) << execution.status();
    const auto naive = Execute(problem, (*move_set)->Naive());
    ASSERT_TRUE(naive.ok()) << naive.status();
  }
}

}  // namespace
}  // namespace plan_property_test_cc
}  // namespace orrery::transforms::redistribution
