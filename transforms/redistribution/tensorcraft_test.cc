#include "transforms/redistribution/tensorcraft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/paths_test_util.h"
#include "transforms/redistribution/search.h"

// The operations and plans against what tensorcraft itself printed, and against an exhaustive
// search by another program.

namespace orrery::transforms::redistribution {
namespace tensorcraft_test_cc {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json Golden(const std::string& name) {
  std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/", name));
  EXPECT_TRUE(file.good()) << name;
  return json::parse(file);
}

ir::Mesh MeshOf(const std::vector<int64_t>& sizes) {
  std::vector<ir::Axis> axes;
  for (const int64_t size : sizes) axes.push_back({absl::StrCat("a", axes.size()), size});
  return ir::Mesh(std::move(axes));
}

ir::Sharding ShardingOf(const json& mapping, const json& blocks) {
  ir::Sharding sharding;
  for (size_t d = 0; d < mapping.size(); ++d) {
    ir::AxisList list;
    for (const json& axis : mapping[d]) list.push_back(axis.get<ir::AxisIndex>());
    if (!list.empty()) sharding.Set(d, mapping.size(), list, blocks[d].get<int64_t>());
  }
  return sharding;
}

ir::Dims DimsOf(const json& shape) {
  ir::Dims dims;
  for (const json& size : shape) dims.push_back(size.get<int64_t>());
  return dims;
}

Problem ProblemOf(const json& c) {
  return {.mesh = MeshOf(c["mesh"]),
          .dims = DimsOf(c["shape"]),
          .from = ShardingOf(c["source_mapping"], c["source_blocks"]),
          .to = ShardingOf(c["target_mapping"], c["target_blocks"])};
}

// "{(0,1),-}(2,-)"
std::string Print(const PackedLayout& layout, int rank) {
  std::vector<std::string> splits, blocks;
  for (int d = 0; d < rank; ++d) {
    const ir::AxisList axes = layout.axes(d);
    std::vector<int> numbers(axes.axes().begin(), axes.axes().end());
    const std::string list = absl::StrJoin(numbers, ",");
    splits.push_back(numbers.empty() ? "-" : numbers.size() == 1 ? list : "(" + list + ")");
    blocks.push_back(numbers.empty() ? "-" : absl::StrCat(layout.block(d)));
  }
  return absl::StrCat("{", absl::StrJoin(splits, ","), "}(", absl::StrJoin(blocks, ","), ")");
}

std::unique_ptr<TensorcraftMoveSet> MoveSetOf(const Problem& problem,
                                              const TensorcraftOptions& options = {}) {
  auto move_set = TensorcraftMoveSet::Create(problem, options);
  EXPECT_TRUE(move_set.ok()) << move_set.status();
  return *std::move(move_set);
}

// One line an operation: its name, the layout after it, volume, ranks, and elements of that layout.
std::string Line(const std::string& name, const std::string& layout,
                 const TensorcraftVolume& volume, int64_t elements) {
  return absl::StrCat(name, " ", layout, " ", volume.elements, "/", volume.ranks, " ", elements);
}

TEST(Operations, AreThoseOfTensorcraftInItsOrder) {
  int states = 0, edges = 0;
  const json file = Golden("tensorcraft_ops.json");
  for (const json& state : file["states"]) {
    SCOPED_TRACE(state.dump());
    const int rank = static_cast<int>(state["shape"].size());
    Problem problem{
        .mesh = MeshOf(state["mesh"]), .dims = DimsOf(state["shape"]), .from = {}, .to = {}};
    problem.from = ShardingOf(state["mapping"], state["blocks"]);
    const auto move_set = MoveSetOf(problem);
    const PackedLayout layout(problem.from);
    EXPECT_EQ(move_set->Elements(layout), state["max_elements"]);

    std::vector<int64_t> blocks = {1};
    for (const json& block : state["asked"]) blocks.push_back(block.get<int64_t>());
    const TensorcraftTensor tensor(problem.mesh, problem.dims);
    const TensorcraftLayout open = tensor.Open(layout);
    std::vector<std::string> found, expected;
    std::vector<StepCost> costs;
    for (const auto& operation : ListOperations(tensor, open, blocks, Repeats::kAll)) {
      const auto taken = Apply(tensor, open, operation);
      if (!taken.has_value()) continue;
      found.push_back(Line(NameOf(operation), Print(taken->step.after, rank),
                           move_set->VolumeOf(layout, taken->step), taken->elements));
      costs.push_back(move_set->CostOf(layout, taken->step));
    }
    for (const json& next : state["neighbours"]) {
      expected.push_back(Line(next[0], next[1], {next[2].get<double>(), next[3].get<int64_t>()},
                              next[6].get<int64_t>()));
    }
    ASSERT_EQ(found, expected);
    for (size_t i = 0; i < costs.size(); ++i) {
      EXPECT_DOUBLE_EQ(costs[i].latency, state["neighbours"][i][4].get<double>()) << found[i];
      EXPECT_DOUBLE_EQ(costs[i].transfer, state["neighbours"][i][5].get<double>()) << found[i];
    }
    ++states;
    edges += static_cast<int>(found.size());
  }
  EXPECT_EQ(states, 40);
  EXPECT_EQ(edges, 401);
}

// A plan's steps lead from one layout to the other, and cost what they say.
void ExpectWhole(const TensorcraftMoveSet& move_set, const Problem& problem,
                 const RedistributionPlan& plan) {
  PackedLayout at(problem.from);
  double cost = 0;
  int64_t peak = std::max(move_set.Elements(at), move_set.Elements(PackedLayout(problem.to)));
  for (const PlannedStep& step : plan.steps) {
    EXPECT_DOUBLE_EQ(step.cost, move_set.CostOf(at, step.step).total());
    EXPECT_NE(move_set.NameOf(at, step.step), "");
    at = step.step.after;
    cost += step.cost;
    peak = std::max(peak, move_set.Elements(at));
  }
  EXPECT_EQ(at, PackedLayout(problem.to));
  EXPECT_DOUBLE_EQ(cost, plan.cost);
  EXPECT_EQ(peak, plan.peak);
}

class Plans : public ::testing::TestWithParam<json> {
 protected:
  const Problem problem_ = ProblemOf(GetParam());
  const PackedLayout from_ = PackedLayout(problem_.from), to_ = PackedLayout(problem_.to);
  const json totals_ = GetParam()["totals"];
};

TEST_P(Plans, CostAsMuchAsTheOptimum) {
  const auto move_set = MoveSetOf(problem_);
  const auto plan = CheapestPlan(*move_set, from_, to_);
  ASSERT_TRUE(plan.has_value());
  ExpectWhole(*move_set, problem_, *plan);
  EXPECT_DOUBLE_EQ(plan->cost, totals_["optimal_tc_cost"].get<double>());
}

TEST_P(Plans, CostAsMuchAsTheOptimumWithPhysicalVolumes) {
  const auto move_set = MoveSetOf(problem_, {.physical = true});
  const auto plan = CheapestPlan(*move_set, from_, to_);
  ASSERT_TRUE(plan.has_value());
  ExpectWhole(*move_set, problem_, *plan);
  if (totals_["optimal_phys_cost"].is_null()) return;  // the other search gave up
  EXPECT_DOUBLE_EQ(plan->cost, totals_["optimal_phys_cost"].get<double>());
}

TEST_P(Plans, HaveAnAnswerUnderTheLeastMemoryLimit) {
  const auto move_set = MoveSetOf(problem_);
  const int64_t limit = std::max(move_set->Elements(from_), move_set->Elements(to_));
  const auto plan = CheapestPlan(*move_set, from_, to_, limit);
  ASSERT_TRUE(plan.has_value());
  ExpectWhole(*move_set, problem_, *plan);
  EXPECT_LE(plan->peak, limit);
  PackedLayout at = from_;
  bool general = false;
  for (const PlannedStep& step : plan->steps) {
    general |= move_set->NameOf(at, step.step) == "alltoall_*";
    at = step.step.after;
  }
  // tensorcraft's own operations have no answer for some; elsewhere nothing else is taken.
  EXPECT_EQ(general, totals_["optimal_tc_cost_memlimit"].is_null());
  if (general) return;
  EXPECT_DOUBLE_EQ(plan->cost, totals_["optimal_tc_cost_memlimit"].get<double>());
}

TEST_P(Plans, CostWhatTheNaiveOnesDo) {
  if (totals_["naive_head"].is_null()) return;
  EXPECT_DOUBLE_EQ(MoveSetOf(problem_)->Naive().cost, totals_["naive_head"].get<double>());
  EXPECT_DOUBLE_EQ(MoveSetOf(problem_, {.epsilon = 1})->Naive().cost,
                   totals_["naive_old_eps1"].get<double>());
}

INSTANTIATE_TEST_SUITE_P(Golden, Plans,
                         ::testing::ValuesIn(Golden("redistribution_tensorcraft.json")["cases"]
                                                 .get<std::vector<json>>()),
                         [](const auto& test) {
                           return test.param["name"].template get<std::string>();
                         });

TEST(Golden, HasAllCases) {
  EXPECT_EQ(Golden("redistribution_tensorcraft.json")["cases"].size(), 48);
}

// The tables of tensorcraft's notebook: operation, layout, cost, and memory in elements.
std::vector<std::string> Table(const TensorcraftMoveSet& move_set, const Problem& problem,
                               const RedistributionPlan& plan) {
  const int rank = static_cast<int>(problem.dims.size());
  PackedLayout at(problem.from);
  std::vector<std::string> rows = {absl::StrCat(Print(at, rank), " ", move_set.Elements(at))};
  for (const PlannedStep& step : plan.steps) {
    rows.push_back(absl::StrCat(move_set.NameOf(at, step.step), " ", Print(step.step.after, rank),
                                " ", step.cost, " ", move_set.Elements(step.step.after)));
    at = step.step.after;
  }
  return rows;
}

ir::Sharding Split(size_t rank,
                   const std::vector<std::pair<std::vector<ir::AxisIndex>, int64_t>>& dims) {
  ir::Sharding sharding;
  for (size_t d = 0; d < dims.size(); ++d) {
    ir::AxisList list;
    for (const ir::AxisIndex axis : dims[d].first) list.push_back(axis);
    if (!list.empty()) sharding.Set(d, rank, list, dims[d].second);
  }
  return sharding;
}

TEST(Notebook, NaiveTable) {
  const Problem problem{.mesh = MeshOf({2, 4}),
                        .dims = {50, 50},
                        .from = Split(2, {{{0}, 10}}),
                        .to = Split(2, {{}, {{0}, 10}})};
  const auto move_set = MoveSetOf(problem, {.epsilon = 1});
  const RedistributionPlan plan = move_set->Naive();
  EXPECT_THAT(Table(*move_set, problem, plan),
              ElementsAre("{0,-}(10,-) 1500", "allgather_* {-,-}(-,-) 2501 2500",
                          "split_* {-,0}(-,10) 0 1500"));
  EXPECT_EQ(plan.cost, 2501.0);
}

TEST(Notebook, TableOfTwoDimensions) {
  const Problem problem{.mesh = MeshOf({2, 4}),
                        .dims = {100, 100},
                        .from = Split(2, {{{0}, 2}}),
                        .to = Split(2, {{}, {{0}, 2}})};
  const auto move_set = MoveSetOf(problem);
  const auto plan =
      CheapestPlan(*move_set, PackedLayout(problem.from), PackedLayout(problem.to), 5000);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(Table(*move_set, problem, *plan),
              ElementsAre("{0,-}(2,-) 5000", "alltoall_0_1_-1 {-,0}(-,2) 5001 5000"));
  EXPECT_EQ(plan->cost, 5001.0);
}

Problem FourDimensions() {
  return {.mesh = MeshOf({4, 2, 4}),
          .dims = {800, 400, 800, 4},
          .from = Split(4, {{{0, 1}, 100}}),
          .to = Split(4, {{}, {{1}, 100}, {{0}, 100}})};
}

TEST(Notebook, TableOfFourDimensions) {
  const Problem problem = FourDimensions();
  const TensorcraftOptions options{.alpha = 0.01, .beta = 64.0 / 200003};
  const auto move_set = MoveSetOf(problem, options);
  for (const int64_t limit : {int64_t{128000000}, kNoLimit}) {
    const auto plan =
        CheapestPlan(*move_set, PackedLayout(problem.from), PackedLayout(problem.to), limit);
    ASSERT_TRUE(plan.has_value());
    EXPECT_THAT(Table(*move_set, problem, *plan),
                ElementsAre("{(0,1),-,-,-}(100,-,-,-) 128000000",
                            "split_3_2_1 {(0,1),-,-,2}(100,-,-,1) 0 32000000",
                            "alltoall_mf_0_1_-1 {0,1,-,2}(200,100,-,1) 10239.9 32000000",
                            "alltoall_0_2_100 {-,1,0,2}(-,100,100,1) 30719.6 32000000",
                            "allgather_2 {-,1,0,-}(-,100,100,-) 30719.6 128000000"));
    EXPECT_DOUBLE_EQ(plan->cost, 71678.97481612775);
    EXPECT_LE(plan->expanded, 1922);
  }
}

TEST(Notebook, TableOfFourDimensionsWithPhysicalVolumes) {
  const Problem problem = FourDimensions();
  const auto move_set =
      MoveSetOf(problem, {.alpha = 0.01, .beta = 64.0 / 200003, .physical = true});
  const auto plan = CheapestPlan(*move_set, PackedLayout(problem.from), PackedLayout(problem.to));
  ASSERT_TRUE(plan.has_value());
  EXPECT_DOUBLE_EQ(plan->cost, 43519.39720979185);
}

std::string ErrorOf(const Problem& problem) {
  return TensorcraftMoveSet::Create(problem, {}).status().ToString();
}

TEST(Errors, NameTheLayoutAndWhatIsWanted) {
  Problem problem{.mesh = MeshOf({4, 2}), .dims = {12, 3}, .from = {}, .to = {}};
  problem.from = Split(2, {{{0, 1}, 2}});
  EXPECT_THAT(
      ErrorOf(problem),
      HasSubstr("source: dimension 0 of 12 elements on 8 ranks: got a block of 2; wanted an "
                "element for every rank, with a block of 1 to 1"));
  problem.from = Split(2, {{{0, 1}, ir::kNestedChunks}});
  EXPECT_THAT(ErrorOf(problem), HasSubstr("got chunks that differ in size"));
  problem.from = {};
  problem.to = Split(2, {{}, {{0}, 1}});
  EXPECT_THAT(ErrorOf(problem), HasSubstr("target: dimension 1 of 3 elements on 4 ranks: got a "
                                          "block of 1; wanted an element for every rank, on at "
                                          "most 3 ranks"));
  problem.to = {};
  problem.to.partial = ir::AxisList(1);
  EXPECT_THAT(ErrorOf(problem), HasSubstr("target: axis 1 is partial"));
  problem.to = Split(2, {{{2}, 1}});
  EXPECT_THAT(ErrorOf(problem), HasSubstr("got axis 2, of a mesh of 2,"));
  problem.to = {};
  problem.dims = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(ErrorOf(problem), HasSubstr("more than 2^60"));
  problem.dims = {0, 4};
  EXPECT_THAT(ErrorOf(problem), HasSubstr("dimensions without elements"));
  problem.dims = ir::Dims(31, 1);
  EXPECT_THAT(ErrorOf(problem), HasSubstr("got 31 dimensions; wanted at most 30"));
}

TEST(Options, AreRead) {
  EXPECT_EQ(*ParseTensorcraftOptions(""), TensorcraftOptions{});
  EXPECT_EQ(*ParseTensorcraftOptions("alpha=0.01,beta=0.00032,physical"),
            (TensorcraftOptions{.alpha = 0.01, .beta = 0.00032, .physical = true}));
  EXPECT_EQ(*ParseTensorcraftOptions("epsilon=1,gamma=0"),
            (TensorcraftOptions{.gamma = 0, .epsilon = 1}));
}

TEST(Options, OthersAreErrors) {
  for (const std::string text : {"delta=1", "alpha", "alpha=", "alpha=-1", "beta=inf", "beta=nan",
                                 "alpha=1x", "physical=1", ",", "alpha=1,", "=1"}) {
    const auto options = ParseTensorcraftOptions(text);
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_THAT(options.status().ToString(), HasSubstr("tensorcraft: got option '"));
    EXPECT_THAT(options.status().ToString(), HasSubstr("alpha=0.01,beta=0.00032,physical"));
  }
  EXPECT_THAT(ParseTensorcraftOptions("alpha=1,alpha=2").status().ToString(),
              HasSubstr("got option 'alpha=2' again; wanted"));
  EXPECT_THAT(ParseTensorcraftOptions("physical,physical").status().ToString(),
              HasSubstr("got option 'physical' again; wanted"));
}

}  // namespace
}  // namespace tensorcraft_test_cc
}  // namespace orrery::transforms::redistribution
