#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transforms/strategies/random_graph_test_util.h"
#include "transforms/strategies/strategy_graph.h"

// The solver on graphs too large to enumerate, against dynamic programs of their shape, and against
// itself on the same graph written differently.

namespace orrery::transforms::strategies {
namespace solve_test_cc {
namespace {

using ::testing::IsEmpty;

size_t At(int32_t number) { return static_cast<size_t>(number); }

const StrategyEdge& EdgeInto(const StrategyGraph& graph, size_t node) {
  return graph.edges[node - 1];
}

// Node i follows one of the `reach` before it; edge i-1 leads to it. Reach 1: a chain.
StrategyGraph RandomTree(uint32_t seed, int32_t nodes, int32_t reach, int32_t impossible) {
  std::mt19937 random(seed);
  StrategyGraph graph;
  for (int32_t i = 0; i < nodes; ++i) {
    AddRandomNode(graph, Draw(random, 2, 6), random);
    if (i > 0) {
      AddRandomEdge(graph, std::max(0, i - Draw(random, 1, reach)), i, impossible, random);
    }
  }
  return graph;
}

// From the leaves up: what each subtree costs at least, by the strategy of its root.
double LeastOfTree(const StrategyGraph& graph) {
  std::vector<std::vector<double>> cost;
  for (const StrategyNode& node : graph.nodes) cost.push_back(node.cost);
  for (size_t i = graph.nodes.size(); i-- > 1;) {
    const StrategyEdge& edge = EdgeInto(graph, i);
    std::vector<double>& above = cost[At(edge.from)];
    for (size_t x = 0; x < above.size(); ++x) {
      double least = kImpossible;
      for (size_t y = 0; y < cost[i].size(); ++y) {
        least = std::min(least, edge.cost[x * cost[i].size() + y] + cost[i][y]);
      }
      above[x] += least;
    }
  }
  return std::ranges::min(cost[0]);
}

// Of a chain whose memories are whole numbers: [strategy][memory so far], node by node.
double LeastOfChain(const StrategyGraph& graph, size_t budget) {
  std::vector<std::vector<double>> least = {std::vector<double>(budget + 1, kImpossible)};
  least[0][0] = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const StrategyNode& node = graph.nodes[i];
    std::vector<std::vector<double>> next(node.cost.size(),
                                          std::vector<double>(budget + 1, kImpossible));
    for (size_t x = 0; x < least.size(); ++x) {
      for (size_t y = 0; y < next.size(); ++y) {
        const double edge = i == 0 ? 0 : EdgeInto(graph, i).cost[x * next.size() + y];
        const auto own = static_cast<size_t>(node.memory[y]);
        for (size_t before = 0; before + own <= budget; ++before) {
          double& best = next[y][before + own];
          best = std::min(best, least[x][before] + edge + node.cost[y]);
        }
      }
    }
    least = std::move(next);
  }
  double best = kImpossible;
  for (const auto& costs : least) best = std::min(best, std::ranges::min(costs));
  return best;
}

LiveSet AllNodes(const StrategyGraph& graph, double budget) {
  LiveSet live{.name = "all", .nodes = std::vector<int32_t>(graph.nodes.size()), .budget = budget};
  std::iota(live.nodes.begin(), live.nodes.end(), 0);
  return live;
}

void ExpectSolvedAt(const StrategyGraph& graph, double least, const SolveOptions& options = {}) {
  const StrategyChoice choice = SolveStrategies(graph, options).value();
  if (least == kImpossible) {
    ASSERT_TRUE(choice.none.has_value());
    EXPECT_FALSE(choice.optimal());
    EXPECT_EQ(choice.cost, kImpossible);
    EXPECT_THAT(choice.assignment, IsEmpty());
    return;
  }
  ASSERT_FALSE(choice.none.has_value()) << choice.none->reason;
  EXPECT_NEAR(choice.cost, least, 1e-9 * (1 + std::abs(least)));
  EXPECT_TRUE(choice.optimal());
  EXPECT_EQ(choice.assignment.size(), graph.nodes.size());
  EXPECT_DOUBLE_EQ(choice.cost, CostOf(graph, choice.assignment));
}

TEST(SolveStrategies, OfATreeIsADynamicProgramFromTheLeaves) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const StrategyGraph graph = RandomTree(seed, 5 + 5 * static_cast<int32_t>(seed),
                                           1 + static_cast<int32_t>(seed % 7), seed % 2 ? 3 : 0);
    ExpectSolvedAt(graph, LeastOfTree(graph));
  }
}

// A ring is a chain for each strategy of its first node.
TEST(SolveStrategies, OfARingIsThatOfTheChainForEachFirstStrategy) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    StrategyGraph ring = RandomTree(seed, 40, 1, 4);
    double least = kImpossible;
    std::mt19937 random(seed);
    StrategyEdge back{.from = 39, .to = 0, .cost = {}};
    const size_t columns = ring.nodes[0].cost.size();
    for (size_t i = 0; i < ring.nodes[39].cost.size() * columns; ++i) {
      back.cost.push_back(Draw(random, 0, 30));
    }
    for (size_t a = 0; a < columns; ++a) {
      StrategyGraph chain = ring;
      for (size_t x = 0; x < columns; ++x) {
        if (x != a) chain.nodes[0].cost[x] = kImpossible;
      }
      for (size_t y = 0; y < chain.nodes[39].cost.size(); ++y) {
        chain.nodes[39].cost[y] += back.cost[y * columns + a];
      }
      least = std::min(least, LeastOfTree(chain));
    }
    ring.edges.push_back(back);
    ExpectSolvedAt(ring, least);
  }
}

TEST(SolveStrategies, OfAChainWithinMemoryIsAKnapsack) {
  int32_t short_of_memory = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    StrategyGraph graph = RandomTree(seed, 14, 1, seed % 4 == 3 ? 4 : 0);
    const auto budget = static_cast<size_t>(14 * (4 + 2 * (seed % 8)));
    const double least = LeastOfChain(graph, budget);
    short_of_memory += least > LeastOfTree(graph) ? 1 : 0;
    graph.live_sets = {AllNodes(graph, static_cast<double>(budget))};
    ExpectSolvedAt(graph, least);
  }
  EXPECT_GT(short_of_memory, 3);
}

// One that needs nothing is as good as none; costs below zero are costs.
TEST(SolveStrategies, TakesCostsBelowZero) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    StrategyGraph graph = RandomTree(seed, 12, 1, 0);
    for (StrategyNode& node : graph.nodes) {
      for (double& cost : node.cost) cost -= 30;
    }
    for (StrategyEdge& edge : graph.edges) {
      for (double& cost : edge.cost) cost -= 12;
    }
    const size_t budget = 12 * 16;
    const double least = LeastOfChain(graph, budget);
    ASSERT_LT(least, 0);
    graph.live_sets = {AllNodes(graph, static_cast<double>(budget))};
    ExpectSolvedAt(graph, least);
  }
}

// A graph of each kind: wide, with impossible pairs, with budgets.
StrategyGraph Mixed(uint32_t seed) {
  std::mt19937 random(seed);
  StrategyGraph graph;
  const int32_t nodes = Draw(random, 6, 9);
  for (int32_t i = 0; i < nodes; ++i) {
    AddRandomNode(graph, Draw(random, 2, 4), random);
    for (int32_t j = 0; j < i; ++j) {
      if (Draw(random, 0, 2) == 0) AddRandomEdge(graph, j, i, seed % 2 ? 5 : 0, random);
    }
  }
  graph.incompatible = {{0, 1, 3, 0}, {4, 0, 2, 1}};
  if (seed % 3 > 0) graph.live_sets = {AllNodes(graph, nodes * 14.0)};
  if (seed % 3 == 2) {
    graph.live_sets.push_back({.name = "few", .nodes = {5, 0, 2}, .budget = 30});
  }
  return graph;
}

double Solved(const StrategyGraph& graph) { return SolveStrategies(graph).value().cost; }

// The node that was `order[i]` is node i.
StrategyGraph Renumbered(const StrategyGraph& graph, const std::vector<int32_t>& order) {
  StrategyGraph result = graph;
  std::vector<int32_t> position(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    position[At(order[i])] = static_cast<int32_t>(i);
    result.nodes[i] = graph.nodes[At(order[i])];
  }
  for (StrategyEdge& edge : result.edges) {
    edge.from = position[At(edge.from)];
    edge.to = position[At(edge.to)];
  }
  for (IncompatiblePair& pair : result.incompatible) {
    pair.node = position[At(pair.node)];
    pair.other_node = position[At(pair.other_node)];
  }
  for (LiveSet& live : result.live_sets) {
    for (int32_t& node : live.nodes) node = position[At(node)];
  }
  return result;
}

StrategyEdge Reversed(const StrategyGraph& graph, const StrategyEdge& edge) {
  StrategyEdge result{.from = edge.to, .to = edge.from, .cost = {}};
  const size_t rows = graph.nodes[At(edge.from)].cost.size();
  const size_t columns = graph.nodes[At(edge.to)].cost.size();
  for (size_t y = 0; y < columns; ++y) {
    for (size_t x = 0; x < rows; ++x) result.cost.push_back(edge.cost[x * columns + y]);
  }
  return result;
}

TEST(SolveStrategies, CostsTheSameHoweverTheGraphIsWritten) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const StrategyGraph graph = Mixed(seed);
    const double cost = Solved(graph);
    const auto expect_same = [&](const StrategyGraph& other) {
      const double now = Solved(other);
      EXPECT_TRUE(now == cost || std::abs(now - cost) < 1e-9) << now << " for " << cost;
    };
    std::vector<int32_t> order(graph.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(seed);
    for (size_t i = order.size(); i-- > 1;) {
      std::swap(order[i], order[At(Draw(random, 0, static_cast<int32_t>(i)))]);
    }
    expect_same(Renumbered(graph, order));

    StrategyGraph reversed = graph;
    for (StrategyEdge& edge : reversed.edges) edge = Reversed(graph, edge);
    for (IncompatiblePair& pair : reversed.incompatible) {
      std::swap(pair.node, pair.other_node);
      std::swap(pair.strategy, pair.other_strategy);
    }
    expect_same(reversed);

    StrategyGraph halved = graph;  // each edge twice at half its cost, there and back
    for (StrategyEdge& edge : halved.edges) {
      for (double& half : edge.cost) half /= 2;
    }
    for (size_t i = 0; i < graph.edges.size(); ++i) {
      halved.edges.push_back(Reversed(halved, halved.edges[i]));
    }
    expect_same(halved);

    StrategyGraph moved = graph;  // incompatible pairs as edges
    moved.incompatible.clear();
    for (const IncompatiblePair& pair : graph.incompatible) {
      StrategyEdge edge{.from = pair.node, .to = pair.other_node, .cost = {}};
      const size_t columns = graph.nodes[At(pair.other_node)].cost.size();
      edge.cost.resize(graph.nodes[At(pair.node)].cost.size() * columns);
      edge.cost[At(pair.strategy) * columns + At(pair.other_strategy)] = kImpossible;
      moved.edges.push_back(std::move(edge));
    }
    expect_same(moved);
  }
}

TEST(SolveStrategies, CostsMoreByWhatIsAddedToEachStrategyOfANode) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const StrategyGraph graph = Mixed(seed);
    const StrategyChoice choice = SolveStrategies(graph).value();
    if (choice.none.has_value()) continue;
    StrategyGraph dearer = graph;
    for (double& cost : dearer.nodes[seed % 6].cost) cost += 3.5;
    EXPECT_NEAR(Solved(dearer), choice.cost + 3.5, 1e-9);
    StrategyGraph scaled = graph;
    for (StrategyNode& node : scaled.nodes) {
      for (double& cost : node.cost) cost *= 1024;
    }
    for (StrategyEdge& edge : scaled.edges) {
      for (double& cost : edge.cost) cost *= 1024;
    }
    EXPECT_NEAR(Solved(scaled), choice.cost * 1024, 1e-6);
    // What was chosen stays the best when all else grows dearer.
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (size_t a = 0; a < dearer.nodes[i].cost.size(); ++a) {
        dearer.nodes[i].cost[a] = graph.nodes[i].cost[a];
        if (At(choice.assignment[i]) != a) dearer.nodes[i].cost[a] += 1;
      }
    }
    EXPECT_EQ(SolveStrategies(dearer).value().assignment, choice.assignment);
  }
}

TEST(SolveStrategies, CostsNoLessWithASmallerBudget) {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    StrategyGraph graph = Mixed(3 * seed);
    double before = Solved(graph);
    for (double budget = 240; budget >= 0; budget -= 40) {
      graph.live_sets = {AllNodes(graph, budget)};
      const double cost = Solved(graph);
      EXPECT_GE(cost, before == kImpossible ? kImpossible : before - 1e-9);
      before = cost;
    }
  }
}

TEST(SolveStrategies, GivesTheSameAnswerTwice) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const StrategyGraph graph = Mixed(seed);
    const SolveOptions options{.repeats = {}, .table_limit = seed % 2 == 0 ? 1 << 21 : 16};
    const StrategyChoice first = SolveStrategies(graph, options).value();
    const StrategyChoice second = SolveStrategies(graph, options).value();
    EXPECT_EQ(first.assignment, second.assignment);
    EXPECT_EQ(first.labels, second.labels);
    EXPECT_EQ(first.bound, second.bound);
  }
}

TEST(SolveStrategies, NeedsNoTables) {
  for (const int64_t table_limit : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{2}}) {
    SCOPED_TRACE(table_limit);
    for (uint32_t seed = 0; seed < 8; ++seed) {
      const StrategyGraph graph = RandomTree(seed, 7, 2, 4);
      ExpectSolvedAt(graph, LeastOfTree(graph), {.repeats = {}, .table_limit = table_limit});
    }
  }
}

// Nodes that must differ from their neighbours, as colours: with costs that mislead, next to no
// tables and labels, the search misses choices that there are.
StrategyGraph Colours(uint32_t seed, int32_t nodes, int32_t colours) {
  std::mt19937 random(seed);
  StrategyGraph graph;
  for (int32_t i = 0; i < nodes; ++i) {
    AddRandomNode(graph, colours, random);
    for (int32_t j = 0; j < i; ++j) {
      if (j % colours == i % colours || Draw(random, 0, 99) >= 18) continue;
      StrategyEdge edge{.from = j, .to = i, .cost = {}};
      for (int32_t a = 0; a < colours * colours; ++a) {
        const bool equal = a / colours == a % colours;
        edge.cost.push_back(equal ? kImpossible : Draw(random, 0, 40));
      }
      graph.edges.push_back(std::move(edge));
    }
  }
  return graph;
}

constexpr SolveOptions kHasty = {.repeats = {}, .label_limit = 1, .table_limit = 1};

// There always is a choice here: node i takes colour i modulo the colours.
TEST(SolveStrategies, IsHonestWhereItMissesAllChoices) {
  int32_t missed = 0;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    StrategyGraph graph = Colours(seed, 40, 3);
    if (seed % 2 == 1) graph.live_sets = {AllNodes(graph, 1e6)};
    const StrategyChoice choice = SolveStrategies(graph, kHasty).value();
    if (!choice.none.has_value()) {
      EXPECT_NE(CostOf(graph, choice.assignment), kImpossible);
      EXPECT_DOUBLE_EQ(choice.cost, CostOf(graph, choice.assignment));
      EXPECT_LE(choice.bound, choice.cost);
      continue;
    }
    ++missed;
    EXPECT_FALSE(choice.none->proven);
    EXPECT_EQ(choice.none->live_set, -1);
  }
  EXPECT_GT(missed, 0);
}

}  // namespace
}  // namespace solve_test_cc
}  // namespace orrery::transforms::strategies
