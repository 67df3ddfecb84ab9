#include "transforms/redistribution/dtensor.h"

#include <limits>
#include <map>
#include <random>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/testing/dtensor_cost_by_axis.h"

namespace orrery::transforms::redistribution {
namespace dtensor_test_cc {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

DtensorOptions OptionsOf(const nlohmann::json& golden) {
  return {.devices_per_host = golden["devices_per_host"]};
}

TEST(Dtensor, FindsTheBestPlansOfTheGoldens) {
  size_t cases = 0;
  for (const auto& golden : DtensorGolden()["cases"]) {
    const Problem problem = ProblemOf(golden);
    DtensorOptions options = OptionsOf(golden);
    const double cost = golden["graph_cost_us"];
    const RedistributionPlan plan = PlanOf(problem, options);
    EXPECT_THAT(plan.cost, DoubleNear(cost, 1e-9 * cost)) << golden["name"];
    EXPECT_LE(plan.steps.size(), golden["graph_steps"].size()) << golden["name"];
    options.all_to_all_penalty = 0;
    const double without = golden["graph_no_a2a_penalty_cost_us"];
    EXPECT_THAT(PlanOf(problem, options).cost, DoubleNear(without, 1e-9 * without));
    options = {.devices_per_host = options.devices_per_host, .merge = true};
    EXPECT_LE(PlanOf(problem, options).cost, cost * (1 + 1e-12)) << golden["name"];
    ++cases;
  }
  EXPECT_EQ(cases, 29);
}

TEST(Dtensor, OfIssue169439ToTheLastBit) {
  const auto& golden = DtensorGolden()["issue_169439"];
  const auto mesh = golden["mesh"].get<std::vector<int64_t>>();
  const auto placements = [&](const char* name) { return golden[name].get<Placements>(); };
  const DtensorOptions options = {.devices_per_host = 1};
  const auto problem = [&](const char* from, const char* to) {
    return ProblemOf(mesh, {64, 32}, placements(from), placements(to));
  };
  EXPECT_EQ(PlanOf(problem("src", "dst"), options).cost, golden["graph_src_dst"]);
  EXPECT_EQ(PlanOf(problem("src", "dst"), {.devices_per_host = 1, .merge = true}).cost,
            golden["graph_src_dst"]);
  // What DTensor published, which breaks the triangle's inequality.
  EXPECT_EQ(*DtensorCostByAxis(problem("src", "dst"), options), golden["published_src_dst"]);
  EXPECT_EQ(*DtensorCostByAxis(problem("src", "mid"), options), 0);
  EXPECT_EQ(*DtensorCostByAxis(problem("mid", "dst"), options), golden["published_mid_dst"]);
}

TEST(Dtensor, OfIssue177669GathersBeforeItMoves) {
  const auto& anchors = DtensorGolden()["published_anchors"];
  const Problem problem = ProblemOf({2}, {8, 8}, {"S0"}, {"S1"});
  const DtensorOptions options = {.devices_per_host = 1};
  const RedistributionPlan plan = PlanOf(problem, options);
  EXPECT_THAT(StepsOf(plan), ElementsAre("all-gather(0) from 0", "slice(0) to 1"));
  EXPECT_THAT(plan.cost, DoubleNear(anchors[1]["ours"].get<double>(), 1e-9));
  EXPECT_THAT(*DtensorCostByAxis(problem, options),
              DoubleNear(anchors[2]["ours"].get<double>(), 1e-9));
}

// A gradient's way in data-parallel training with shards and tensor parallelism.
TEST(Dtensor, OfThreeReductions) {
  const auto& golden = DtensorGolden()["hsdp_ppp_to_rsr"]["bytes"];
  const std::vector<std::pair<const char*, std::vector<int64_t>>> sizes = {
      {"1MiB", {64, 64, 64}}, {"256MiB", {256, 512, 512}}};
  for (const auto& [name, dims] : sizes) {
    const Problem problem = ProblemOf({2, 4, 8}, dims, {"Psum", "Psum", "Psum"}, {"R", "S0", "R"});
    const double best = golden[name]["graph"];
    EXPECT_THAT(PlanOf(problem).cost, DoubleNear(best, 1e-9 * best));
    EXPECT_LE(PlanOf(problem, {.merge = true}).cost, best * (1 + 1e-12));
    const RedistributionPlan once =
        PlanOf(problem, {.consistency = ReplicaConsistency::kReducedOnce});
    EXPECT_LE(once.cost, best * (1 + 1e-12)) << "DTensor's best plan reduces each number once";
    const RedistributionPlan together =
        PlanOf(problem, {.consistency = ReplicaConsistency::kOneAllReduce});
    EXPECT_THAT(StepsOf(together), ElementsAre("reduce-scatter(1) to 0", "all-reduce(0,2)"));
    EXPECT_LE(together.cost, golden[name]["rs1_then_flat_ring_ar02"].get<double>());
  }
}

// All layouts that can be reached, by breadth.
size_t CountLayouts(const Problem& problem, const DtensorOptions& options = {}) {
  const auto move_set = DtensorOf(problem, options);
  std::vector<PackedLayout> layouts = {PackedLayout(problem.from)};
  absl::flat_hash_map<PackedLayout, bool> seen = {{layouts[0], true}};
  std::vector<Move> moves;
  for (size_t i = 0; i < layouts.size(); ++i) {
    moves.clear();
    move_set->Expand(layouts[i], moves);
    for (const Move& move : moves) {
      if (seen.emplace(move.step.after, true).second) layouts.push_back(move.step.after);
    }
  }
  return layouts.size();
}

// Of the axes, k split: in any order, and divided between the dimensions in any way.
int64_t LayoutsByFormula(int64_t axes, int64_t dims, int64_t reductions) {
  int64_t sum = 0;
  for (int64_t k = 0; k <= axes; ++k) {
    int64_t product = 1;
    for (int64_t i = 0; i < k; ++i) product = product * (axes - i) / (i + 1);  // choose k
    for (int64_t i = k; i < axes; ++i) product *= 1 + reductions;
    for (int64_t i = 0; i < k; ++i) product *= dims + i;
    sum += product;
  }
  return sum;
}

TEST(Dtensor, ReachesAsManyLayoutsAsThereAre) {
  for (const auto& row : DtensorGolden()["graph_planner_growth"]) {
    const size_t axes = row["M"], dims = row["N"];
    const std::vector<int64_t> mesh(axes, 2), shape(dims, 64);
    const Placements replicated(axes, "R");
    Placements partial = replicated;
    partial[0] = "Psum";
    const auto count = [&](int64_t reductions) {
      return LayoutsByFormula(static_cast<int64_t>(axes), static_cast<int64_t>(dims), reductions);
    };
    EXPECT_EQ(count(0), row["formula_states_no_partial"]);
    EXPECT_EQ(count(1), row["formula_states_one_reduce_op"]);
    if (axes > 4) continue;  // takes its time
    EXPECT_EQ(CountLayouts(ProblemOf(mesh, shape, replicated, replicated)), count(0));
    EXPECT_EQ(CountLayouts(ProblemOf(mesh, shape, replicated, partial)), count(1));
    EXPECT_EQ(CountLayouts(ProblemOf(mesh, shape, replicated, partial), {.merge = true}), count(1));
    if (axes < 2) continue;
    partial[1] = "Pavg";
    EXPECT_EQ(CountLayouts(ProblemOf(mesh, shape, replicated, partial)), count(2));
  }
}

TEST(Dtensor, DoesNotMixReductions) {
  const Problem problem = ProblemOf({2, 2}, {8}, {"Psum", "R"}, {"R", "Pmax"});
  const RedistributionPlan plan = PlanOf(problem);
  EXPECT_THAT(StepsOf(plan), ElementsAre("all-reduce(0)", "make-partial(1)"));
  EXPECT_THAT(
      MakeDtensor(ProblemOf({2, 2}, {8}, {"Psum", "Pmax"}, {"R", "R"}), {}).status().message(),
      HasSubstr("source: partial with different reductions"));
  EXPECT_TRUE(MakeDtensor(ProblemOf({2, 2}, {8}, {"Psum", "Pavg"}, {"R", "R"}), {}).ok());
}

TEST(Dtensor, RefusesWhatItDoesNotHave) {
  Problem problem = ProblemOf({2}, {8}, {"S0"}, {"R"});
  problem.from.Set(0, 1, ir::AxisList(0), 2);
  EXPECT_THAT(MakeDtensor(problem, {}).status().message(), HasSubstr("dimension 0 is in blocks"));
  EXPECT_THAT(
      MakeDtensor(ProblemOf({2}, {8}, {"R"}, {"R"}), {.devices_per_host = 0}).status().message(),
      HasSubstr("devices_per_host is 0"));
  const int64_t much = int64_t{1} << 40;
  EXPECT_THAT(MakeDtensor(ProblemOf({2}, {much, much}, {"R"}, {"R"}), {}).status().message(),
              HasSubstr("at most 2^60 bytes"));
}

TEST(Dtensor, ElementsAreThoseOfTheFirstChunks) {
  // 10 elements in chunks of 4, 4 and 2; 4 in chunks of 2 and 2.
  const Problem problem = ProblemOf({3, 2}, {10, 7}, {"S0", "S0"}, {"R", "S1"});
  const auto move_set = DtensorOf(problem);
  EXPECT_EQ(move_set->Elements(PackedLayout(problem.from)), 2 * 7);
  EXPECT_EQ(move_set->Elements(PackedLayout(problem.to)), 10 * 4);
  Problem other = problem;
  other.from = ShardingOf({"R", "R"}, 2);
  ir::AxisList inner_first(1);
  inner_first.push_back(0);
  other.from.Set(0, 2, inner_first);  // 10 in 2 chunks of 5, in chunks of 2, 2 and 1
  EXPECT_EQ(move_set->Elements(PackedLayout(other.from)), 2 * 7);
}

TEST(Dtensor, MakingPartialMayCostItsKernel) {
  const Problem problem = ProblemOf({4}, {1024, 1024}, {"R"}, {"Psum"});
  EXPECT_EQ(PlanOf(problem).cost, 0);
  const DtensorOptions options = {.partial_cost = 7, .memory_bandwidth = 2048};
  const RedistributionPlan plan = PlanOf(problem, options);
  const double copy = 2.0 * (1 << 22) / (2048.0 * (1 << 30)) * 1e6;
  EXPECT_THAT(plan.cost, DoubleNear(7 + copy, 1e-9));
  const auto move_set = DtensorOf(problem, options);
  const StepCost cost = move_set->CostOf(PackedLayout(problem.from), plan.steps[0].step);
  EXPECT_EQ(cost.launches, 7);
  EXPECT_THAT(cost.copy, DoubleNear(copy, 1e-12));
}

TEST(Dtensor, NamesStepsAsDtensorDoes) {
  const Problem problem = ProblemOf({2, 2}, {8, 8}, {"S0", "Psum"}, {"S1", "R"});
  const auto move_set = DtensorOf(problem, {.merge = true});
  std::set<std::string> names;
  std::vector<Move> moves;
  move_set->Expand(PackedLayout(problem.from), moves);
  move_set->Expand(PackedLayout(), moves);
  for (const Move& move : moves) {
    names.insert(move_set->NameOf(PackedLayout(problem.from), move.step));
  }
  EXPECT_THAT(names,
              ElementsAre("all_gather", "all_reduce", "all_to_all", "local", "reduce_scatter"));
}

class RandomDtensor : public testing::TestWithParam<int> {
 protected:
  // Pairs of a problem and options, all different by the test's parameter.
  std::pair<Problem, DtensorOptions> Draw(int most_axes) {
    const Problem problem = RandomProblem(random_, most_axes);
    DtensorOptions options = {.devices_per_host = 1 + static_cast<int64_t>(random_() % 9)};
    options.merge = random_() % 2 == 0;
    options.consistency = static_cast<ReplicaConsistency>(random_() % 3);
    if (random_() % 2 == 0) options.partial_cost = static_cast<double>(random_() % 50);
    return {problem, options};
  }

  std::mt19937 random_{static_cast<uint32_t>(GetParam())};
};

// Moves say what CostOf and Elements say, and lead elsewhere.
TEST_P(RandomDtensor, MovesAgreeWithCostsAndElements) {
  const auto [problem, options] = Draw(4);
  const auto move_set = DtensorOf(problem, options);
  std::vector<Move> moves;
  for (PackedLayout layout(problem.from); moves.size() < 200;) {
    const size_t first = moves.size();
    move_set->Expand(layout, moves);
    if (moves.size() == first) break;
    for (size_t i = first; i < moves.size(); ++i) {
      const Step& step = moves[i].step;
      const double cost = move_set->CostOf(layout, step).total();
      EXPECT_THAT(moves[i].cost, DoubleNear(cost, 1e-9 * cost));
      const int64_t before = move_set->Elements(layout), after = move_set->Elements(step.after);
      EXPECT_EQ(moves[i].peak, before + (step.kind == MoveKind::kSlice ? 0 : after));
      EXPECT_FALSE(step.after == layout);
    }
    layout = moves[first + random_() % (moves.size() - first)].step.after;
  }
}

// The least costs to the target of all layouts that the source reaches, by going over all moves
// until nothing changes.
TEST_P(RandomDtensor, PlansAndBoundsAgreeWithExhaustion) {
  const auto [problem, options] = Draw(3);
  const auto move_set = DtensorOf(problem, options);
  std::vector<PackedLayout> layouts = {PackedLayout(problem.from)};
  absl::flat_hash_map<PackedLayout, size_t> number = {{layouts[0], 0}};
  std::vector<std::vector<std::pair<size_t, double>>> edges;
  std::vector<Move> moves;
  for (size_t i = 0; i < layouts.size(); ++i) {
    moves.clear();
    move_set->Expand(layouts[i], moves);
    edges.emplace_back();
    for (const Move& move : moves) {
      const auto [at, added] = number.emplace(move.step.after, layouts.size());
      if (added) layouts.push_back(move.step.after);
      edges[i].emplace_back(at->second, move.cost);
    }
  }
  std::vector<double> least(layouts.size(), std::numeric_limits<double>::infinity());
  const auto target = number.find(PackedLayout(problem.to));
  ASSERT_NE(target, number.end()) << "there is always a plan";
  least[target->second] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < layouts.size(); ++i) {
      for (const auto& [to, cost] : edges[i]) {
        if (cost + least[to] >= least[i]) continue;
        least[i] = cost + least[to];
        changed = true;
      }
    }
  }
  EXPECT_THAT(PlanOf(problem, options).cost, DoubleNear(least[0], 1e-9 * least[0]));
  EXPECT_EQ(move_set->LowerBound(PackedLayout(problem.to)), 0);
  for (size_t i = 0; i < layouts.size(); ++i) {
    EXPECT_LE(move_set->LowerBound(layouts[i]), least[i]);
    for (const auto& [to, cost] : edges[i]) {
      EXPECT_LE(move_set->LowerBound(layouts[i]),
                (cost + move_set->LowerBound(layouts[to])) * (1 + 1e-9));
    }
  }
}

TEST_P(RandomDtensor, MoreStepsAndFewerConstraintsCostNoMore) {
  auto [problem, options] = Draw(4);
  const double slack = 1 + 1e-12;
  options.consistency = ReplicaConsistency::kOneAllReduce;
  const double together = PlanOf(problem, options).cost;
  options.consistency = ReplicaConsistency::kReducedOnce;
  const double once = PlanOf(problem, options).cost;
  options.consistency = ReplicaConsistency::kAny;
  options.merge = true;
  const double merged = PlanOf(problem, options).cost;
  options.merge = false;
  EXPECT_LE(once, together * slack);
  EXPECT_LE(merged, once * slack);
  EXPECT_LE(merged, PlanOf(problem, options).cost * slack);
}

INSTANTIATE_TEST_SUITE_P(Problems, RandomDtensor, testing::Range(0, 60));

TEST(ParseDtensorOptions, ReadsAll) {
  EXPECT_EQ(ParseDtensorOptions("")->devices_per_host, 8);
  const auto options = ParseDtensorOptions(
      "devices_per_host=4,all_to_all_penalty=0,merge,partial_cost=7.5,memory_bandwidth=2000,"
      "replica_consistent");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->devices_per_host, 4);
  EXPECT_EQ(options->all_to_all_penalty, 0);
  EXPECT_TRUE(options->merge);
  EXPECT_EQ(options->partial_cost, 7.5);
  EXPECT_EQ(options->memory_bandwidth, 2000);
  EXPECT_EQ(options->consistency, ReplicaConsistency::kOneAllReduce);
  EXPECT_EQ(ParseDtensorOptions("replica_consistent=reduced-once")->consistency,
            ReplicaConsistency::kReducedOnce);
}

TEST(ParseDtensorOptions, SaysWhatIsWrong) {
  const auto error = [](absl::string_view text) {
    return std::string(ParseDtensorOptions(text).status().message());
  };
  EXPECT_EQ(error("devices_per_host=0"),
            "dtensor: devices_per_host is '0'; wanted a whole number of at least 1, as in "
            "devices_per_host=8");
  EXPECT_THAT(error("devices_per_host=99999999999999999999"), HasSubstr("wanted a whole number"));
  EXPECT_THAT(error("partial_cost=-1"), HasSubstr("partial_cost is '-1'; wanted a number"));
  EXPECT_THAT(error("partial_cost=nan"), HasSubstr("wanted a number"));
  EXPECT_THAT(error("merge=yes"), HasSubstr("merge is 'yes'; wanted no value"));
  EXPECT_THAT(error("replica_consistent=no"), HasSubstr("wanted no value, or reduced-once"));
  EXPECT_THAT(error("merge,merge"), HasSubstr("merge is given twice"));
  EXPECT_THAT(error("host=8"), HasSubstr("no option 'host'; wanted devices_per_host"));
  EXPECT_THAT(error(","), HasSubstr("no option ''"));
}

}  // namespace
}  // namespace dtensor_test_cc
}  // namespace orrery::transforms::redistribution
