#include "transforms/strategies/label_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "transforms/strategies/label_search.h"
#include "transforms/strategies/random_model_test_util.h"

// What the labels of each layer hold, and the search over them.

namespace orrery::transforms::strategies {
namespace label_layers_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr BeamLimits kAll = {.width = 1 << 20, .labels = 1 << 30};

size_t At(int32_t number) { return static_cast<size_t>(number); }

// a–b–c with memories and two limits; assigned from one end, each label holds one neighbour.
Model Chain() {
  StrategyGraph graph;
  graph.nodes = {{.name = "a", .cost = {1, 2}, .memory = {5, 1}},
                 {.name = "b", .cost = {0, 4, 8}, .memory = {9, 4, 2}},
                 {.name = "c", .cost = {3, 1}, .memory = {2, 6}}};
  graph.edges = {{.from = 0, .to = 1, .cost = {0, 1, 2, 3, 0, 1}},
                 {.from = 1, .to = 2, .cost = {0, 5, 5, 0, 0, 0}}};
  graph.live_sets = {{.name = "ab", .nodes = {0, 1}, .budget = 8},
                     {.name = "all", .nodes = {0, 1, 2}, .budget = 11}};
  return ModelOf(graph);
}

// All choices of the chain that fit, by hand: a0 b2 c0, a1 b1 c0 and a1 b2 c0 cost 14 each, a1 b2
// c1 costs 2+8+1 and 1 for an edge, 12; a1 b1 c1 costs 2+4+1, 7.
TEST(SearchLabels, FindsTheChoiceByHand) {
  const Model model = Chain();
  BucketTree tree(model, 1e6);
  const Prices prices{{0, 0}};
  const Costs costs = prices.Add(model);
  tree.Fill(costs);
  const LabelSearchResult result = SearchLabels(model, tree, prices, kImpossible, kAll);
  EXPECT_THAT(result.choice, ElementsAre(1, 1, 1));
  EXPECT_EQ(result.cost, 7);
  EXPECT_EQ(result.bound, 7);
}

TEST(MakeLayers, SumWhatLaterNodesNeed) {
  const Model model = Chain();
  const BucketTree tree(model, 1e6);
  const std::vector<LabelLayer> layers = MakeLayers(model, tree);
  ASSERT_THAT(layers, SizeIs(3));
  std::vector<std::vector<double>> least_after(2), most_after(2);
  std::vector<int32_t> order;
  for (const LabelLayer& layer : layers) {
    order.push_back(layer.node);
    for (const LabelLayer::Use& use : layer.uses) {
      least_after[At(use.limit)].push_back(use.least_after);
      most_after[At(use.limit)].push_back(use.most_after);
    }
  }
  // Eliminated a, b, c: 6 and 6 entries, the first of equals first.
  EXPECT_THAT(order, ElementsAre(2, 1, 0));
  EXPECT_THAT(least_after[0], ElementsAre(1, 0));
  EXPECT_THAT(most_after[0], ElementsAre(5, 0));
  EXPECT_THAT(least_after[1], ElementsAre(2 + 1, 1, 0));
  EXPECT_THAT(most_after[1], ElementsAre(9 + 5, 5, 0));
}

TEST(MakeLayers, HoldNeighboursUntilTheirLastUse) {
  const Model model = Chain();
  const BucketTree tree(model, 1e6);
  const std::vector<LabelLayer> layers = MakeLayers(model, tree);
  EXPECT_THAT(layers[0].context, IsEmpty());
  EXPECT_THAT(layers[1].context, ElementsAre(2));
  EXPECT_THAT(layers[2].context, ElementsAre(1));
  EXPECT_THAT(layers[0].next_context, ElementsAre(-1));
  EXPECT_THAT(layers[1].next_context, ElementsAre(-1));
  EXPECT_THAT(layers[2].next_context, IsEmpty());
  // Limit 1 is open from c on; limit 0 starts at b; none is open after a.
  EXPECT_THAT(layers[0].limits, IsEmpty());
  EXPECT_THAT(layers[1].limits, ElementsAre(1));
  EXPECT_THAT(layers[2].limits, ElementsAre(1, 0));
  EXPECT_THAT(layers[1].next_limits, ElementsAre(-1, -1));
  ASSERT_THAT(layers[2].uses, SizeIs(2));
  EXPECT_EQ(layers[2].uses[0].limit, 0);
  EXPECT_EQ(layers[2].uses[0].from, 1);
  EXPECT_EQ(layers[2].uses[0].to, -1);
  EXPECT_EQ(layers[2].uses[1].from, 0);
  EXPECT_EQ(layers[2].uses[1].to, -1);
}

// Random limits for `model`, on about half of its nodes each.
void AddLimits(Model& model, uint32_t seed, double each) {
  std::mt19937 random(seed);
  model.limits.clear();
  for (int32_t i = 0; i < 3; ++i) {
    MemoryLimit limit{.live_set = i, .nodes = {}, .budget = 0};
    for (size_t node = 0; node < model.nodes(); ++node) {
      if (Draw(random, 0, 1) == 1) limit.nodes.push_back(static_cast<int32_t>(node));
    }
    limit.budget = each * static_cast<double>(limit.nodes.size());
    model.limits.push_back(std::move(limit));
  }
}

// Replays one choice through the layers as the search would: the positions must lead to the choices
// and the memory that the layers say they hold.
void Replay(const Model& model, const std::vector<LabelLayer>& layers,
            const std::vector<int32_t>& choice) {
  std::vector<int32_t> context;
  std::vector<double> memory, used(model.limits.size());
  for (const LabelLayer& layer : layers) {
    ASSERT_EQ(context.size(), layer.context.size());
    ASSERT_EQ(memory.size(), layer.limits.size());
    for (size_t i = 0; i < context.size(); ++i) EXPECT_EQ(context[i], choice[At(layer.context[i])]);
    for (size_t i = 0; i < memory.size(); ++i) EXPECT_EQ(memory[i], used[At(layer.limits[i])]);
    for (const auto& lookups : {layer.inputs, layer.messages}) {
      for (const LabelLayer::Lookup& lookup : lookups) {
        size_t at = 0, expected = 0;
        for (size_t i = 0; i < lookup.positions.size(); ++i) {
          at += lookup.strides[i] * At(context[At(lookup.positions[i])]);
        }
        for (const int32_t node : lookup.table->scope) {
          expected =
              expected * model.strategies(node) + (node == layer.node ? 0 : At(choice[At(node)]));
        }
        EXPECT_EQ(at, expected);
      }
    }
    std::vector<double> next_memory(layer.next_limits.size());
    for (size_t i = 0; i < next_memory.size(); ++i) {
      if (layer.next_limits[i] >= 0) next_memory[i] = memory[At(layer.next_limits[i])];
    }
    for (const LabelLayer::Use& use : layer.uses) {
      EXPECT_EQ(use.from < 0 ? 0 : memory[At(use.from)], used[At(use.limit)]);
      used[At(use.limit)] += model.memory[At(layer.node)][At(choice[At(layer.node)])];
      if (use.to >= 0) next_memory[At(use.to)] = used[At(use.limit)];
      if (use.to < 0) {
        EXPECT_EQ(use.most_after, 0);
      }
    }
    std::vector<int32_t> next_context;
    for (const int32_t position : layer.next_context) {
      next_context.push_back(position < 0 ? choice[At(layer.node)] : context[At(position)]);
    }
    context = std::move(next_context);
    memory = std::move(next_memory);
  }
  EXPECT_THAT(context, IsEmpty());
  EXPECT_THAT(memory, IsEmpty());
}

TEST(MakeLayers, LeadToTheChoicesAndTheMemoryTheyName) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 8, 0);
    AddLimits(model, seed, 20);
    const BucketTree tree(model, seed % 3 == 0 ? 16 : 1e6);
    std::mt19937 random(seed);
    std::vector<int32_t> choice;
    for (size_t i = 0; i < model.nodes(); ++i) {
      choice.push_back(Draw(random, 0, static_cast<int32_t>(model.cost[i].size()) - 1));
    }
    Replay(model, MakeLayers(model, tree), choice);
  }
}

TEST(Prices, AddWhatTheMemoryOfEachLimitCosts) {
  const Model model = Chain();
  const Prices prices{{2, 0.5}};
  EXPECT_THAT(prices.Add(model), ElementsAre(ElementsAre(1 + 2.5 * 5, 2 + 2.5),
                                             ElementsAre(22.5, 14, 13), ElementsAre(3 + 1, 1 + 3)));
  EXPECT_EQ(prices.OfBudgets(model), 2 * 8 + 0.5 * 11);
  const Prices none{{0, 0}};
  EXPECT_EQ(none.Add(model), model.cost);
  EXPECT_EQ(none.OfBudgets(model), 0);
}

TEST(SearchLabels, FindsTheBestWithinOverlappingLimits) {
  int32_t found = 0, none = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 6, seed % 4 == 1 ? 6 : 0);
    AddLimits(model, seed, 6 + seed % 12);
    BucketTree tree(model, seed % 3 == 0 ? 16 : 1e6);
    const Prices prices{{0.1, seed % 2 == 0 ? 0.0 : 0.7, 0.3}};
    const Costs costs = prices.Add(model);
    tree.Fill(costs);
    const LabelSearchResult result = SearchLabels(model, tree, prices, kImpossible, kAll);
    const double least = LeastCost(model, true);
    (least == kImpossible ? none : found) += 1;
    if (least == kImpossible) {
      EXPECT_THAT(result.choice, IsEmpty());
      EXPECT_EQ(result.cost, kImpossible);
      EXPECT_EQ(result.bound, kImpossible);
      continue;
    }
    EXPECT_NEAR(result.cost, least, 1e-9);
    EXPECT_EQ(result.cost, CostOf(model, result.choice));
    EXPECT_TRUE(Fits(model, result.choice));
  }
  EXPECT_GT(found, 10);
  EXPECT_GT(none, 3);
}

// A beam's bound is that of the labels it cut: never above the optimum, and no proof.
TEST(SearchLabels, RemembersWhatABeamCuts) {
  int32_t unproven = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Model model = RandomModel(seed, 7, 0);
    AddLimits(model, seed, 14);
    BucketTree tree(model, 16);
    const Prices prices{{0, 0, 0}};
    const Costs costs = prices.Add(model);
    const double bound = tree.Fill(costs);
    const double least = LeastCost(model, true);
    for (const size_t width : {size_t{1}, size_t{3}, size_t{30}}) {
      const LabelSearchResult beam =
          SearchLabels(model, tree, prices, kImpossible, {.width = width, .labels = 1 << 30});
      EXPECT_LE(beam.bound, least + 1e-9);
      EXPECT_GE(beam.bound, bound - 1e-9);
      EXPECT_LE(beam.labels, static_cast<int64_t>(7 * 4 * width));
      unproven += beam.bound < beam.cost - 1e-9 ? 1 : 0;
    }
  }
  EXPECT_GT(unproven, 20);
}

// Once so many labels were made, eight are kept at each of the nodes.
TEST(SearchLabels, KeepsFewLabelsOnceManyWereMade) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    Model model = RandomModel(seed, 12, 0);
    AddLimits(model, seed, 16);
    BucketTree tree(model, 16);
    const Prices prices{{0, 0, 0}};
    const Costs costs = prices.Add(model);
    tree.Fill(costs);
    const LabelSearchResult hasty =
        SearchLabels(model, tree, prices, kImpossible, {.width = 1 << 20, .labels = 0});
    EXPECT_LE(hasty.labels, 12 * 4 * 8);
    const LabelSearchResult patient =
        SearchLabels(model, tree, prices, kImpossible, {.width = 400, .labels = 1 << 30});
    EXPECT_LE(patient.cost, hasty.cost);
    EXPECT_GE(patient.labels, hasty.labels);
  }
}

TEST(SearchLabels, FindsNothingWhereALimitOnNothingIsTooSmall) {
  Model model = Chain();
  model.limits = {{.live_set = 0, .nodes = {}, .budget = 0}};
  BucketTree tree(model, 1e6);
  const Prices prices{{0}};
  const Costs costs = prices.Add(model);
  tree.Fill(costs);
  EXPECT_THAT(SearchLabels(model, tree, prices, kImpossible, kAll).choice, SizeIs(3));
  model.limits[0].budget = -1;
  EXPECT_THAT(SearchLabels(model, tree, prices, kImpossible, kAll).choice, IsEmpty());
}

}  // namespace
}  // namespace label_layers_test_cc
}  // namespace orrery::transforms::strategies
