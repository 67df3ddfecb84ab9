#include "transforms/strategies/fix_shared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transforms/strategies/random_model_test_util.h"

namespace orrery::transforms::strategies {
namespace fix_shared_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Node 0, which nodes 1 to 4 read; those are one block each.
Model Shared(const std::vector<double>& cost, const std::vector<double>& table) {
  StrategyGraph graph;
  graph.nodes.push_back({.name = "", .cost = cost, .memory = {}});
  for (int32_t i = 1; i <= 4; ++i) {
    graph.nodes.push_back({.name = "", .cost = {5, 1}, .memory = {}});
    graph.edges.push_back({.from = 0, .to = i, .cost = table});
  }
  return ModelOf(graph);
}

const std::vector<RepeatedBlocks> kBlocks = {{.blocks = {{1}, {2}, {3}, {4}}}};

TEST(FixShared, FoldsAStrategyThatIsNeverDearer) {
  Model model = Shared({2, 2, 2}, {3, 0, 0, 0.5, 0, 0});
  FixShared(model, kBlocks);
  EXPECT_THAT(model.kept[0], ElementsAre(2));
  EXPECT_THAT(model.cost[0], ElementsAre(2));
  EXPECT_THAT(model.cost[3], ElementsAre(5, 1));
  EXPECT_THAT(model.tables, SizeIs(0));
  // What it costs the neighbours, they pay.
  model = Shared({3, 1}, {7, kImpossible, 7, 2});
  FixShared(model, kBlocks);
  EXPECT_THAT(model.kept[0], ElementsAre(1));
  EXPECT_THAT(model.cost[3], ElementsAre(12, 3));
}

TEST(FixShared, LeavesWhatMayDepend) {
  // Dearer by itself; dearer for one neighbour.
  for (const auto& [cost, table] :
       {std::pair<std::vector<double>, std::vector<double>>{{2, 1}, {0, 0, 1, 1}},
        {{1, 1}, {0, 1, 1, 0}}}) {
    Model model = Shared(cost, table);
    FixShared(model, kBlocks);
    EXPECT_THAT(model.cost[0], SizeIs(2));
    EXPECT_THAT(model.tables, SizeIs(4));
  }
}

// Nodes of blocks, and those that only blocks at the ends read, are none of its business.
TEST(FixShared, LeavesNodesThatAreNotShared) {
  Model model = Shared({0, 1}, {0, 0, 0, 0});
  FixShared(model, {{.blocks = {{0}, {1}, {2}}}});
  EXPECT_THAT(model.cost[0], SizeIs(2));
  FixShared(model, {{.blocks = {{1}, {}, {4}}}});
  EXPECT_THAT(model.cost[0], SizeIs(2));
  FixShared(model, {{.blocks = {{-1}, {77}, {4}}}});  // for others to complain of
  EXPECT_THAT(model.cost[0], SizeIs(2));
}

// No choice becomes cheaper, and the cheapest one stays.
TEST(FixShared, KeepsTheLeastCost) {
  int fixed = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 6, 5);
    // The first strategy of two nodes is made cheap.
    for (const int32_t node : {0, 3}) {
      double& cost = model.cost[static_cast<size_t>(node)][0];
      cost = std::min(cost, std::ranges::min(model.cost[static_cast<size_t>(node)]));
      for (Table& table : model.tables) {
        if (std::ranges::count(table.scope, node) == 0) continue;
        const size_t columns = model.strategies(table.scope[1]);
        for (size_t i = 0; i < table.values.size(); ++i) {
          if ((table.scope[0] == node ? i / columns : i % columns) == 0) table.values[i] = 0;
        }
      }
    }
    const double before = LeastCost(model, false);
    FixShared(model, {{.blocks = {{1}, {2}, {4}}}});
    fixed += model.cost[0].size() == 1 || model.cost[3].size() == 1 ? 1 : 0;
    EXPECT_NEAR(LeastCost(model, false), before, 1e-9);
  }
  EXPECT_GE(fixed, 50);
}

}  // namespace
}  // namespace fix_shared_test_cc
}  // namespace orrery::transforms::strategies
