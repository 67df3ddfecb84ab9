#include "transforms/strategies/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "transforms/strategies/random_graph_test_util.h"

namespace orrery::transforms::strategies {
namespace repeats_test_cc {
namespace {

using ::testing::HasSubstr;

TEST(Repeats, CostWhatTheBlocksCostOneByOne) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto [graph, options] = RandomBlocks(seed, 1 + static_cast<int32_t>(seed % 4),
                                               1 + static_cast<int32_t>(seed % 11), seed % 3 == 0);
    const StrategyChoice flat = SolveStrategies(graph).value();
    const StrategyChoice composed = SolveStrategies(graph, options).value();
    ASSERT_EQ(composed.none.has_value(), flat.none.has_value());
    if (flat.none.has_value()) continue;
    EXPECT_NEAR(composed.cost, flat.cost, 1e-9);
    EXPECT_DOUBLE_EQ(composed.cost, CostOf(graph, composed.assignment));
    EXPECT_TRUE(composed.optimal());
    const size_t blocks = options.repeats[0].blocks.size();
    EXPECT_EQ(composed.composed, blocks < 3 ? 0 : static_cast<int64_t>(blocks));
    EXPECT_EQ(flat.composed, 0);
  }
}

// Encoder and decoder.
TEST(Repeats, MayBeTwoRuns) {
  Repeated first = RandomBlocks(1, 2, 5, false);
  const Repeated second = RandomBlocks(2, 3, 6, false);
  const auto shift = static_cast<int32_t>(first.graph.nodes.size());
  first.graph.nodes.insert(first.graph.nodes.end(), second.graph.nodes.begin(),
                           second.graph.nodes.end());
  for (StrategyEdge edge : second.graph.edges) {
    edge.from += shift;
    edge.to += shift;
    first.graph.edges.push_back(edge);
  }
  std::mt19937 random(5);
  AddRandomEdge(first.graph, shift - 1, shift, 0, random);
  first.options.repeats.push_back(second.options.repeats[0]);
  for (auto& block : first.options.repeats[1].blocks) {
    for (int32_t& node : block) node += shift;
  }
  const StrategyChoice choice = SolveStrategies(first.graph, first.options).value();
  EXPECT_NEAR(choice.cost, SolveStrategies(first.graph).value().cost, 1e-9);
}

TEST(Repeats, AreLeftAloneWhereMemoryIsShort) {
  auto [graph, options] = RandomBlocks(4, 2, 6, false);
  const StrategyChoice ample = SolveStrategies(graph, options).value();
  LiveSet live{.name = "all", .nodes = {}};
  for (size_t i = 0; i < graph.nodes.size(); ++i) live.nodes.push_back(static_cast<int32_t>(i));
  live.budget = MemoryOf(graph, live, ample.assignment) - 1;
  graph.live_sets = {live};
  const StrategyChoice scarce = SolveStrategies(graph, options).value();
  EXPECT_GT(scarce.cost, ample.cost);
  EXPECT_LE(MemoryOf(graph, live, scarce.assignment), live.budget);
  EXPECT_EQ(scarce.cost, SolveStrategies(graph).value().cost);
}

std::string ErrorOf(const StrategyGraph& graph, const SolveOptions& options) {
  return std::string(SolveStrategies(graph, options).status().message());
}

TEST(Repeats, MustBeEqual) {
  const auto [graph, options] = RandomBlocks(4, 2, 4, false);
  StrategyGraph bad = graph;
  const auto& blocks = options.repeats[0].blocks;
  bad.nodes[static_cast<size_t>(blocks[2][1])].cost[0] += 1;
  EXPECT_THAT(ErrorOf(bad, options), HasSubstr("are not those of node"));
  bad = graph;
  std::mt19937 random(1);
  AddRandomEdge(bad, blocks[1][0], blocks[1][1], 0, random);
  EXPECT_THAT(ErrorOf(bad, options), HasSubstr("the edges of block 1 are not those of block 0"));
  bad = graph;
  AddRandomEdge(bad, blocks[1][0], blocks[3][0], 0, random);
  EXPECT_THAT(ErrorOf(bad, options), HasSubstr("wanted edges within blocks"));
  bad = graph;
  AddRandomEdge(bad, 0, blocks[1][0], 0, random);
  EXPECT_THAT(ErrorOf(bad, options), HasSubstr("from elsewhere to the first or last"));
  SolveOptions uneven = options;
  uneven.repeats[0].blocks[1].pop_back();
  EXPECT_THAT(ErrorOf(graph, uneven), HasSubstr("wanted equal ones"));
  SolveOptions twice = options;
  twice.repeats[0].blocks[1] = twice.repeats[0].blocks[0];
  EXPECT_THAT(ErrorOf(graph, twice), HasSubstr("each in one block"));
}

}  // namespace
}  // namespace repeats_test_cc
}  // namespace orrery::transforms::strategies
