#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "transforms/strategies/bucket_tree.h"
#include "transforms/strategies/elimination_order.h"
#include "transforms/strategies/minimize.h"
#include "transforms/strategies/random_model_test_util.h"

// Elimination: orders, buckets and messages by hand, and against enumeration.

namespace orrery::transforms::strategies {
namespace elimination_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// Nodes with so many strategies each, and edges of costs 0.
Model Shape(const std::vector<size_t>& strategies,
            const std::vector<std::pair<int32_t, int32_t>>& edges) {
  StrategyGraph graph;
  for (const size_t count : strategies) {
    graph.nodes.push_back({.name = "", .cost = std::vector<double>(count), .memory = {}});
  }
  for (const auto& [from, to] : edges) {
    graph.edges.push_back({.from = from,
                           .to = to,
                           .cost = std::vector<double>(strategies[At(from)] * strategies[At(to)])});
  }
  return ModelOf(graph);
}

// The sum of `task` at one position, by the definition.
double SumAt(const MinimizeTask& task, const std::vector<size_t>& digits, size_t strategy) {
  double sum = task.own[strategy];
  for (const MinimizeTask::Input& input : task.inputs) {
    size_t at = strategy;
    for (size_t d = 0; d < digits.size(); ++d) at += digits[d] * input.strides[d];
    sum += input.values[at];
  }
  return sum;
}

// Strategies around the four that are compared at once, and scopes of up to three nodes.
TEST(MinimizeOut, IsTheDefinitionForAllSizes) {
  std::mt19937 random(5);
  for (size_t strategies = 1; strategies <= 10; ++strategies) {
    for (size_t dims = 0; dims <= 3; ++dims) {
      SCOPED_TRACE(testing::Message() << strategies << " strategies, " << dims << " nodes");
      MinimizeTask task;
      size_t positions = 1;
      for (size_t d = 0; d < dims; ++d) {
        task.sizes.push_back(At(Draw(random, 1, 4)));
        positions *= task.sizes[d];
      }
      for (size_t a = 0; a < strategies; ++a) task.own.push_back(Draw(random, -20, 20));
      std::vector<double> whole(positions * strategies), slice(strategies * 4);
      for (double& value : whole)
        value = Draw(random, 0, 5) == 0 ? kImpossible : Draw(random, 0, 99);
      for (double& value : slice) value = Draw(random, 0, 99);
      MinimizeTask::Input all{.values = whole.data(), .strides = std::vector<size_t>(dims)};
      size_t stride = strategies;
      for (size_t d = dims; d-- > 0; stride *= task.sizes[d]) all.strides[d] = stride;
      MinimizeTask::Input part{.values = slice.data(), .strides = std::vector<size_t>(dims)};
      if (dims > 1) part.strides[1] = strategies;
      task.inputs = {all, part};
      std::vector<double> expected, expected_each(strategies, kImpossible);
      for (size_t position = 0; position < positions; ++position) {
        std::vector<size_t> digits(dims);
        for (size_t d = dims, rest = position; d-- > 0; rest /= task.sizes[d]) {
          digits[d] = rest % task.sizes[d];
        }
        expected.push_back(kImpossible);
        for (size_t a = 0; a < strategies; ++a) {
          expected.back() = std::min(expected.back(), SumAt(task, digits, a));
          expected_each[a] = std::min(expected_each[a], SumAt(task, digits, a));
        }
      }
      std::vector<double> least = {1, 2, 3};  // what was there goes
      MinimizeOut(task, least);
      EXPECT_EQ(least, expected);
      EXPECT_EQ(LeastForEach(task), expected_each);
    }
  }
}

// 0–1–2–3 with 2, 5, 3 and 4 strategies: the ends make tables of 10 and 12, the middle larger ones.
TEST(EliminationOrder, OfAChainStartsAtItsCheaperEnd) {
  const Model chain = Shape({2, 5, 3, 4}, {{0, 1}, {1, 2}, {2, 3}});
  const EliminationOrder order = OrderNodes(chain, 100, {});
  EXPECT_THAT(order.nodes, ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(order.position, ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(order.parent, ElementsAre(1, 2, -1, 2));
  EXPECT_EQ(order.core, 4u);
}

// The first table beyond the limit starts the core, whose nodes follow each other.
TEST(EliminationOrder, LeavesACoreWhereTablesAreTooLarge) {
  const Model chain = Shape({2, 5, 3, 4}, {{0, 1}, {1, 2}, {2, 3}});
  const EliminationOrder all = OrderNodes(chain, 15, {});
  EXPECT_EQ(all.core, 4u);
  const EliminationOrder ends = OrderNodes(chain, 14, {});
  EXPECT_EQ(ends.core, 2u);
  EXPECT_THAT(ends.nodes, ElementsAre(0, 3, 1, 2));
  const EliminationOrder one = OrderNodes(chain, 11, {});
  EXPECT_EQ(one.core, 1u);
  EXPECT_THAT(one.parent, ElementsAre(1, 2, -1, 1));
}

// A node without edges is its own tree, and costs a table of its strategies only.
// One value that a whole row of ops reads: as the ops go, one after another, their neighbours are
// looked at, but not all readers each time.
TEST(EliminationOrder, OfAHubLooksAtEachReaderAFewTimes) {
  constexpr int32_t kReaders = 4000;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t reader = 1; reader <= kReaders; ++reader) {
    edges.emplace_back(0, reader);
    if (reader > 1) edges.emplace_back(reader - 1, reader);
  }
  const Model model = Shape(std::vector<size_t>(kReaders + 1, 3), edges);
  const EliminationOrder order = OrderNodes(model, 1 << 21, {});
  EXPECT_EQ(order.core, kReaders + 1);
  EXPECT_LT(order.visits, 60 * kReaders);
}

TEST(EliminationOrder, TakesNodesWithoutEdgesByTheirStrategies) {
  const Model loose = Shape({4, 2, 3, 2}, {});
  const EliminationOrder order = OrderNodes(loose, 10, {});
  EXPECT_THAT(order.nodes, ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(order.parent, ElementsAre(-1, -1, -1, -1));
  EXPECT_THAT(OrderNodes(Shape({}, {}), 10, {}).nodes, IsEmpty());
}

TEST(EliminationOrder, PutsLastWhatIsAskedForInItsOrder) {
  const Model ring = Shape({2, 2, 2, 2, 2}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}});
  const EliminationOrder order = OrderNodes(ring, 100, {4, 0, 2});
  EXPECT_EQ(order.core, 2u);
  EXPECT_THAT(order.nodes, ElementsAre(1, 3, 4, 0, 2));
  EXPECT_THAT(order.parent, ElementsAre(2, 0, -1, 4, 0));
}

// Neighbours of each node when its turn comes, by joining the neighbours of those before it.
std::vector<std::set<int32_t>> NeighboursInTurn(const Model& model,
                                                const std::vector<int32_t>& order) {
  std::vector<std::set<int32_t>> around(model.nodes());
  for (const Table& table : model.tables) {
    around[At(table.scope[0])].insert(table.scope[1]);
    around[At(table.scope[1])].insert(table.scope[0]);
  }
  for (const int32_t node : order) {
    for (const int32_t a : around[At(node)]) {
      for (const int32_t b : around[At(node)]) {
        if (a != b) around[At(a)].insert(b);
      }
      around[At(a)].erase(node);
    }
  }
  return around;
}

TEST(EliminationOrder, IsGreedyAndItsParentsAreTheNextNeighbours) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed, 9, 0);
    const EliminationOrder order = OrderNodes(model, 1e9, {});
    EXPECT_EQ(order.core, model.nodes());
    const auto around = NeighboursInTurn(model, order.nodes);
    const auto table_of = [&](int32_t node, const std::set<int32_t>& others) {
      double size = static_cast<double>(model.strategies(node));
      for (const int32_t other : others) size *= static_cast<double>(model.strategies(other));
      return size;
    };
    for (size_t i = 0; i < order.nodes.size(); ++i) {
      const int32_t node = order.nodes[i];
      EXPECT_EQ(order.position[At(node)], static_cast<int32_t>(i));
      int32_t next = -1;
      for (const int32_t other : around[At(node)]) {
        EXPECT_GT(order.position[At(other)], static_cast<int32_t>(i));
        if (next < 0 || order.position[At(other)] < order.position[At(next)]) next = other;
      }
      EXPECT_EQ(order.parent[At(node)], next);
      // No node still to come made a smaller table at that time.
      const std::vector<int32_t> before(order.nodes.begin(),
                                        order.nodes.begin() + static_cast<ptrdiff_t>(i));
      const auto then = NeighboursInTurn(model, before);
      for (size_t k = i + 1; k < order.nodes.size(); ++k) {
        const int32_t other = order.nodes[k];
        EXPECT_LE(table_of(node, then[At(node)]), table_of(other, then[At(other)]));
      }
    }
  }
}

// 0–1–2: eliminating 0 reads 2×3 twice (its table, and its costs), leaves 3; 1 reads 3×2 with its
// table, its message and its costs, leaves 2; 2 reads 2 twice, leaves 1.
TEST(BucketTree, CountsItsWork) {
  const Model chain = Shape({2, 3, 2}, {{0, 1}, {1, 2}});
  const BucketTree tree(chain, 100);
  EXPECT_TRUE(tree.exact());
  EXPECT_EQ(tree.work(), 2 * 3 * 2 + 3 * 2 * 3 + 2 * 2);
  EXPECT_EQ(tree.entries(), 3 + 2 + 1);
}

TEST(BucketTree, SumsNodesWithoutEdges) {
  Model loose = Shape({2, 3, 1}, {});
  loose.cost = {{5, 4}, {9, 8, 7}, {-2}};
  BucketTree tree(loose, 100);
  EXPECT_EQ(tree.Fill(loose.cost), 4 + 7 - 2);
  std::vector<int32_t> choice(3);
  tree.Descend(choice);
  EXPECT_THAT(choice, ElementsAre(1, 2, 0));
}

// Each message speaks only of nodes assigned before it, as the search that reads them needs.
TEST(BucketTree, AssignsANodeAfterAllThatItsBucketSpeaksOf) {
  for (const double table_limit : {1e6, 16.0, 1.0}) {
    for (uint32_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE(seed);
      const Model model = RandomModel(seed, 9, 0);
      const BucketTree tree(model, table_limit);
      std::set<int32_t> assigned;
      std::multiset<int32_t> used;
      for (const BucketTree::Bucket& bucket : tree.buckets()) {
        EXPECT_FALSE(bucket.parts.empty());
        for (const BucketTree::Part& part : bucket.parts) {
          for (const int32_t node : tree.table(part.message).scope) {
            EXPECT_EQ(assigned.count(node), 1u);
          }
          for (const int32_t input : part.inputs) {
            used.insert(input);
            EXPECT_EQ(tree.table(input).scope.back(), bucket.node);
          }
        }
        EXPECT_TRUE(assigned.insert(bucket.node).second);
      }
      EXPECT_EQ(assigned.size(), model.nodes());
      // Each table of the model is settled once, by one bucket.
      for (size_t i = 0; i < model.tables.size(); ++i) {
        EXPECT_EQ(used.count(static_cast<int32_t>(i)), 1u);
      }
    }
  }
}

TEST(BucketTree, KeepsPartsWithinTheLimit) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed, 9, 0);
    const BucketTree tree(model, 40);
    bool split = false;
    for (const BucketTree::Bucket& bucket : tree.buckets()) {
      split = split || bucket.parts.size() > 1;
      for (const BucketTree::Part& part : bucket.parts) {
        double size = static_cast<double>(model.strategies(bucket.node));
        for (const int32_t node : tree.table(part.message).scope) {
          size *= static_cast<double>(model.strategies(node));
        }
        EXPECT_LE(size, 40);
      }
    }
    EXPECT_EQ(tree.exact(), !split);
  }
}

// For any choice, the bound of what is not yet chosen is no more than what it comes to cost.
TEST(BucketTree, BoundsEachPartialChoice) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed, 6, seed % 2 == 0 ? 0 : 5);
    BucketTree tree(model, seed % 3 == 0 ? 1e6 : 16);
    const double bound = tree.Fill(model.cost);
    ForEachChoice(model, [&](const std::vector<int32_t>& choice) {
      const double cost = CostOf(model, choice);
      double sum = bound;
      for (const BucketTree::Bucket& bucket : tree.buckets()) {
        // The bucket's own costs replace its messages.
        const auto value = [&](int32_t number) {
          const Table& table = tree.table(number);
          size_t at = 0;
          for (const int32_t node : table.scope) {
            at = at * model.strategies(node) + At(choice[At(node)]);
          }
          return table.values[at];
        };
        sum += model.cost[At(bucket.node)][At(choice[At(bucket.node)])];
        for (const BucketTree::Part& part : bucket.parts) {
          for (const int32_t input : part.inputs) sum += value(input);
          if (value(part.message) == kImpossible) {
            EXPECT_EQ(cost, kImpossible);
            return;
          }
          sum -= value(part.message);
        }
        if (sum == kImpossible) break;
        EXPECT_LE(sum, cost + 1e-9);
      }
      if (sum != kImpossible) {
        EXPECT_NEAR(sum, cost, 1e-9);
      }
    });
  }
}

// 3 is left; choosing it settles the rest.
TEST(BucketTree, DescendsFromWhatIsGiven) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = RandomModel(seed, 6, 0);
    BucketTree tree(model, 1e6, {3});
    tree.Fill(model.cost);
    const Table remaining = tree.Remaining({3});
    ASSERT_THAT(remaining.values, SizeIs(model.strategies(3)));
    for (int32_t a = 0; a < static_cast<int32_t>(model.strategies(3)); ++a) {
      std::vector<int32_t> choice(model.nodes());
      choice[3] = a;
      tree.Descend(choice);
      EXPECT_EQ(choice[3], a);
      EXPECT_NEAR(CostOf(model, choice), remaining.values[At(a)], 1e-9);
    }
  }
}

TEST(BucketTree, MayBeFilledAgain) {
  const Model model = RandomModel(3, 7, 0);
  BucketTree tree(model, 1e6);
  const double first = tree.Fill(model.cost);
  Costs dearer = model.cost;
  for (double& cost : dearer[2]) cost += 2.5;
  EXPECT_NEAR(tree.Fill(dearer), first + 2.5, 1e-9);
  EXPECT_EQ(tree.Fill(model.cost), first);
}

// A clique of 9 nodes with 16 strategies each is beyond any table; the tree shrinks until it fits.
TEST(AffordableTree, IsExactOnlyWhereThatCanBeWaitedFor) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t b = 0; b < 9; ++b) {
    for (int32_t a = 0; a < b; ++a) edges.emplace_back(a, b);
  }
  const Model clique = Shape(std::vector<size_t>(9, 16), edges);
  const BucketTree tree = AffordableTree(clique, 1e11);
  EXPECT_FALSE(tree.exact());
  EXPECT_LE(tree.entries(), 1 << 25);
  EXPECT_LE(tree.work(), 6e8);
  EXPECT_GT(tree.work(), 1e6);
  EXPECT_TRUE(AffordableTree(Shape({2, 2}, {{0, 1}}), 1e11).exact());
}

}  // namespace
}  // namespace elimination_test_cc
}  // namespace orrery::transforms::strategies
