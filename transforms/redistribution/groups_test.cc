#include "transforms/redistribution/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/given_steps.h"
#include "transforms/redistribution/synchronized.h"
#include "transforms/redistribution/wrapped_moves.h"

// Plans within the groups of ranks that there are, and what those cost that there are not; waiting
// for stragglers. The oracle goes over all layouts and all sets of groups until nothing changes.

namespace orrery::transforms::redistribution {
namespace groups_test_cc {
namespace {

using ir::AxisIndex;
using testing::HasSubstr;

Groups Of(absl::string_view text, const ir::Mesh& mesh) {
  auto groups = Groups::Parse(text, mesh);
  EXPECT_TRUE(groups.ok()) << groups.status();
  return *std::move(groups);
}

TEST(Groups, AreRead) {
  const ir::Mesh mesh({{"dp", 2}, {"hp", 4}, {"one", 1}});
  EXPECT_EQ(Of(" dp, 1 ,hp.dp,dp.one,one", mesh).Text(), "dp, hp, hp.dp, dp");
  EXPECT_EQ(Of("one", mesh).Text(), "none");
  EXPECT_EQ(Groups::Parse("dp,dp.pp", mesh).status().message(),
            "got axis 'pp' in 'dp.pp'; wanted each once of dp, hp, one or its number, as in "
            "dp,dp.hp.one");
  EXPECT_THAT(Groups::Parse("dp.dp", mesh).status().message(), HasSubstr("in 'dp.dp'; wanted"));
  EXPECT_THAT(Groups::Parse("", mesh).status().message(), HasSubstr("got axis ''"));
}

// A text for the axes that a step is over, as a person would write it; "" where nobody speaks.
std::string AxesOf(const ir::Mesh& mesh, const Step& step, bool sorted) {
  std::vector<int> axes;
  for (const AxisIndex axis : step.axes.axes()) {
    if (mesh.size(axis) > 1) axes.push_back(axis);
  }
  if (sorted) std::sort(axes.begin(), axes.end());
  return Communicates(step.kind) ? absl::StrJoin(axes, ".") : "";
}

using Created = std::set<std::string>;

// Whether one of the groups will do.
bool Will(const Created& groups, const ir::Mesh& mesh, const Step& step) {
  const std::string wanted = AxesOf(mesh, step, false), sorted = AxesOf(mesh, step, true);
  if (wanted.empty() || groups.contains(wanted)) return true;
  if (step.kind != MoveKind::kAllReduce) return false;
  std::vector<std::string> axes = absl::StrSplit(sorted, '.');
  do {
    if (groups.contains(absl::StrJoin(axes, "."))) return true;
  } while (std::next_permutation(axes.begin(), axes.end()));
  return false;
}

// The least cost of any way to the target, where groups are created at `price`.
double Exhausted(const MoveSet& moves, const Problem& problem, const Created& groups,
                 double price) {
  std::map<std::pair<std::string, Created>, double> costs;
  const auto name = [&](const PackedLayout& layout) {
    std::string text;
    for (AxisIndex a = 0; a < static_cast<AxisIndex>(problem.mesh.axes().size()); ++a) {
      absl::StrAppend(&text, static_cast<int>(layout.role(a)), ",", layout.dim(a), ",",
                      layout.dim(a) < 0 ? 0 : layout.position(a), ";");
    }
    return text;
  };
  struct Place {
    PackedLayout at;
    Created groups;
    double cost;
  };
  std::vector<Place> open = {{moves.Normal(PackedLayout(problem.from)), groups, 0}};
  const PackedLayout to = moves.Normal(PackedLayout(problem.to));
  double best = std::numeric_limits<double>::infinity();
  while (!open.empty()) {
    const Place place = open.back();
    open.pop_back();
    const auto [known, is_new] = costs.try_emplace({name(place.at), place.groups}, place.cost);
    if (!is_new && known->second <= place.cost) continue;
    known->second = place.cost;
    if (place.at == to) best = std::min(best, place.cost);
    std::vector<Move> next;
    moves.Expand(place.at, next);
    for (const Move& move : next) {
      Place then{move.step.after, place.groups, place.cost + move.cost};
      if (!Will(place.groups, problem.mesh, move.step)) {
        then.cost += price;
        then.groups.insert(AxesOf(problem.mesh, move.step, false));
      }
      if (then.cost < best) open.push_back(std::move(then));
    }
  }
  return best;
}

// Two axes, mostly of several ranks, and one or two dimensions; sums over both are frequent.
Problem SmallProblem(std::mt19937& random) {
  const auto draw = [&](int64_t count) { return static_cast<int64_t>(random()) % count; };
  Problem problem{.mesh = MeshOf({1 + draw(4), 2 + draw(3)}), .dims = {}, .from = {}, .to = {}};
  for (int64_t i = 1 + draw(2); i > 0; --i) problem.dims.push_back(1 + draw(2000));
  const Placements choices = {"R", "Psum", "Psum", "S0", problem.dims.size() > 1 ? "S1" : "S0"};
  Placements from, to;
  for (int axis = 0; axis < 2; ++axis) {
    from.push_back(choices[static_cast<size_t>(draw(5))]);
    to.push_back(choices[static_cast<size_t>(draw(5))]);
  }
  problem.from = ShardingOf(from, problem.dims.size());
  problem.to = ShardingOf(to, problem.dims.size());
  return problem;
}

TEST(Groups, HaveTheCheapestPlanWhateverIsCreated) {
  std::mt19937 random(20261129);
  int created = 0, within = 0;
  for (int i = 0; i < 200; ++i) {
    const Problem problem = SmallProblem(random);
    const auto moves = DtensorOf(problem, {.devices_per_host = 2, .merge = true});
    std::string text = "0";
    const bool first = problem.mesh.size(0) > 1;
    Created there = {first ? "0" : ""};
    for (const std::string group : {"1", "0.1", "1.0"}) {
      if (random() % 2 == 0) continue;
      absl::StrAppend(&text, ",", group);
      there.insert(first ? group : "1");  // an axis of one rank does not count
    }
    const Groups groups = Of(text, problem.mesh);
    const double price = i % 4 == 0 ? 0 : static_cast<double>(random() % 16);
    const auto plan = CheapestWithGroups(*moves, groups, price, problem, {});
    ASSERT_TRUE(plan.has_value());
    EXPECT_TRUE(plan->exact);
    EXPECT_NEAR(plan->cost, Exhausted(*moves, problem, there, price), 1e-6 * (1 + plan->cost))
        << text << " at " << price << " of " << ir::ToString(problem.mesh);
    double sum = 0;
    for (const PlannedStep& step : plan->steps) {
      sum += step.cost;
      created += step.creation > 0;
    }
    EXPECT_NEAR(sum, plan->cost, 1e-6 * (1 + sum));
    const auto allowed = CheapestPlan(GroupedMoves(*moves, groups), PackedLayout(problem.from),
                                      PackedLayout(problem.to));
    if (!allowed.has_value()) continue;
    ++within;
    EXPECT_GE(allowed->cost, plan->cost - 1e-9);
    for (const PlannedStep& step : allowed->steps) {
      EXPECT_TRUE(Will(there, problem.mesh, step.step)) << text;
    }
  }
  EXPECT_GT(created, 20);
  EXPECT_GT(within, 100);
}

// A group that is created serves all later steps: reduce-scatter and all-gather pay for it once.
TEST(Groups, AreCreatedOnce) {
  const Problem two = ProblemOf({2, 8}, {1 << 20}, {"R", "Psum"}, {"R", "R"});
  auto with = GivenPlan(*DtensorOf(two), two, "reduce-scatter a1: 0; all-gather a1: 0",
                        [](const PackedLayout&) { return std::string("there"); });
  ASSERT_TRUE(with.ok()) << with.status();
  const double steps = with->cost;
  ChargeForGroups(Of("a1", two.mesh), 100, PackedLayout(two.from), *with);
  EXPECT_EQ(with->cost, steps) << "it is there";
  ChargeForGroups(Of("a0", two.mesh), 100, PackedLayout(two.from), *with);
  EXPECT_DOUBLE_EQ(with->cost, steps + 100);
  EXPECT_EQ(with->steps[0].creation, 100);
  EXPECT_EQ(with->steps[1].creation, 0);
}

std::string Refused(absl::string_view groups, absl::string_view steps, const Placements& from,
                    const Placements& to) {
  const Problem problem = ProblemOf({2, 4, 2}, {64, 64}, from, to);
  const auto moves = DtensorOf(problem, {.merge = true});
  const Groups there = Of(groups, problem.mesh);
  const auto plan = GivenPlan(GroupedMoves(*moves, there), problem, steps,
                              [](const PackedLayout&) { return std::string("it"); });
  return plan.ok() ? "" : std::string(plan.status().message());
}

TEST(Groups, SayWhyAMergedReductionIsIncomplete) {
  const Placements sums = {"Psum", "Psum", "Psum"}, whole = {"R", "R", "R"};
  EXPECT_EQ(Refused("a0,a1,a2,a0.a1.a2", "all-reduce a0.a1.a2", sums, whole), "");
  EXPECT_EQ(Refused("a0,a1,a2,a2.a0", "all-reduce a0.a2; all-reduce a1", sums, whole), "");
  EXPECT_THAT(Refused("a0,a1,a2", "all-reduce a0.a1; all-reduce a2", sums, whole),
              HasSubstr("does not apply to it: there is no group a0.a1, only a0, a1, a2; the "
                        "reduction is to be axis by axis, or its group in `groups`, or to be "
                        "created at a `group-price`; wanted one of: all-reduce a0; all-reduce a1; "
                        "all-reduce a2"));
  EXPECT_THAT(Refused("a0,a1,a2", "all-reduce a0.a2; all-reduce a1", sums, whole),
              HasSubstr("there is no group a0.a2, only a0, a1, a2; a0.a2 leaves out a1, which "
                        "stands between in the mesh; the reduction is to be axis by axis"));
  EXPECT_THAT(Refused("a1.a0", "reduce-scatter a0.a1: 0", sums, {"S0", "S0", "Psum"}),
              HasSubstr("the ranks of group a1.a0 are in that order, and a reduce-scatter over "
                        "a0.a1 puts parts in another"));
  EXPECT_EQ(Refused("a0.a1", "reduce-scatter a0.a1: 0", sums, {"S0", "S0", "Psum"}), "");
  EXPECT_EQ(Refused("a0,a2", "all-reduce a0; all-reduce a2", {"Psum", "R", "Pavg"}, whole), "");
  EXPECT_EQ(Refused("a0.a2", "all-reduce a0.a2", {"Psum", "R", "Pavg"}, whole), "")
      << "a sum, divided";
}

// Layouts have sums and maxima together on clusters alone; here it is the words that count.
TEST(GivenSteps, SayThatOneCollectiveHasOneReduction) {
  Problem problem = ProblemOf({2, 4}, {64}, {"Psum", "Psum"}, {"R", "R"});
  class Mixed final : public WrappedMoves {
   public:
    using WrappedMoves::WrappedMoves;
    PackedLayout Normal(const PackedLayout& layout) const override {
      PackedLayout mixed = layout;
      if (layout.role(1) == AxisRole::kPartial) mixed.SetPartial(1, ir::Reduction::kMax);
      return mixed;
    }

   private:
    void Change(const PackedLayout&, std::vector<Move>& moves, size_t) const override {
      moves.clear();
    }
  };
  const auto moves = DtensorOf(problem, {.merge = true});
  const auto plan = GivenPlan(Mixed(*moves), problem, "all-reduce a0.a1",
                              [](const PackedLayout&) { return std::string("it"); });
  EXPECT_EQ(plan.status().message(),
            "step 1, 'all-reduce a0.a1': does not apply to it: a0 is partial by sum and a1 by max, "
            "and one collective has one reduction; wanted nothing: no step leads on");
}

// A wait is paid by every step that speaks to others, however little it sends; the cheapest plan
// is the one of an exhaustive search, and the longer the wait the fewer such steps.
TEST(Synchronized, EachStepThatSpeaksWaitsOnce) {
  std::mt19937 random(20261130);
  int fewer = 0;
  for (int i = 0; i < 400; ++i) {
    const Problem problem = SmallProblem(random);
    const auto moves = DtensorOf(problem, {.devices_per_host = 2, .merge = i % 4 != 0});
    int last = 1000;
    for (const double wait : {0.0, 5.0, 1e6}) {
      const Synchronized waiting(*moves, wait);
      const auto plan = CheapestPlan(waiting, PackedLayout(problem.from), PackedLayout(problem.to));
      ASSERT_TRUE(plan.has_value());
      EXPECT_NEAR(plan->cost, Exhausted(waiting, problem, {"0", "1", "0.1", "1.0"}, 0),
                  1e-6 * (1 + plan->cost));
      int steps = 0;
      PackedLayout at = moves->Normal(PackedLayout(problem.from));
      for (const PlannedStep& step : plan->steps) {
        const bool speaks = Communicates(step.step.kind);
        steps += speaks;
        const StepCost with = waiting.CostOf(at, step.step), without = moves->CostOf(at, step.step);
        EXPECT_EQ(with.synchronization - without.synchronization, speaks ? wait : 0);
        EXPECT_NEAR(step.cost, without.total() + (speaks ? wait : 0), 1e-9 * step.cost);
        at = step.step.after;
      }
      EXPECT_LE(steps, last);
      fewer += steps < last && last < 1000;
      last = steps;
    }
  }
  EXPECT_GT(fewer, 10);
}

}  // namespace
}  // namespace groups_test_cc
}  // namespace orrery::transforms::redistribution
