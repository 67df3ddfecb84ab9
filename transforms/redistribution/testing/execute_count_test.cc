#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/tensorcraft.h"
#include "transforms/redistribution/testing/execute.h"

// What ranks send where parts are uneven, counted by hand; and every move of every set, carried
// out by itself.

namespace orrery::transforms::redistribution {
namespace execute_count_test_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

AxisList Axes(const std::vector<int>& axes) {
  AxisList list;
  for (const int axis : axes) list.push_back(static_cast<AxisIndex>(axis));
  return list;
}

PackedLayout Split(int dim, const std::vector<int>& axes, int64_t block = ir::kNestedChunks) {
  PackedLayout layout;
  layout.SetSplit(dim, Axes(axes), block);
  return layout;
}

PackedLayout Partial(AxisIndex axis, ir::Reduction reduction = ir::Reduction::kSum) {
  PackedLayout layout;
  layout.SetPartial(axis, reduction);
  return layout;
}

// One step from a layout, on a mesh and a tensor; the target is where it leads.
absl::StatusOr<Execution> RunStep(const std::vector<int64_t>& mesh, const ir::Dims& dims,
                                  const PackedLayout& from, const Step& step) {
  const Problem problem{.mesh = MeshOf(mesh),
                        .dims = dims,
                        .from = from.Unpack(dims.size()),
                        .to = step.after.Unpack(dims.size())};
  return Execute(problem, std::vector<Step>{step});
}

std::string Trouble(const std::vector<int64_t>& mesh, const ir::Dims& dims,
                    const PackedLayout& from, const Step& step) {
  return std::string(RunStep(mesh, dims, from, step).status().message());
}

TEST(ExecuteCounts, ReduceScatterOfUnevenChunks) {
  // 5 elements as 2, 2, 1 and none.
  const auto run =
      RunStep({4}, {5}, Partial(0), {MoveKind::kReduceScatter, Axes({0}), -1, 0, Split(0, {0})});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[0].sent, ElementsAre(3, 3, 4, 5));
  EXPECT_THAT(run->steps[0].received, ElementsAre(6, 6, 3, 0));
  EXPECT_EQ(run->steps[0].most_sent(), 5);
  EXPECT_EQ(run->steps[0].most_received(), 6);
  EXPECT_EQ(run->steps[0].held, 2);
  EXPECT_EQ(run->sent(), 15);
}

// Fewer elements than ranks: the two that reduce one each send it to all others.
TEST(ExecuteCounts, AllReduceOfFewElements) {
  const auto run = RunStep({4}, {2}, Partial(0), {MoveKind::kAllReduce, Axes({0}), -1, -1, {}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[0].sent, ElementsAre(4, 2, 4, 2));
  EXPECT_THAT(run->steps[0].received, ElementsAre(4, 2, 4, 2));
  EXPECT_EQ(run->steps[0].held, 2);
}

// Halves that two ranks hold each: whoever comes next in the group sends.
TEST(ExecuteCounts, ReplicasShareTheSending) {
  const auto run =
      RunStep({2, 2}, {4}, Split(0, {1}), {MoveKind::kAllGather, Axes({0, 1}), 0, -1, {}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[0].sent, Each(2));
  const auto turned =
      RunStep({2, 2}, {4}, Split(0, {1}), {MoveKind::kAllGather, Axes({1, 0}), 0, -1, {}});
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_THAT(turned->steps[0].sent, ElementsAre(4, 4, 0, 0));
  EXPECT_THAT(turned->steps[0].received, Each(2));
}

// 7 rows of one element, as 4 and 3, against 3 blocks of 3 dealt in turn: rank 0 has rows 0 to 2
// and 6, rank 1 rows 3 to 5.
TEST(ExecuteCounts, ReblockMovesWhatChangesHands) {
  const Step step{MoveKind::kReblock, Axes({0}), 0, 0, Split(0, {0}, 3)};
  const auto run = RunStep({2}, {7}, Split(0, {0}), step);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->steps[0].sent, ElementsAre(1, 1));
  EXPECT_EQ(run->steps[0].held, 4);
  // Without axes, the group is that of the dimension; a dimension that there is not has none.
  Step unsaid = step;
  unsaid.axes = {};
  EXPECT_THAT(RunStep({2}, {7}, Split(0, {0}), unsaid)->steps[0].sent, ElementsAre(1, 1));
  unsaid.from = 5;
  EXPECT_EQ(Trouble({2}, {7}, Split(0, {0}), unsaid),
            "step 0 (reblock): rank 0 needs element 6, which no rank of its group holds");
}

TEST(ExecuteCounts, WhatARankDoesByItselfMovesNothing) {
  for (const Step& step : {Step{MoveKind::kSlice, Axes({0}), -1, 0, Split(0, {0}, 2)},
                           Step{MoveKind::kLocalCopy, {}, -1, -1, {}},
                           Step{MoveKind::kMakePartial, Axes({0}), -1, -1, Partial(0)}}) {
    const auto run = RunStep({3}, {7}, {}, step);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(run->steps[0].sent, Each(0));
    EXPECT_EQ(run->steps[0].held, step.kind == MoveKind::kSlice ? 3 : 7);
  }
}

TEST(ExecuteCounts, OfAllStepsAreAddedUp) {
  const Problem problem{
      .mesh = MeshOf({2}), .dims = {6}, .from = Split(0, {0}).Unpack(1), .to = {}};
  const Step gather{MoveKind::kAllGather, Axes({0}), 0, -1, {}};
  const Step slice{MoveKind::kSlice, Axes({0}), -1, 0, Split(0, {0})};
  const auto run = Execute(problem, std::vector<Step>{gather, slice, gather});
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->steps.size(), 3);
  EXPECT_EQ(run->sent(), 12);
  EXPECT_EQ(run->steps[1].held, 3);
}

TEST(ExecuteErrors, OfWhatAStepLeavesPartial) {
  EXPECT_EQ(Trouble({2}, {4}, {}, {MoveKind::kMakePartial, Axes({0}), -1, -1, {}}),
            "step 0 (make-partial): leaves axis 0 whole, which such a step does not");
  EXPECT_EQ(Trouble({2}, {4}, {}, {MoveKind::kLocalCopy, {}, -1, -1, Partial(0)}),
            "step 0 (local-copy): leaves axis 0 partial, which such a step does not");
  EXPECT_EQ(Trouble({2}, {4}, Partial(0), {MoveKind::kAllReduce, Axes({0}), -1, -1, Partial(0)}),
            "step 0 (all-reduce): leaves axis 0 partial, which such a step does not");
  EXPECT_EQ(
      Trouble({2}, {4}, Split(0, {0}), {MoveKind::kMakePartial, Axes({0}), -1, -1, Partial(0)}),
      "step 0 (make-partial): makes axis 0 partial, which does not replicate");
}

TEST(ExecuteErrors, OfStepsThatDropWhatTheyKeep) {
  EXPECT_EQ(
      Trouble({2, 2}, {4}, Split(0, {0}), {MoveKind::kAllGather, Axes({0}), 0, -1, Split(0, {1})}),
      "step 0 (all-gather): rank 1 drops element 0; such a step keeps what a rank holds");
  EXPECT_EQ(Trouble({2}, {4}, Partial(0), {MoveKind::kAllReduce, Axes({0}), -1, -1, Split(0, {0})}),
            "step 0 (all-reduce): rank 0 drops element 2; such a step keeps what a rank holds");
}

TEST(ExecuteErrors, OfASummandThatIsNotThere) {
  PackedLayout from = Partial(0);
  from.SetSplit(0, Axes({1}));
  EXPECT_EQ(Trouble({2, 2}, {4}, from, {MoveKind::kAllReduce, Axes({0}), -1, -1, {}}),
            "step 0 (all-reduce): rank 0 has no summand of element 2");
}

TEST(ExecuteErrors, OfProblems) {
  const auto error = [](const Problem& problem) {
    return std::string(Execute(problem, std::vector<Step>()).status().message());
  };
  Problem problem{.mesh = MeshOf({2}), .dims = {}, .from = {}, .to = {}};
  EXPECT_TRUE(Execute(problem, std::vector<Step>()).ok()) << "a scalar";
  problem.dims = {4, -1};
  EXPECT_EQ(error(problem),
            "found a dimension of -1; wanted dimensions of at least 1, and at most 67108864 "
            "elements times ranks");
  problem.dims = {int64_t{1} << 62, 4};
  EXPECT_THAT(error(problem), HasSubstr("found a dimension of 4611686018427387904; wanted"));
  problem.dims = {kMostExecuted / 2 + 1};
  EXPECT_THAT(error(problem), HasSubstr("elements times ranks"));
  problem.dims = ir::Dims(31, 1);
  EXPECT_EQ(error(problem),
            "found 31 dimensions on mesh(a0=2); wanted at most 30, and at most 67108864 elements "
            "times ranks");
  problem.dims = {4};
  problem.to.partial = Axes({1});
  EXPECT_THAT(error(problem), HasSubstr("target: found axis 1; wanted one of the 1 of mesh(a0=2)"));
}

TEST(ExecuteErrors, NameTheStep) {
  const Problem problem{
      .mesh = MeshOf({2}), .dims = {6}, .from = Split(0, {0}).Unpack(1), .to = {}};
  const Step gather{MoveKind::kAllGather, Axes({0}), 0, -1, {}};
  const Step reduce{MoveKind::kAllReduce, Axes({0}), -1, -1, {}};
  EXPECT_EQ(Execute(problem, std::vector<Step>{gather, reduce}).status().message(),
            "step 1 (all-reduce): reduces axis 0, which is whole");
}

TEST(ExecuteErrors, OfAnotherReductionAtTheEnd) {
  const Problem problem{.mesh = MeshOf({2, 1}),
                        .dims = {4},
                        .from = Partial(0, ir::Reduction::kMax).Unpack(1),
                        .to = Partial(0, ir::Reduction::kMin).Unpack(1)};
  EXPECT_EQ(Execute(problem, std::vector<Step>()).status().message(),
            "axis 0 is not as partial as the target wants it");
  Problem alone = problem;  // an axis of one rank may be called what one likes
  alone.from = {};
  alone.to = Partial(1, ir::Reduction::kMin).Unpack(1);
  EXPECT_TRUE(Execute(alone, std::vector<Step>()).ok());
}

// Each move from `layout` does what it says: carried out alone, it leads to the layout after it.
void ExpectMovesRun(const MoveSet& move_set, const Problem& problem, const PackedLayout& layout,
                    std::mt19937& random, PackedLayout& next) {
  std::vector<Move> moves;
  move_set.Expand(layout, moves);
  move_set.LastResort(layout, moves);
  for (const Move& move : moves) {
    Problem one = problem;
    one.from = layout.Unpack(problem.dims.size());
    one.to = move.step.after.Unpack(problem.dims.size());
    const auto run = Execute(one, std::vector<Step>{move.step});
    ASSERT_TRUE(run.ok()) << move_set.NameOf(layout, move.step) << ": " << run.status();
    EXPECT_EQ(run->steps[0].held, move_set.Elements(move.step.after));
    EXPECT_LE(run->steps[0].held, move.peak);
    if (!Communicates(move.step.kind)) {
      EXPECT_EQ(run->sent(), 0);
    }
  }
  if (!moves.empty()) next = moves[random() % moves.size()].step.after;
}

TEST(ExecuteMoves, OfDtensor) {
  std::mt19937 random(17);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    Problem problem = RandomProblem(random, 3);
    for (int64_t& dim : problem.dims) dim = 1 + dim % 7;
    const auto move_set = DtensorOf(problem, {.merge = true});
    PackedLayout layout(problem.from);
    for (int step = 0; step < 2; ++step) {
      ExpectMovesRun(*move_set, problem, PackedLayout(layout), random, layout);
    }
  }
}

TEST(ExecuteMoves, OfTensorcraft) {
  std::mt19937 random(18);
  const auto draw = [&](int64_t end) { return static_cast<int64_t>(random() % uint64_t(end)); };
  for (int i = 0; i < 14; ++i) {
    SCOPED_TRACE(i);
    Problem problem{.mesh = MeshOf({2, 1 + draw(3), 2}), .dims = {}, .from = {}, .to = {}};
    problem.dims = {12 + draw(9), 12 + draw(5)};
    problem.to.Set(static_cast<size_t>(draw(2)), 2, Axes({2, 0}), 1 + draw(3));
    const auto move_set = TensorcraftMoveSet::Create(problem, {});
    ASSERT_TRUE(move_set.ok()) << move_set.status();
    PackedLayout layout(problem.from);
    for (int step = 0; step < 4; ++step) {
      ExpectMovesRun(**move_set, problem, PackedLayout(layout), random, layout);
    }
  }
}

}  // namespace
}  // namespace execute_count_test_cc
}  // namespace orrery::transforms::redistribution
