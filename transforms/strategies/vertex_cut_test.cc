#include "transforms/strategies/vertex_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "transforms/strategies/random_graph_test_util.h"

namespace orrery::transforms::strategies {
namespace vertex_cut_test_cc {
namespace {

using ::testing::ElementsAre;

// A node after another, the first beside the left end and the last beside the right one.
CutProblem Line(std::vector<int64_t> weights) {
  const size_t nodes = weights.size();
  CutProblem problem{.weight = std::move(weights),
                     .neighbours = std::vector<std::vector<int32_t>>(nodes),
                     .touches_left = std::vector<bool>(nodes),
                     .touches_right = std::vector<bool>(nodes)};
  problem.touches_left.front() = problem.touches_right.back() = true;
  for (size_t i = 1; i < nodes; ++i) {
    problem.neighbours[i - 1].push_back(static_cast<int32_t>(i));
    problem.neighbours[i].push_back(static_cast<int32_t>(i - 1));
  }
  return problem;
}

TEST(VertexCut, CutsALineWhereItIsThinnest) {
  EXPECT_THAT(LeftOfLeastCut(Line({5, 4, 2, 3, 6})), ElementsAre(true, true, false, false, false));
  EXPECT_THAT(LeftOfLeastCut(Line({1})), ElementsAre(false));
  // Of two cuts, the one on the left.
  EXPECT_THAT(LeftOfLeastCut(Line({5, 2, 4, 2, 6})), ElementsAre(true, false, false, false, false));
}

TEST(VertexCut, HasNothingToCutWhereEndsAreApart) {
  CutProblem problem = Line({3, 3, 3});
  problem.touches_right.back() = false;
  EXPECT_THAT(LeftOfLeastCut(problem), ElementsAre(true, true, true));
  problem = Line({3, 3, 3});
  problem.touches_left.front() = false;
  EXPECT_THAT(LeftOfLeastCut(problem), ElementsAre(false, false, false));
}

// What separates the nodes in `left` from the others: nodes beside them, and beside the left end.
// None where one of `left` is beside the right end.
std::optional<int64_t> WeightOf(const CutProblem& problem, const std::vector<bool>& left) {
  std::vector<bool> cut(left.size());
  for (size_t node = 0; node < left.size(); ++node) {
    if (left[node] && problem.touches_right[node]) return std::nullopt;
    if (!left[node]) {
      if (problem.touches_left[node]) cut[node] = true;
      continue;
    }
    for (const int32_t other : problem.neighbours[node]) {
      if (!left[static_cast<size_t>(other)]) cut[static_cast<size_t>(other)] = true;
    }
  }
  int64_t weight = 0;
  for (size_t node = 0; node < left.size(); ++node) weight += cut[node] ? problem.weight[node] : 0;
  return weight;
}

// Against all sets of nodes: none weighs less, and those that weigh as much hold it.
TEST(VertexCut, IsTheLeftmostOfAllThatWeighLeast) {
  constexpr size_t kNodes = 9;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    CutProblem problem = Line(std::vector<int64_t>(kNodes, 1));
    for (size_t node = 0; node < kNodes; ++node) {
      problem.weight[node] = Draw(random, 1, 4);
      if (Draw(random, 0, 4) == 0) problem.touches_left[node] = true;
      if (Draw(random, 0, 4) == 0) problem.touches_right[node] = true;
      const int32_t other = Draw(random, 0, kNodes - 1);
      problem.neighbours[node].push_back(other);
      problem.neighbours[static_cast<size_t>(other)].push_back(static_cast<int32_t>(node));
    }
    const std::vector<bool> found = LeftOfLeastCut(problem);
    const std::optional<int64_t> least = WeightOf(problem, found);
    ASSERT_TRUE(least.has_value());
    for (uint32_t set = 0; set < 1u << kNodes; ++set) {
      std::vector<bool> left(kNodes);
      for (size_t node = 0; node < kNodes; ++node) left[node] = (set >> node & 1) != 0;
      const std::optional<int64_t> weight = WeightOf(problem, left);
      if (!weight.has_value()) continue;
      EXPECT_GE(*weight, *least);
      if (*weight > *least) continue;
      for (size_t node = 0; node < kNodes; ++node) EXPECT_TRUE(left[node] || !found[node]);
    }
  }
}

}  // namespace
}  // namespace vertex_cut_test_cc
}  // namespace orrery::transforms::strategies
