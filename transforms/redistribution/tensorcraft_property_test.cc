#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "transforms/redistribution/search.h"
#include "transforms/redistribution/tensorcraft.h"

// Plans of random problems against a search that knows no bound, no queue and no pruning, and part
// sizes against counting.

namespace orrery::transforms::redistribution {
namespace tensorcraft_property_test_cc {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  // Not std::uniform_int_distribution, whose numbers differ from one library to the next.
  int64_t UpTo(int64_t most) { return static_cast<int64_t>(engine_() % (uint64_t(most) + 1)); }
  template <typename T>
  T Of(std::initializer_list<T> list) {
    return *(list.begin() + UpTo(static_cast<int64_t>(list.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

// Axes in a random order, each on a random dimension or none, with blocks that leave no rank empty.
ir::Sharding RandomLayout(Random& random, const ir::Mesh& mesh, const ir::Dims& dims) {
  std::vector<ir::AxisIndex> axes;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    axes.insert(axes.begin() + random.UpTo(std::ssize(axes)), static_cast<ir::AxisIndex>(axis));
  }
  std::vector<ir::AxisList> lists(dims.size());
  for (const ir::AxisIndex axis : axes) {
    const auto dim = static_cast<size_t>(random.UpTo(std::ssize(dims)));
    if (dim == dims.size()) continue;
    ir::AxisList longer = lists[dim];
    longer.push_back(axis);
    if (mesh.size(longer) <= dims[dim]) lists[dim] = longer;
  }
  ir::Sharding sharding;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (lists[d].empty()) continue;
    const int64_t most = LargestBlock(dims[d], mesh.size(lists[d]));
    const int64_t block = random.UpTo(1) == 0 ? most : 1 + random.UpTo(most - 1);
    sharding.Set(d, dims.size(), lists[d], block);
  }
  return sharding;
}

Problem RandomProblem(Random& random) {
  std::vector<ir::Axis> axes;
  for (int64_t i = 1 + random.UpTo(2); i > 0; --i) {
    axes.push_back({absl::StrCat("a", i), random.Of<int64_t>({1, 2, 2, 2, 3, 4})});
  }
  Problem problem{.mesh = ir::Mesh(std::move(axes)), .dims = {}, .from = {}, .to = {}};
  const int64_t most = problem.mesh.axes().size() == 3 ? 1 : 2;
  for (int64_t i = 1 + random.UpTo(most); i > 0; --i) {
    problem.dims.push_back(random.Of<int64_t>({4, 8, 9, 12, 16, 24, 30}));
  }
  problem.from = RandomLayout(random, problem.mesh, problem.dims);
  problem.to = RandomLayout(random, problem.mesh, problem.dims);
  return problem;
}

enum class LastResorts { kNo, kYes };

// The least cost to the target by relaxing every operation that the library would try until
// nothing changes; infinite where there is none.
double Exhaustive(const TensorcraftMoveSet& move_set, const Problem& problem, int64_t limit,
                  LastResorts last_resorts = LastResorts::kNo) {
  const TensorcraftTensor tensor(problem.mesh, problem.dims);
  const PackedLayout to(problem.to);
  std::vector<int64_t> blocks = {1};
  for (size_t d = 0; d < problem.dims.size(); ++d) {
    if (!problem.to.at(d).empty()) blocks.push_back(problem.to.block(d));
  }
  std::vector<PackedLayout> layouts = {PackedLayout(problem.from)};
  std::vector<double> costs = {0};
  absl::flat_hash_map<PackedLayout, size_t> numbers = {{layouts[0], 0}};
  std::deque<size_t> changed = {0};
  while (!changed.empty()) {
    const size_t at = changed.front();
    changed.pop_front();
    const TensorcraftLayout open = tensor.Open(layouts[at]);
    std::vector<Step> steps;
    for (const auto& operation : ListOperations(tensor, open, blocks, Repeats::kAll)) {
      const auto taken = Apply(tensor, open, operation);
      if (taken.has_value()) steps.push_back(taken->step);
    }
    std::vector<Move> general;
    if (last_resorts == LastResorts::kYes) move_set.LastResort(open.packed, general);
    for (const Move& move : general) steps.push_back(move.step);
    for (const Step& step : steps) {
      if (tensor.Elements(step.after) > limit) continue;
      const double cost = costs[at] + move_set.CostOf(open.packed, step).total();
      const auto [next, added] = numbers.try_emplace(step.after, layouts.size());
      if (added) {
        layouts.push_back(step.after);
        costs.push_back(std::numeric_limits<double>::infinity());
      }
      if (cost >= costs[next->second] - 1e-9) continue;
      costs[next->second] = cost;
      changed.push_back(next->second);
    }
  }
  const auto target = numbers.find(to);
  return target == numbers.end() ? std::numeric_limits<double>::infinity() : costs[target->second];
}

void ExpectBest(const Problem& problem, const TensorcraftOptions& options, bool limited) {
  const auto move_set = TensorcraftMoveSet::Create(problem, options);
  ASSERT_TRUE(move_set.ok()) << move_set.status();
  const PackedLayout from(problem.from), to(problem.to);
  const int64_t limit =
      limited ? std::max((*move_set)->Elements(from), (*move_set)->Elements(to)) : kNoLimit;
  const auto plan = CheapestPlan(**move_set, from, to, limit);
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->exact);
  EXPECT_LE(plan->peak, limit);
  const double best = Exhaustive(**move_set, problem, limit);
  bool general = false;
  PackedLayout at = from;
  for (const PlannedStep& step : plan->steps) {
    general |= (*move_set)->NameOf(at, step.step) == "alltoall_*";
    at = step.step.after;
  }
  EXPECT_EQ(at, to);
  EXPECT_EQ(general, best == std::numeric_limits<double>::infinity());
  if (!general) {
    EXPECT_NEAR(plan->cost, best, 1e-6);
  }
}

TEST(Property, PlansAreTheBest) {
  Random random(20250328);
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    const Problem problem = RandomProblem(random);
    ExpectBest(problem, {}, false);
    ExpectBest(problem, {}, true);
    ExpectBest(problem, {.alpha = 10, .beta = 0.3, .epsilon = 0.1, .physical = true}, i % 2 == 0);
  }
}

// The cheapest within a limit: where operations alone have no way within the least that source and
// target take, general all-to-alls count as well. Without a limit they never help.
double BestWithin(const TensorcraftMoveSet& move_set, const Problem& problem, int64_t limit) {
  const int64_t least = std::max(move_set.Elements(PackedLayout(problem.from)),
                                 move_set.Elements(PackedLayout(problem.to)));
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const bool general = Exhaustive(move_set, problem, least) == kNone;
  return Exhaustive(move_set, problem, limit, general ? LastResorts::kYes : LastResorts::kNo);
}

// More memory never makes a plan dearer, whatever the costs and however little the operations can
// do within the least of it.
TEST(Property, WiderLimitsCostNoMore) {
  Random random(20251125);
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    const Problem problem = RandomProblem(random);
    const auto move_set =
        *TensorcraftMoveSet::Create(problem, {.alpha = random.Of<double>({0, 1, 10}),
                                              .beta = random.Of<double>({0.01, 1}),
                                              .epsilon = random.Of<double>({0, 1}),
                                              .physical = random.UpTo(1) == 1});
    const PackedLayout from(problem.from), to(problem.to);
    auto plan = CheapestPlan(*move_set, from, to);
    ASSERT_TRUE(plan.has_value());
    EXPECT_NEAR(plan->cost, BestWithin(*move_set, problem, kNoLimit), 1e-6);
    while (plan->peak > std::max(move_set->Elements(from), move_set->Elements(to))) {
      const int64_t limit = plan->peak - 1;
      const double wider = plan->cost;
      plan = CheapestPlan(*move_set, from, to, limit);
      ASSERT_TRUE(plan.has_value()) << limit;
      EXPECT_NEAR(plan->cost, BestWithin(*move_set, problem, limit), 1e-6) << limit;
      EXPECT_GE(plan->cost, wider - 1e-6) << limit;
    }
  }
}

// Whatever a layout leads to is a layout of tensorcraft's, other than it, and costs what CostOf
// says; no bound is above what the way costs.
TEST(Property, MovesAreWhole) {
  Random random(7);
  std::vector<Move> moves;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const Problem problem = RandomProblem(random);
    const auto move_set = *TensorcraftMoveSet::Create(problem, {.epsilon = 1});
    const TensorcraftTensor tensor(problem.mesh, problem.dims);
    PackedLayout at(problem.from);
    for (int step = 0; step < 4; ++step) {
      moves.clear();
      move_set->Expand(at, moves);
      move_set->LastResort(at, moves);
      for (const Move& move : moves) {
        EXPECT_TRUE(tensor.Check(move.step.after).ok());
        EXPECT_NE(move.step.after, at);
        EXPECT_GE(move.cost, 0);
        EXPECT_EQ(move.cost, move_set->CostOf(at, move.step).total());
        EXPECT_EQ(move.peak, move_set->Elements(move.step.after));
      }
      if (moves.empty()) break;
      at = moves[static_cast<size_t>(random.UpTo(std::ssize(moves) - 1))].step.after;
    }
  }
}

TEST(Property, NaivePlansReachTheTarget) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const Problem problem = RandomProblem(random);
    const auto move_set = *TensorcraftMoveSet::Create(problem, {});
    const RedistributionPlan plan = move_set->Naive();
    const PackedLayout from(problem.from), to(problem.to);
    EXPECT_EQ(plan.steps.empty() ? from : plan.steps.back().step.after, to);
    // One that gathers what is gathered, as the library does, would crash.
    EXPECT_LE(std::ssize(plan.steps), (problem.from.replicated() ? 0 : 1) + 1);
    EXPECT_GE(plan.cost + 1e-9, CheapestPlan(*move_set, from, to)->cost);
  }
}

TEST(Property, LargestPartIsTheFirst) {
  for (int64_t size = 1; size <= 40; ++size) {
    for (int64_t parts = 1; parts <= 9; ++parts) {
      for (int64_t block = 1; block <= size + 2; ++block) {
        std::vector<int64_t> counts(static_cast<size_t>(parts));
        for (int64_t i = 0; i < size; ++i) ++counts[static_cast<size_t>(i / block % parts)];
        EXPECT_EQ(LargestPart(size, block, parts), counts[0]);
        EXPECT_EQ(counts[0], *std::ranges::max_element(counts));
        if (parts == 1) continue;  // there every block up to the size is one block
        EXPECT_EQ(block <= LargestBlock(size, parts), *std::ranges::min_element(counts) > 0)
            << size << " in " << parts << " parts of blocks of " << block;
      }
    }
  }
}

TEST(Layouts, OfEvenChunksAreLayoutsOfBlocks) {
  Problem problem{.mesh = ir::Mesh({{"a", 4}}), .dims = {12, 8}, .from = {}, .to = {}};
  problem.from.Set(0, 2, ir::AxisList(0), ir::kNestedChunks);
  problem.to.Set(0, 2, ir::AxisList(0), 3);
  const auto move_set = *TensorcraftMoveSet::Create(problem, {});
  const auto plan = CheapestPlan(*move_set, PackedLayout(problem.from), PackedLayout(problem.to));
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->steps.empty());
  EXPECT_EQ(move_set->Elements(PackedLayout(problem.from)), 24);
  EXPECT_TRUE(move_set->Naive().steps.empty());
}

TEST(Layouts, OfTheLargestTensorsDoNotOverflow) {
  Problem problem{.mesh = ir::Mesh({{"a", int64_t{1} << 20}, {"b", int64_t{1} << 20}}),
                  .dims = {int64_t{1} << 60},
                  .from = {},
                  .to = {}};
  ir::AxisList both(0);
  both.push_back(1);
  problem.from.Set(0, 1, both, int64_t{1} << 20);
  problem.to.Set(0, 1, ir::AxisList(1), int64_t{1} << 40);
  const auto move_set = *TensorcraftMoveSet::Create(problem, {});
  const auto plan = CheapestPlan(*move_set, PackedLayout(problem.from), PackedLayout(problem.to));
  ASSERT_TRUE(plan.has_value());
  EXPECT_GT(plan->cost, 0);
  EXPECT_GT(plan->peak, 0);
}

// Five axes and a search that may keep only a few layouts: what it met first is an answer too.
TEST(Search, ThatGivesUpHasAnAnswer) {
  Problem problem{.mesh = ir::Mesh({{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}, {"e", 2}}),
                  .dims = {64, 64, 64},
                  .from = {},
                  .to = {}};
  ir::AxisList up(0), down(4);
  for (ir::AxisIndex axis = 1; axis < 5; ++axis) {
    up.push_back(axis);
    down.push_back(static_cast<ir::AxisIndex>(4 - axis));
  }
  problem.from.Set(0, 3, up, 2);
  problem.to.Set(1, 3, down, 1);
  const auto move_set = *TensorcraftMoveSet::Create(problem, {});
  const PackedLayout from(problem.from), to(problem.to);
  const auto best = CheapestPlan(*move_set, from, to);
  const auto hasty = CheapestPlan(*move_set, from, to, SearchLimits{.labels = 100});
  ASSERT_TRUE(best.has_value());
  ASSERT_TRUE(hasty.has_value());
  EXPECT_TRUE(best->exact);
  EXPECT_FALSE(hasty->exact);
  EXPECT_LT(hasty->expanded, best->expanded);
  EXPECT_EQ(hasty->steps.back().step.after, to);
}

TEST(Search, WithoutRoomHasNone) {
  Random random(3);
  const Problem problem = RandomProblem(random);
  const auto move_set = *TensorcraftMoveSet::Create(problem, {});
  const PackedLayout from(problem.from), to(problem.to);
  ASSERT_NE(from, to);
  EXPECT_FALSE(CheapestPlan(*move_set, from, to, move_set->Elements(to) - 1).has_value());
}

TEST(Search, ParetoPlansTradeTimeForMemory) {
  Random random(5);
  int several = 0;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const Problem problem = RandomProblem(random);
    const auto move_set = *TensorcraftMoveSet::Create(problem, {});
    const PackedLayout from(problem.from), to(problem.to);
    const auto plans = ParetoPlans(*move_set, from, to);
    ASSERT_FALSE(plans.empty());
    EXPECT_EQ(plans.front().cost, CheapestPlan(*move_set, from, to)->cost);
    EXPECT_EQ(plans.back().peak, std::max(move_set->Elements(from), move_set->Elements(to)));
    for (size_t k = 1; k < plans.size(); ++k) {
      EXPECT_GT(plans[k].cost, plans[k - 1].cost);
      EXPECT_LT(plans[k].peak, plans[k - 1].peak);
    }
    several += plans.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 0);
}

}  // namespace
}  // namespace tensorcraft_property_test_cc
}  // namespace orrery::transforms::redistribution
