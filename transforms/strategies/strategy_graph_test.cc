#include "transforms/strategies/strategy_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "transforms/strategies/random_graph_test_util.h"

namespace orrery::transforms::strategies {
namespace strategy_graph_test_cc {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// How much the live set that is over its budget the most is over it.
double ExcessOf(const StrategyGraph& graph, const std::vector<int32_t>& assignment) {
  double excess = -kImpossible;
  for (const LiveSet& live : graph.live_sets) {
    excess = std::max(excess, MemoryOf(graph, live, assignment) - live.budget);
  }
  return excess;
}

struct Best {
  double cost = kImpossible;
  double excess = kImpossible;  // the least there is, of all possible choices
};

// All choices, one after the other.
Best Enumerate(const StrategyGraph& graph) {
  Best best;
  std::vector<int32_t> assignment(graph.nodes.size());
  while (true) {
    const double cost = CostOf(graph, assignment);
    if (cost != kImpossible) {
      const double excess = ExcessOf(graph, assignment);
      best.excess = std::min(best.excess, excess);
      if (excess <= 1e-9) best.cost = std::min(best.cost, cost);
    }
    size_t i = 0;
    while (i < assignment.size() &&
           ++assignment[i] == static_cast<int32_t>(graph.nodes[i].cost.size())) {
      assignment[i++] = 0;
    }
    if (i == assignment.size()) return best;
  }
}

void ExpectBest(const StrategyGraph& graph, const SolveOptions& options = {}) {
  const Best best = Enumerate(graph);
  const StrategyChoice choice = SolveStrategies(graph, options).value();
  if (best.cost == kImpossible) {
    ASSERT_TRUE(choice.none.has_value());
    EXPECT_THAT(choice.assignment, IsEmpty());
    EXPECT_TRUE(choice.none->proven);
    EXPECT_EQ(choice.none->live_set >= 0, best.excess != kImpossible);
    if (best.excess != kImpossible) {
      EXPECT_NEAR(choice.none->excess, best.excess, 1e-6);
    }
    return;
  }
  ASSERT_FALSE(choice.none.has_value()) << choice.none->reason;
  EXPECT_TRUE(choice.optimal());
  EXPECT_NEAR(choice.cost, best.cost, 1e-9);
  EXPECT_DOUBLE_EQ(choice.cost, CostOf(graph, choice.assignment));
  EXPECT_LE(ExcessOf(graph, choice.assignment), 1e-9);
}

StrategyGraph RandomGraph(uint32_t seed, int32_t nodes, int32_t most_strategies) {
  std::mt19937 random(seed);
  StrategyGraph graph;
  for (int32_t i = 0; i < nodes; ++i) {
    AddRandomNode(graph, Draw(random, 1, most_strategies), random);
  }
  const int32_t impossible = Draw(random, 0, 1) * Draw(random, 2, 6);
  const int32_t density = Draw(random, 1, 4);
  for (int32_t i = 0; i < nodes; ++i) {
    for (int32_t j = i + 1; j < nodes; ++j) {
      if (Draw(random, 0, density) > 0) continue;
      const bool forward = Draw(random, 0, 1) == 1;
      AddRandomEdge(graph, forward ? i : j, forward ? j : i, impossible, random);
    }
  }
  for (int32_t i = Draw(random, 0, 3); i > 0 && nodes > 1; --i) {
    const int32_t a = Draw(random, 0, nodes - 2), b = Draw(random, a + 1, nodes - 1);
    const auto strategy = [&](int32_t node) {
      const auto count = graph.nodes[static_cast<size_t>(node)].cost.size();
      return Draw(random, 0, static_cast<int32_t>(count) - 1);
    };
    graph.incompatible.push_back({a, strategy(a), b, strategy(b)});
  }
  return graph;
}

// Live sets of random nodes, with budgets from scarce to ample.
void AddRandomLiveSets(StrategyGraph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  for (int32_t sets = Draw(random, 1, 4); sets > 0; --sets) {
    LiveSet live{.name = absl::StrCat("t", sets), .nodes = {}};
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (Draw(random, 0, 2) > 0) live.nodes.push_back(static_cast<int32_t>(i));
    }
    live.budget = static_cast<double>(live.nodes.size()) * Draw(random, 6, 24);
    graph.live_sets.push_back(std::move(live));
  }
}

json Golden() {
  std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/auto_parallel_alpa.json"));
  return json::parse(file);
}

StrategyGraph GraphOf(const json& golden) {
  StrategyGraph graph;
  for (size_t i = 0; i < golden["nodes"].get<size_t>(); ++i) {
    StrategyNode node{
        .name = absl::StrCat("n", i), .cost = golden["compute"][i], .memory = golden["memory"][i]};
    for (size_t a = 0; a < node.cost.size(); ++a)
      node.cost[a] += golden["comm"][i][a].get<double>();
    graph.nodes.push_back(std::move(node));
  }
  for (size_t e = 0; e < golden["edges"].size(); ++e) {
    StrategyEdge edge{.from = golden["edges"][e][0], .to = golden["edges"][e][1], .cost = {}};
    for (const json& row : golden["reshard"][e]) {
      for (const json& cost : row) edge.cost.push_back(cost);
    }
    graph.edges.push_back(std::move(edge));
  }
  if (golden["memory_budget"].is_null()) return graph;
  for (const json& nodes : golden["live_sets"]) {
    graph.live_sets.push_back({.name = "", .nodes = nodes, .budget = golden["memory_budget"]});
  }
  return graph;
}

TEST(SolveStrategies, FindsTheOptimaOfTheGoldenPrograms) {
  const json file = Golden();
  ASSERT_EQ(file["ilp_instances"].size(), 8u);
  for (const json& golden : file["ilp_instances"]) {
    const StrategyGraph graph = GraphOf(golden);
    const StrategyChoice choice = SolveStrategies(graph).value();
    EXPECT_NEAR(choice.cost, golden["optimum"].get<double>(), 1e-9);
    EXPECT_EQ(choice.assignment, golden["assignment"].get<std::vector<int32_t>>());
    EXPECT_TRUE(choice.optimal());
  }
}

TEST(SolveStrategies, IsEnumerationWithoutBudgets) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    ExpectBest(RandomGraph(seed, 1 + static_cast<int32_t>(seed % 8), 4));
  }
}

TEST(SolveStrategies, IsEnumerationWithBudgets) {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    StrategyGraph graph = RandomGraph(seed, 1 + static_cast<int32_t>(seed % 8), 4);
    AddRandomLiveSets(graph, seed);
    ExpectBest(graph);
  }
}

// With tables so small every bucket is split, so that bounds and search have to do the work.
TEST(SolveStrategies, IsEnumerationWhereTablesAreTooLarge) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    StrategyGraph graph = RandomGraph(seed, 5 + static_cast<int32_t>(seed % 4), 4);
    if (seed % 2 == 1) AddRandomLiveSets(graph, seed);
    ExpectBest(graph, {.repeats = {}, .table_limit = 16});
  }
}

TEST(SolveStrategies, OfAnEmptyGraphIsNothing) {
  const StrategyChoice choice = SolveStrategies({}).value();
  EXPECT_TRUE(choice.optimal());
  EXPECT_EQ(choice.cost, 0);
  EXPECT_THAT(choice.assignment, IsEmpty());
}

TEST(SolveStrategies, AddsUpEdgesBetweenTheSameNodes) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {0, 0}, .memory = {}},
                 {.name = "b", .cost = {0, 0, 0}, .memory = {}}};
  graph.edges = {{.from = 0, .to = 1, .cost = {1, 2, 5, 4, 5, 6}},
                 {.from = 1, .to = 0, .cost = {9, 9, 2, 9, 1, 1}}};
  const StrategyChoice choice = SolveStrategies(graph).value();
  EXPECT_THAT(choice.assignment, ElementsAre(0, 1));
  EXPECT_EQ(choice.cost, 4);
}

// The cheapest choice needs 12 at t0; the next one fits.
TEST(SolveStrategies, TakesWhatFitsMemory) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {1, 3}, .memory = {6, 1}},
                 {.name = "b", .cost = {1, 4}, .memory = {6, 1}}};
  graph.live_sets = {{.name = "t0", .nodes = {0, 1}, .budget = 10}};
  const StrategyChoice choice = SolveStrategies(graph).value();
  EXPECT_THAT(choice.assignment, ElementsAre(1, 0));
  EXPECT_EQ(choice.cost, 4);
}

TEST(SolveStrategies, SaysWhichLiveSetIsShortAndByHowMuch) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {1, 3}, .memory = {6, 4}},
                 {.name = "b", .cost = {1, 4}, .memory = {6, 5}}};
  graph.live_sets = {{.name = "ample", .nodes = {0}, .budget = 4},
                     {.name = "scarce", .nodes = {0, 1}, .budget = 7}};
  const StrategyChoice choice = SolveStrategies(graph).value();
  ASSERT_TRUE(choice.none.has_value());
  EXPECT_EQ(choice.none->live_set, 1);
  EXPECT_EQ(choice.none->excess, 2);
  EXPECT_TRUE(choice.none->proven);
  EXPECT_EQ(choice.none->reason,
            "live set 1 'scarce': needs 9, has 7; the smallest excess there is");
}

TEST(SolveStrategies, NamesTheNodeThatHasNoStrategy) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {1, kImpossible}, .memory = {}},
                 {.name = "b", .cost = {1, 2}, .memory = {}}};
  graph.incompatible = {{0, 0, 1, 0}, {1, 1, 0, 0}};
  const StrategyChoice choice = SolveStrategies(graph).value();
  ASSERT_TRUE(choice.none.has_value());
  EXPECT_EQ(choice.none->live_set, -1);
  EXPECT_THAT(choice.none->reason, HasSubstr("each strategy is impossible"));
}

// Cliques with budgets, and next to no labels: the answer is honest about its gap.
TEST(SolveStrategies, ReturnsTheBestFoundWhenItGivesUp) {
  int32_t unproven = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    StrategyGraph graph;
    for (int32_t i = 0; i < 7; ++i) {
      AddRandomNode(graph, 4, random);
      for (int32_t j = 0; j < i; ++j) AddRandomEdge(graph, j, i, 0, random);
      for (size_t e = 0; e < graph.edges.size(); ++e) graph.edges[e].cost[e % 16] += 7;
    }
    AddRandomLiveSets(graph, seed);
    const Best best = Enumerate(graph);
    const StrategyChoice choice =
        SolveStrategies(graph, {.repeats = {}, .label_limit = 1, .table_limit = 8}).value();
    if (choice.none.has_value()) {
      EXPECT_FALSE(choice.none->proven && best.cost != kImpossible);
      continue;
    }
    EXPECT_GE(choice.cost, best.cost - 1e-9);
    EXPECT_LE(choice.bound, best.cost + 1e-9);
    if (choice.optimal()) {
      EXPECT_NEAR(choice.cost, best.cost, 1e-9);
    }
    unproven += choice.optimal() ? 0 : 1;
  }
  EXPECT_GT(unproven, 0);
}

TEST(SolveStrategies, BearsTheLargestAndTheSmallestNumbers) {
  for (const double large : {1e100, -1e100, 1e-300}) {
    for (const double budget : {0.0, -1.0, 1e-300, 1e100}) {
      StrategyGraph graph;
      graph.nodes = {{.name = "a", .cost = {large, 1}, .memory = {0, 1e100}},
                     {.name = "b", .cost = {2, large}, .memory = {1e100, 0}}};
      graph.edges = {{.from = 0, .to = 1, .cost = {large, 0, kImpossible, large}}};
      graph.live_sets = {{.name = "t", .nodes = {0, 1}, .budget = budget}};
      const Best best = Enumerate(graph);
      const StrategyChoice choice = SolveStrategies(graph).value();
      EXPECT_EQ(choice.none.has_value(), best.cost == kImpossible) << large << " " << budget;
      if (!choice.none.has_value()) {
        EXPECT_DOUBLE_EQ(choice.cost, best.cost);
      }
    }
  }
}

std::string ErrorOf(const StrategyGraph& graph) {
  return std::string(SolveStrategies(graph).status().message());
}

TEST(SolveStrategies, RejectsWhatDoesNotFitTogether) {
  const StrategyGraph good = RandomGraph(3, 4, 3);
  StrategyGraph bad = good;
  bad.nodes[1] = {.name = "x", .cost = {}, .memory = {}};
  EXPECT_EQ(ErrorOf(bad), "node 1 'x': got 0 strategies, wanted 1 to 65535");
  bad = good;
  bad.nodes[0] = {.name = "x", .cost = {1, 2}, .memory = {1}};
  EXPECT_THAT(ErrorOf(bad), HasSubstr("got 1 memories, wanted one for each of its 2 strategies"));
  bad = good;
  bad.nodes[2].cost[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ErrorOf(bad), HasSubstr("got a cost of nan"));
  bad = good;
  bad.nodes[2].memory[0] = -1;
  EXPECT_THAT(ErrorOf(bad), HasSubstr("got a memory of -1"));
  bad = good;
  bad.edges = {{.from = 0, .to = 4, .cost = {}}};
  EXPECT_EQ(ErrorOf(bad), "edge 0: got nodes 0 and 4, wanted two of 0 to 3");
  bad.edges = {{.from = 0, .to = 1, .cost = {}}};
  EXPECT_THAT(ErrorOf(bad), HasSubstr("edge 0: got 0 costs, wanted"));
  bad = good;
  bad.incompatible = {{0, 0, 0, 0}};
  EXPECT_THAT(ErrorOf(bad), HasSubstr("wanted strategies of two nodes"));
  bad = good;
  bad.live_sets = {{.name = "t", .nodes = {1, 1}, .budget = 3}};
  EXPECT_THAT(ErrorOf(bad), HasSubstr("live set 0 't': got node 1, wanted"));
}

}  // namespace
}  // namespace strategy_graph_test_cc
}  // namespace orrery::transforms::strategies
