#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "transforms/strategies/strategy_graph.h"

// What graphs are refused, word by word; what a choice costs, by hand; why there is none.

namespace orrery::transforms::strategies {
namespace strategy_errors_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// q with two strategies, k with three, and an edge from k to q.
StrategyGraph Good() {
  StrategyGraph graph;
  graph.nodes = {{.name = "q", .cost = {1, 2}, .memory = {3, 4}},
                 {.name = "k", .cost = {10, 20, 30}, .memory = {}}};
  graph.edges = {{.from = 1, .to = 0, .cost = {100, 200, 300, 400, 500, 600}}};
  graph.incompatible = {{0, 1, 1, 2}};
  graph.live_sets = {{.name = "peak", .nodes = {1, 0}, .budget = 9}};
  return graph;
}

template <typename Change>
std::string ErrorAfter(const Change& change) {
  StrategyGraph graph = Good();
  change(graph);
  EXPECT_EQ(SolveStrategies(graph).status(), Validate(graph));
  return std::string(Validate(graph).message());
}

TEST(Validate, AcceptsWhatFitsTogether) {
  EXPECT_TRUE(Validate(Good()).ok());
  EXPECT_TRUE(Validate({}).ok());
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[1].cost[0] = kImpossible; }), "");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[1].cost[0] = -1e100; }), "");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[0].memory[0] = 1e100; }), "");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.edges[0].cost[5] = kImpossible; }), "");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.live_sets[0].budget = kImpossible; }), "");
}

TEST(Validate, NamesTheNode) {
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[1].cost.assign(65536, 0); }),
            "node 1 'k': got 65536 strategies, wanted 1 to 65535");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[0].memory.push_back(1); }),
            "node 0 'q': got 3 memories, wanted one for each of its 2 strategies, or none");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[0].cost[1] = 1e101; }),
            "node 0 'q': got a cost of 1e+101, wanted -1e100 to 1e100, or infinity");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[0].cost[1] = -kImpossible; }),
            "node 0 'q': got a cost of -inf, wanted -1e100 to 1e100, or infinity");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[0].memory[1] = kImpossible; }),
            "node 0 'q': got a memory of inf, wanted 0 to 1e100");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.nodes[0].memory[1] = kNaN; }),
            "node 0 'q': got a memory of nan, wanted 0 to 1e100");
}

TEST(Validate, NamesTheEdge) {
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.edges[0].to = 1; }),
            "edge 0: got nodes 1 and 1, wanted two of 0 to 1");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.edges[0].from = -1; }),
            "edge 0: got nodes -1 and 0, wanted two of 0 to 1");
  EXPECT_EQ(
      ErrorAfter([](StrategyGraph& g) { g.edges.push_back({.from = 0, .to = 2, .cost = {}}); }),
      "edge 1: got nodes 0 and 2, wanted two of 0 to 1");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.edges[0].cost.pop_back(); }),
            "edge 0: got 5 costs, wanted 6, one for each pair of strategies");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.edges[0].cost[2] = kNaN; }),
            "edge 0: got a cost of nan, wanted -1e100 to 1e100, or infinity");
}

TEST(Validate, NamesThePair) {
  const auto error_of = [](const IncompatiblePair& pair) {
    return ErrorAfter([&](StrategyGraph& g) { g.incompatible.push_back(pair); });
  };
  EXPECT_EQ(error_of({1, 3, 0, 0}),
            "incompatible pair: got strategy 3 of node 1 and strategy 0 of node 0, wanted "
            "strategies of two nodes");
  EXPECT_EQ(error_of({1, 2, 0, 1}), "");
  EXPECT_THAT(error_of({1, -1, 0, 0}), HasSubstr("got strategy -1 of node 1"));
  EXPECT_THAT(error_of({0, 0, 1, 3}), HasSubstr("strategy 3 of node 1"));
  EXPECT_THAT(error_of({0, 0, 2, 0}), HasSubstr("strategy 0 of node 2"));
  EXPECT_THAT(error_of({-1, 0, 1, 0}), HasSubstr("strategy 0 of node -1"));
}

TEST(Validate, NamesTheLiveSet) {
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.live_sets[0].nodes.push_back(2); }),
            "live set 0 'peak': got node 2, wanted nodes of the graph, each once");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.live_sets[0].nodes.push_back(-1); }),
            "live set 0 'peak': got node -1, wanted nodes of the graph, each once");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.live_sets[0].budget = kNaN; }),
            "live set 0 'peak': got a budget of nan, wanted a number");
  EXPECT_EQ(ErrorAfter([](StrategyGraph& g) { g.live_sets[0].budget = -1e101; }),
            "live set 0 'peak': got a budget of -1e+101, wanted a number");
}

TEST(CostOf, AddsNodesAndEdges) {
  const StrategyGraph graph = Good();
  EXPECT_EQ(CostOf(graph, {0, 0}), 1 + 10 + 100);
  EXPECT_EQ(CostOf(graph, {1, 0}), 2 + 10 + 200);
  EXPECT_EQ(CostOf(graph, {1, 1}), 2 + 20 + 400);
  EXPECT_EQ(CostOf(graph, {0, 2}), 1 + 30 + 500);
  EXPECT_EQ(CostOf(graph, {1, 2}), kImpossible);
  EXPECT_EQ(MemoryOf(graph, graph.live_sets[0], {1, 2}), 4);
  EXPECT_EQ(MemoryOf(graph, graph.live_sets[0], {0, 2}), 3);
}

std::string WhyNone(const StrategyGraph& graph, const SolveOptions& options = {}) {
  const StrategyChoice choice = SolveStrategies(graph, options).value();
  EXPECT_FALSE(choice.optimal());
  return choice.none.has_value() ? choice.none->reason : "";
}

TEST(NoChoice, NamesANodeThatAlwaysMeetsTheImpossible) {
  StrategyGraph graph = Good();
  graph.nodes[1].cost = {kImpossible, kImpossible, kImpossible};
  EXPECT_EQ(WhyNone(graph),
            "node 1 'k': each strategy is impossible, or meets only impossible ones");
}

// Three nodes of two colours, each to differ from the others: each pair can meet, all cannot.
TEST(NoChoice, SaysThatAllTogetherCannotMeet) {
  StrategyGraph graph;
  for (const char* name : {"a", "b", "c"}) {
    graph.nodes.push_back({.name = name, .cost = {0, 0}, .memory = {}});
  }
  for (int32_t i = 0; i < 3; ++i) {
    graph.edges.push_back({.from = i, .to = (i + 1) % 3, .cost = {kImpossible, 0, 0, kImpossible}});
  }
  const std::string reason = "no choice for all nodes avoids infinite costs and incompatible pairs";
  EXPECT_EQ(WhyNone(graph), reason);
  EXPECT_EQ(WhyNone(graph, {.repeats = {}, .table_limit = 2}), reason);
  graph.live_sets = {{.name = "t", .nodes = {0, 1, 2}, .budget = -1}};
  EXPECT_EQ(WhyNone(graph), reason);
}

// Short in both sets; the second is over by more whatever one takes.
TEST(NoChoice, FindsTheSmallestExcessOfAll) {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {0, 0, 0}, .memory = {8, 5, 2}},
                 {.name = "b", .cost = {0, 0, 0}, .memory = {2, 5, 8}}};
  graph.edges = {{.from = 0, .to = 1, .cost = std::vector<double>(9, kImpossible)}};
  for (size_t i = 0; i < 3; ++i) graph.edges[0].cost[4 * i] = 1;
  graph.live_sets = {{.name = "a alone", .nodes = {0}, .budget = 1},
                     {.name = "b alone", .nodes = {1}, .budget = 0.5}};
  const StrategyChoice choice = SolveStrategies(graph).value();
  ASSERT_TRUE(choice.none.has_value());
  EXPECT_EQ(choice.none->live_set, 1);
  EXPECT_NEAR(choice.none->excess, 4.5, 1e-7);
  EXPECT_TRUE(choice.none->proven);
  EXPECT_EQ(choice.none->reason,
            "live set 1 'b alone': needs 5, has 0.5; the smallest excess there is");
  // With that much more there is a choice.
  for (LiveSet& live : graph.live_sets) live.budget += choice.none->excess;
  EXPECT_THAT(SolveStrategies(graph).value().assignment, ElementsAre(1, 1));
}

TEST(NoChoice, IsPossibleWithoutNodes) {
  StrategyGraph graph;
  graph.live_sets = {{.name = "t", .nodes = {}, .budget = -2}};
  EXPECT_EQ(WhyNone(graph), "live set 0 't': needs 0, has -2; the smallest excess there is");
  graph.live_sets[0].budget = 0;
  EXPECT_TRUE(SolveStrategies(graph).value().optimal());
}

}  // namespace
}  // namespace strategy_errors_test_cc
}  // namespace orrery::transforms::strategies
