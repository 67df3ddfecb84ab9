#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transforms/redistribution/tensorcraft.h"

// The parts of tensorcraft's prices worked out by hand, its bound against exhaustion, and what it
// says of layouts and options that are not its own.

namespace orrery::transforms::redistribution {
namespace tensorcraft_price_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using testing::ElementsAre;
using testing::HasSubstr;

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

PackedLayout Split(int dim, const std::vector<int>& axes, int64_t block) {
  PackedLayout layout;
  layout.SetSplit(dim, Axes(axes), block);
  return layout;
}

// 32 x 32 elements on 2 x 4 ranks, to blocks of 4 columns over axis 1.
Problem SmallProblem() {
  Problem problem{.mesh = ir::Mesh({{"a", 2}, {"b", 4}}), .dims = {32, 32}, .from = {}, .to = {}};
  problem.from = Split(0, {0, 1}, 2).Unpack(2);
  problem.to = Split(1, {1}, 4).Unpack(2);
  return problem;
}

std::unique_ptr<TensorcraftMoveSet> MoveSetOf(const Problem& problem,
                                              const TensorcraftOptions& options = {}) {
  auto move_set = TensorcraftMoveSet::Create(problem, options);
  EXPECT_TRUE(move_set.ok()) << move_set.status();
  return *std::move(move_set);
}

// "latency + transfer + memory" with weights of 100, 1 and 10000.
std::string PriceOf(const PackedLayout& before, const Step& step, bool physical) {
  const auto move_set =
      MoveSetOf(SmallProblem(), {.alpha = 100, .gamma = 7, .epsilon = 10000, .physical = physical});
  const StepCost cost = move_set->CostOf(before, step);
  EXPECT_EQ(cost.total(), cost.latency + cost.transfer + cost.memory);
  return absl::StrCat(cost.latency, " + ", cost.transfer, " + ", cost.memory / 10000, "e4");
}

TEST(TensorcraftPrices, OfAnAllGather) {
  // 128 elements on each of 8 ranks; over the last axis 4 x 128 come together.
  const PackedLayout before = Split(0, {0, 1}, 2);
  const Step last{MoveKind::kAllGather, Axes({1}), 0, -1, Split(0, {0}, 8)};
  const Step all{MoveKind::kAllGather, Axes({0, 1}), -1, -1, {}};
  for (const bool physical : {false, true}) {
    EXPECT_EQ(PriceOf(before, last, physical), "200 + 384 + 384e4");
    EXPECT_EQ(PriceOf(before, all, physical), "300 + 896 + 896e4");
  }
}

TEST(TensorcraftPrices, OfAnAllToAllArePhysicalOnDemand) {
  const Step step{MoveKind::kAllToAll, Axes({1}), 0, 1, Split(1, {1}, 8)};
  EXPECT_EQ(PriceOf(Split(0, {1}, 8), step, false), "200 + 768 + 0e4");
  EXPECT_EQ(PriceOf(Split(0, {1}, 8), step, true), "200 + 192 + 0e4");
}

TEST(TensorcraftPrices, OfPermutationsAndOtherBlocks) {
  const Step permute{MoveKind::kPermute, Axes({0, 1}), 0, 0, Split(0, {1, 0}, 2)};
  EXPECT_EQ(PriceOf(Split(0, {0, 1}, 2), permute, false), "100 + 256 + 0e4");
  const Step reblock{MoveKind::kReblock, Axes({1}), 0, -1, Split(0, {1}, 1)};
  EXPECT_EQ(PriceOf(Split(0, {1}, 8), reblock, false), "200 + 192 + 0e4");
  EXPECT_EQ(PriceOf(Split(0, {1}, 8), reblock, true), "200 + 192 + 0e4");
}

TEST(TensorcraftPrices, OfASliceAreNone) {
  const Step slice{MoveKind::kSlice, Axes({0}), -1, 0, Split(0, {0}, 1)};
  EXPECT_EQ(PriceOf({}, slice, false), "0 + 0 + 0e4");
}

TEST(TensorcraftPrices, OfTheLastResortMoveTheFullerLayout) {
  for (const bool physical : {false, true}) {
    const auto move_set =
        MoveSetOf(SmallProblem(), {.alpha = 100, .beta = 1, .epsilon = 0.5, .physical = physical});
    std::vector<Move> moves;
    move_set->LastResort(Split(0, {0, 1}, 2), moves);
    ASSERT_EQ(moves.size(), 1);
    EXPECT_EQ(moves[0].step.axes, Axes({0, 1}));
    EXPECT_EQ(moves[0].step.after, Split(1, {1}, 4));
    EXPECT_EQ(moves[0].peak, 256);
    // As if gathered and split: 3 hops over 8 ranks; 256 elements to each of seven others; the
    // other 896 elements are held. So it is the same whatever an all-to-all is charged.
    EXPECT_EQ(moves[0].cost, 300 + 7 * 256 + 448);
    EXPECT_EQ(move_set->NameOf(Split(0, {0, 1}, 2), moves[0].step), "alltoall_*");
    move_set->LastResort(Split(1, {1}, 4), moves);
    EXPECT_EQ(moves.size(), 1) << "none from the target";
  }
}

TEST(TensorcraftNames, OfStepsThatAreNoOperation) {
  const auto move_set = MoveSetOf(SmallProblem());
  const PackedLayout at = Split(0, {1}, 8);
  EXPECT_EQ(move_set->NameOf(at, {MoveKind::kLocalCopy, {}, -1, -1, at}), "local-copy");
  EXPECT_EQ(move_set->NameOf({}, {MoveKind::kSlice, Axes({0, 1}), -1, -1, Split(0, {0, 1}, 2)}),
            "split_*");
  EXPECT_EQ(move_set->NameOf(at, {MoveKind::kAllReduce, Axes({0}), -1, -1, at}), "all-reduce");
}

TEST(TensorcraftNames, OfAllOperations) {
  using Kind = TensorcraftOperationKind;
  const auto name = [](TensorcraftOperation operation) { return NameOf(operation); };
  EXPECT_EQ(name({.kind = Kind::kSplit, .to = 1, .axes = Axes({2}), .block = 5}), "split_1_2_5");
  EXPECT_EQ(name({.kind = Kind::kSplit, .to = 1, .to_minor = true, .axes = Axes({2}), .block = 5}),
            "split_minor_1_2_5");
  EXPECT_EQ(name({.kind = Kind::kAllGather, .axes = {}}), "allgather_*");
  EXPECT_EQ(name({.kind = Kind::kAllGather, .axes = Axes({3})}), "allgather_3");
  EXPECT_EQ(name({.kind = Kind::kPermute, .axes = Axes({2, 0})}), "permute_2_0");
  TensorcraftOperation exchange{.kind = Kind::kAllToAll, .from = 0, .to = 2, .axes = {}};
  EXPECT_EQ(name(exchange), "alltoall_0_2_-1");
  exchange.from_minor = true;
  EXPECT_EQ(name(exchange), "alltoall_mf_0_2_-1");
  exchange.to_minor = true;
  exchange.block = 7;
  EXPECT_EQ(name(exchange), "alltoall_mf_mt_0_2_7");
  EXPECT_EQ(name({.kind = Kind::kChangeBlock, .to = 1, .axes = {}, .block = 6}),
            "changeBlockSize_1_6");
}

TEST(TensorcraftNaive, TakesWhatIsNeededOnly) {
  Problem problem = SmallProblem();
  const auto kinds = [&] {
    std::vector<std::string> steps;
    for (const PlannedStep& step : MoveSetOf(problem)->Naive().steps) {
      steps.emplace_back(ToString(step.step.kind));
    }
    return steps;
  };
  EXPECT_THAT(kinds(), ElementsAre("all-gather", "slice"));
  problem.to = {};
  EXPECT_THAT(kinds(), ElementsAre("all-gather"));
  problem.to = problem.from;
  EXPECT_THAT(kinds(), testing::IsEmpty());
  problem.from = {};
  EXPECT_THAT(kinds(), ElementsAre("slice"));
  const RedistributionPlan plan = MoveSetOf(problem)->Naive();
  EXPECT_EQ(plan.peak, 1024);
  EXPECT_EQ(plan.cost, 0);
}

TEST(TensorcraftLayouts, AreOpened) {
  const TensorcraftTensor tensor(ir::Mesh({{"a", 2}, {"b", 4}, {"c", 3}}), {33, 10});
  PackedLayout layout = Split(0, {2, 0}, 4);
  layout.SetSplit(1, Axes({1}), 2);
  const TensorcraftLayout open = tensor.Open(layout);
  EXPECT_EQ(open.used, Axes({0, 1, 2}));
  EXPECT_EQ(open.ranks, 24);
  EXPECT_EQ(open.dims[0].axes, Axes({2, 0}));
  EXPECT_EQ(open.dims[0].parts, 6);
  EXPECT_EQ(open.dims[0].block, 4);
  EXPECT_EQ(open.dims[0].largest, 8) << "elements 0 to 3 and 24 to 27";
  EXPECT_EQ(open.dims[1].largest, 4) << "elements 0, 1, 8 and 9";
  EXPECT_EQ(open.elements, 32);
  const TensorcraftLayout whole = tensor.Open({});
  EXPECT_TRUE(whole.used.empty());
  EXPECT_EQ(whole.dims[0].block, 1);
  EXPECT_EQ(whole.dims[0].largest, 33);
  EXPECT_EQ(whole.elements, 330);
}

TEST(TensorcraftLayouts, HaveBlocksInTheirNormalForm) {
  const TensorcraftTensor tensor(ir::Mesh({{"a", 2}, {"b", 4}}), {32, 24});
  for (const int64_t chunks : {ir::kNestedChunks, ir::kBalancedChunks}) {
    PackedLayout layout = Split(0, {1, 0}, chunks);
    EXPECT_TRUE(tensor.Check(layout).ok());
    EXPECT_EQ(tensor.Normal(layout), Split(0, {1, 0}, 4));
  }
  EXPECT_EQ(tensor.Normal(Split(1, {0}, 5)), Split(1, {0}, 5));
  EXPECT_EQ(tensor.Normal({}), PackedLayout());
}

TEST(TensorcraftLayouts, HaveABlockForEachPart) {
  EXPECT_EQ(LargestBlock(3, 4), 0);
  EXPECT_EQ(LargestBlock(4, 4), 1);
  EXPECT_EQ(LargestBlock(10, 4), 3);
  EXPECT_EQ(LargestBlock(9, 4), 2) << "with 3 the last part would have none";
  EXPECT_EQ(LargestBlock(9, 1), 9);
  const TensorcraftTensor tensor(ir::Mesh({{"a", 4}}), {10});
  EXPECT_TRUE(tensor.Check(Split(0, {0}, 3)).ok());
  EXPECT_EQ(tensor.Check(Split(0, {0}, 4)).message(),
            "dimension 0 of 10 elements on 4 ranks: got a block of 4; wanted an element for every "
            "rank, with a block of 1 to 3");
  EXPECT_EQ(tensor.Check(Split(0, {0}, ir::kBalancedChunks)).message(),
            "dimension 0 of 10 elements on 4 ranks: got chunks that differ in size; wanted an "
            "element for every rank, with a block of 1 to 3");
  EXPECT_EQ(tensor.Check(Split(1, {0}, 1)).message(),
            "got axis 0, of a mesh of 1, in a tensor of 1 dimensions; wanted axes of the mesh on "
            "dimensions of the tensor");
}

TEST(TensorcraftOptions, ErrorsWordByWord) {
  EXPECT_EQ(ParseTensorcraftOptions("beta=1,alpha=-2").status().message(),
            "tensorcraft: got option 'alpha=-2'; wanted alpha=, beta=, gamma= or epsilon= with a "
            "number of at least 0, or physical, as in alpha=0.01,beta=0.00032,physical");
  EXPECT_THAT(ParseTensorcraftOptions("epsilon=1,physical,epsilon=1").status().message(),
              HasSubstr("got option 'epsilon=1' again; wanted alpha="));
  EXPECT_EQ(ParseTensorcraftOptions("alpha=0")->alpha, 0);
  EXPECT_EQ(ParseTensorcraftOptions("beta=2")->beta, 2);
  EXPECT_EQ(ParseTensorcraftOptions("gamma=3")->gamma, 3);
  EXPECT_EQ(ParseTensorcraftOptions("epsilon=4")->epsilon, 4);
}

// From every layout that the source leads to, the least cost by going over all moves again and
// again is no less than the bound. False where the source does not lead to the target.
bool ExpectBoundsHold(const Problem& problem, const TensorcraftOptions& options) {
  const auto move_set = MoveSetOf(problem, options);
  std::vector<PackedLayout> layouts = {move_set->Normal(PackedLayout(problem.from))};
  absl::flat_hash_map<PackedLayout, size_t> number = {{layouts[0], 0}};
  std::vector<std::vector<std::pair<size_t, double>>> edges;
  std::vector<Move> moves;
  for (size_t i = 0; i < layouts.size(); ++i) {
    moves.clear();
    move_set->Expand(PackedLayout(layouts[i]), moves);
    edges.emplace_back();
    for (const Move& move : moves) {
      const auto [at, added] = number.emplace(move.step.after, layouts.size());
      if (added) layouts.push_back(move.step.after);
      edges[i].emplace_back(at->second, move.cost);
    }
  }
  const auto target = number.find(move_set->Normal(PackedLayout(problem.to)));
  if (target == number.end()) return false;
  std::vector<double> least(layouts.size(), std::numeric_limits<double>::infinity());
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
  EXPECT_EQ(move_set->LowerBound(layouts[target->second]), 0);
  for (size_t i = 0; i < layouts.size(); ++i) EXPECT_LE(move_set->LowerBound(layouts[i]), least[i]);
  return true;
}

TEST(TensorcraftBound, IsNoMoreThanTheLeastCost) {
  std::mt19937 random(29);
  const auto draw = [&](int64_t end) { return static_cast<int64_t>(random() % uint64_t(end)); };
  int reached = 0;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    Problem problem{.mesh = ir::Mesh({{"a", 1 + draw(3)}, {"b", 2 + draw(2)}}),
                    .dims = {12 + 2 * draw(4), 12},
                    .from = {},
                    .to = {}};
    problem.from = Split(static_cast<int>(draw(2)), {0, 1}, 1).Unpack(2);
    problem.to = Split(static_cast<int>(draw(2)), {1}, 1 + draw(4)).Unpack(2);
    reached += ExpectBoundsHold(problem, {.alpha = double(draw(20)),
                                          .beta = 0.25 * double(draw(5)),
                                          .epsilon = double(draw(2)),
                                          .physical = draw(2) == 0})
                   ? 1
                   : 0;
  }
  EXPECT_GT(reached, 40);
}

TEST(TensorcraftBound, IsWorthSomethingWhereAnAxisHasToMove) {
  const auto move_set = MoveSetOf(SmallProblem(), {.alpha = 100});
  // The last collective leads to at most 4 parts, of 256 elements: a hop and half of them.
  EXPECT_NEAR(move_set->LowerBound(Split(0, {1}, 8)), std::max(100 + 128.0, 200 + 3 * 128.0), 1e-6);
  EXPECT_NEAR(move_set->LowerBound(Split(0, {0, 1}, 2)), 300 + 4 * 128.0, 1e-6);
  EXPECT_EQ(move_set->LowerBound({}), 0) << "a split leads to the target";
}

}  // namespace
}  // namespace tensorcraft_price_test_cc
}  // namespace orrery::transforms::redistribution
