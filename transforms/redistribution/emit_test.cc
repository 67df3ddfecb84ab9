#include "transforms/redistribution/emit.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/execution/execute.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/tensorcraft.h"

// The ops of plans: as text, as what they compute, and where there are none.

namespace orrery::transforms::redistribution {
namespace emit_test_cc {
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

PackedLayout LayoutOf(const Placements& placements) {
  return PackedLayout(ShardingOf(placements, 2));
}

// A function that begins with x, f32[16,32] sharded over three axes, and steps to take with it.
struct Walk {
  explicit Walk(const PackedLayout& from)
      : builder("f", ir::Mesh({{"dp", 2}, {"hp", 2}, {"pp", 4}})) {
    x = builder.Data("x", {.dtype = ir::DType::kF32, .dims = {16, 32}, .sharding = from.Unpack(2)});
  }
  explicit Walk(const Placements& from) : Walk(LayoutOf(from)) {}

  Walk& Then(MoveKind kind, const std::vector<int>& axes, int from, int to,
             const PackedLayout& after) {
    plan.steps.push_back({.step = {.kind = kind,
                                   .axes = Axes(axes),
                                   .from = static_cast<int8_t>(from),
                                   .to = static_cast<int8_t>(to),
                                   .after = after}});
    return *this;
  }
  Walk& Then(MoveKind kind, const std::vector<int>& axes, int from, int to,
             const Placements& after) {
    return Then(kind, axes, from, to, LayoutOf(after));
  }

  // The lines of the ops, which must lead where the steps do; or the error.
  std::vector<std::string> Lines() {
    const auto y = Emit(plan, x, "y", builder);
    if (!y.ok()) return {std::string(y.status().message())};
    EXPECT_EQ(builder.type(*y).sharding, plan.steps.back().step.after.Unpack(2));
    EXPECT_EQ(builder.type(*y).dims, ir::Dims({16, 32}));
    builder.Return(*y);
    const ir::Function function = std::move(builder).Finalize().value();
    EXPECT_TRUE(ir::Verify(function).ok());
    std::vector<std::string> lines;
    for (const absl::string_view line : absl::StrSplit(ir::Print(function), '\n')) {
      if (absl::StrContains(line, " = ")) lines.emplace_back(absl::StripAsciiWhitespace(line));
    }
    return lines;
  }

  ir::Builder builder;
  ir::ValueId x;
  RedistributionPlan plan;
};

TEST(Emit, OfNoStepsIsTheValue) {
  Walk walk({"S0", "R", "R"});
  const auto y = Emit(walk.plan, walk.x, "y", walk.builder);
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(*y, walk.x);
  EXPECT_TRUE(walk.builder.function().order().empty());
  EXPECT_FALSE(walk.builder.IsTaken("y"));
}

TEST(Emit, OfOneStepHasTheName) {
  EXPECT_THAT(Walk({"S1", "R", "R"})
                  .Then(MoveKind::kAllGather, {0}, 1, -1, Placements{"R", "R", "R"})
                  .Lines(),
              ElementsAre("%y: f32[16,32] = AllGather(%x) {axes=\"dp\", dim=1}"));
}

TEST(Emit, OnlyTheLastStepHasTheName) {
  PackedLayout reversed;
  reversed.SetSplit(0, Axes({2, 1}));
  EXPECT_THAT(Walk({"Psum", "S0", "S0"})
                  .Then(MoveKind::kAllReduce, {0}, -1, -1, Placements{"R", "S0", "S0"})
                  .Then(MoveKind::kAllGather, {1, 2}, 0, -1, Placements{"R", "R", "R"})
                  .Then(MoveKind::kSlice, {2, 1}, -1, 0, reversed)
                  .Lines(),
              ElementsAre("%1: f32[16@hp.pp,32] = AllReduce(%x) {axes=\"dp\"}",
                          "%2: f32[16,32] = AllGather(%1) {axes=\"hp.pp\", dim=0}",
                          "%y: f32[16@pp.hp,32] = AllSlice(%2) {axes=\"pp.hp\", dim=0}"));
}

TEST(Emit, MovesSplitsFromOneDimensionToAnother) {
  EXPECT_THAT(Walk({"Psum", "Psum", "S0"})
                  .Then(MoveKind::kReduceScatter, {0, 1}, -1, 1, Placements{"S1", "S1", "S0"})
                  .Then(MoveKind::kAllToAll, {2}, 0, 1, Placements{"S1", "S1", "S1"})
                  .Lines(),
              ElementsAre("%1: f32[16@pp,32@dp.hp] = ReduceScatter(%x) {axes=\"dp.hp\", dim=1}",
                          "%y: f32[16,32@dp.hp.pp] = AllToAll(%1) {axes=\"pp\", from=0, to=1}"));
}

TEST(Emit, PermutesAxesOfOneSize) {
  PackedLayout after = LayoutOf({"S1", "S0", "S0"});
  EXPECT_THAT(
      Walk({"S0", "S1", "S0"}).Then(MoveKind::kPermute, {0, 1}, -1, -1, after).Lines(),
      ElementsAre("%y: f32[16@hp.pp,32@dp] = Permute(%x) {axes=\"dp.hp\", to=\"hp.pp;dp\"}"));
  after = PackedLayout();
  after.SetSplit(1, Axes({1, 0}));
  EXPECT_THAT(Walk({"S1", "S1", "R"}).Then(MoveKind::kPermute, {0, 1}, 1, 1, after).Lines(),
              ElementsAre("%y: f32[16,32@hp.dp] = Permute(%x) {axes=\"dp.hp\", to=\";hp.dp\"}"));
}

TEST(Emit, DealsBlocksAndMakesSummands) {
  PackedLayout blocks, others;
  blocks.SetSplit(0, Axes({0}), 2);
  others.SetSplit(0, Axes({0}), 4);
  EXPECT_THAT(Walk({"S0", "R", "R"})
                  .Then(MoveKind::kReblock, {0}, 0, 0, blocks)
                  .Then(MoveKind::kReblock, {0}, 0, 0, others)
                  .Then(MoveKind::kAllGather, {0}, 0, -1, Placements{"R", "R", "R"})
                  .Then(MoveKind::kSlice, {0}, -1, 0, blocks)
                  .Lines(),
              ElementsAre("%1: f32[16@dp/2,32] = Reblock(%x) {axes=\"dp\", block=2, dim=0, "
                          "to=\"dp\"}",
                          "%2: f32[16@dp/4,32] = Reblock(%1) {axes=\"dp\", block=4, dim=0, "
                          "to=\"dp\"}",
                          "%3: f32[16,32] = AllGather(%2) {axes=\"dp\", dim=0}",
                          "%y: f32[16@dp/2,32] = AllSlice(%3) {axes=\"dp\", block=2, dim=0}"));
  EXPECT_THAT(Walk({"R", "R", "R"})
                  .Then(MoveKind::kMakePartial, {2}, -1, -1, Placements{"R", "R", "Pmax"})
                  .Then(MoveKind::kAllReduce, {2}, -1, -1, Placements{"R", "R", "R"})
                  .Then(MoveKind::kMakePartial, {2}, -1, -1, Placements{"R", "R", "Psum"})
                  .Lines(),
              ElementsAre("%1: f32[16,32] partial(pp:max) = MakePartial(%x) {axes=\"pp\", "
                          "reduction=\"max\"}",
                          "%2: f32[16,32] = AllReduce(%1) {axes=\"pp\"}",
                          "%y: f32[16,32] partial(pp) = MakePartial(%2) {axes=\"pp\", "
                          "reduction=\"sum\"}"));
}

TEST(Emit, SplitsWhatDoesNotDivideUnevenly) {
  Walk walk({"R", "R", "R"});
  walk.x = walk.builder.Data("z", {.dtype = ir::DType::kF32, .dims = {5, 3}, .sharding = {}});
  const auto y = Emit(walk.Then(MoveKind::kSlice, {0}, -1, 0, Placements{"S0", "R", "R"})
                          .Then(MoveKind::kSlice, {1}, -1, 0, Placements{"S0", "S0", "R"})
                          .plan,
                      walk.x, "y", walk.builder);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(ir::ToString(walk.builder.type(*y), walk.builder.function().mesh()), "f32[5@dp.hp,3]");
}

TEST(Emit, HasNoOpForAnotherOrderInMemory) {
  const PackedLayout gathered;
  EXPECT_THAT(Walk({"R", "R", "R"}).Then(MoveKind::kLocalCopy, {}, -1, -1, gathered).Lines(),
              ElementsAre("a step of a redistribution is a local-copy to f32[16,32]; wanted one "
                          "that an op can carry out"));
  // tensorcraft's blocks become half as many when an outer axis comes to a dimension.
  PackedLayout blocks, outer;
  blocks.SetSplit(0, Axes({0}), 4);
  outer.SetSplit(0, Axes({1, 0}), 4);
  EXPECT_THAT(Walk(blocks).Then(MoveKind::kSlice, {1}, -1, 0, outer).Lines(),
              ElementsAre("f: AllSlice 'y': dimension 0 of its operand is split over dp; blocks "
                          "are dealt to all ranks at once"));
  // Axes come to a dimension within those that split it, and not around them.
  PackedLayout around;
  around.SetSplit(0, Axes({1, 0}));
  EXPECT_THAT(Walk({"S0", "R", "R"}).Then(MoveKind::kSlice, {1}, -1, 0, around).Lines(),
              ElementsAre(HasSubstr("a step of a redistribution is a slice to f32[16@hp.dp,32]; "
                                    "wanted one that an op can carry out")));
}

// Steps of a kind that has an op, but not of this value: the op's own errors.
TEST(Emit, LeavesErrorsToTheOps) {
  EXPECT_THAT(Walk({"S0", "R", "R"})
                  .Then(MoveKind::kAllGather, {0}, -1, -1, Placements{"R", "R", "R"})
                  .Lines(),
              ElementsAre("f: AllGather 'y': dim=-1 is no dimension of its operand"));
  Walk walk({"R", "R", "R"});
  walk.Then(MoveKind::kAllReduce, {1}, -1, -1, Placements{"R", "R", "R"});
  EXPECT_THAT(walk.Lines(), ElementsAre("f: AllReduce 'y': its operand is not partial over hp"));
  EXPECT_FALSE(walk.builder.status().ok()) << "it sticks";
}

// Ops that came before an error is known are there; a caller that goes on has its own builder.
TEST(Emit, StopsAtTheFirstStepWithoutOp) {
  Walk walk({"S0", "R", "R"});
  walk.Then(MoveKind::kAllGather, {0}, 0, -1, Placements{"R", "R", "R"})
      .Then(MoveKind::kLocalCopy, {0}, -1, -1, Placements{"R", "R", "R"})
      .Then(MoveKind::kSlice, {1}, -1, 0, Placements{"R", "S0", "R"});
  const auto y = Emit(walk.plan, walk.x, "y", walk.builder);
  EXPECT_EQ(y.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(walk.builder.status().ok());
  EXPECT_FALSE(walk.builder.IsTaken("y"));
  EXPECT_EQ(walk.builder.function().order().size(), 1);
}

// Dimensions that divide by all ranks, for the ops; sums of whole numbers, which have no order.
Problem RandomEvenProblem(std::mt19937& random) {
  Problem problem{
      .mesh = ir::Mesh({{"a", 2}, {"b", 3}, {"c", 2}}), .dims = {12, 24}, .from = {}, .to = {}};
  for (ir::Sharding* const sharding : {&problem.from, &problem.to}) {
    std::vector<int> order = {0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    PackedLayout layout;
    for (const int axis : order) {
      const auto role = static_cast<int>(random() % 4);
      AxisList axes = layout.axes(role);
      axes.push_back(static_cast<AxisIndex>(axis));
      if (role < 2) layout.SetSplit(role, axes);
      if (role == 2 && sharding == &problem.from) {
        layout.SetPartial(static_cast<AxisIndex>(axis), ir::Reduction::kSum);
      }
    }
    *sharding = layout.Unpack(2);
  }
  return problem;
}

// A tensor whose elements are all others; few, so that products of them are whole numbers.
ir::Tensor Numbered(const ir::Dims& dims) {
  ir::Tensor whole(ir::DType::kF32, dims);
  for (size_t e = 0; e < whole.floats().size(); ++e) whole.floats()[e] = static_cast<double>(e + 1);
  return whole;
}

// The ops of `plan`, carried out rank by rank, leave the value as it was and in its new layout.
void ExpectKept(const Problem& problem, const RedistributionPlan& plan) {
  ir::Builder builder("plan", problem.mesh);
  const ir::TensorType type{
      .dtype = ir::DType::kF32, .dims = problem.dims, .sharding = problem.from};
  const ir::Tensor whole = Numbered(problem.dims);
  const auto y = Emit(plan, builder.Data("x", type), "y", builder);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(builder.type(*y).sharding, problem.to);
  EXPECT_EQ(builder.function().order().size(), plan.steps.size());
  EXPECT_EQ(builder.IsTaken("y"), !plan.steps.empty());
  if (plan.steps.empty()) return;  // samples that nobody moves are dealt evenly
  builder.Return(*y);
  const auto function = std::move(builder).Finalize();
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(ir::Print(*ir::ParseFunction(ir::Print(*function))), ir::Print(*function));
  const auto execution = ir::Execute(*function, {{"x", whole}});
  ASSERT_TRUE(execution.ok()) << execution.status();
  EXPECT_EQ(execution->outputs[0], whole)
      << ir::Print(*function) << absl::StrJoin(StepsOf(plan), ", ");
  EXPECT_EQ(execution->disagreement, 0);
}

TEST(Emit, OfDtensorsPlansKeepsTheValue) {
  std::mt19937 random(3);
  int ops = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = RandomEvenProblem(random);
    const RedistributionPlan plan = PlanOf(problem, {.merge = i % 2 == 0});
    ExpectKept(problem, plan);
    ops += static_cast<int>(plan.steps.size());
  }
  EXPECT_GT(ops, 100);
}

// Of any sizes, many of them less than there are ranks, and of all reductions.
TEST(Emit, OfPlansOverUnevenPartsAndReductionsKeepsTheValue) {
  std::mt19937 random(4);
  int uneven = 0, partial = 0;
  for (int i = 0; i < 300; ++i) {
    Problem problem = RandomProblem(random, 3);
    for (int64_t& dim : problem.dims) dim = 1 + dim % 9;
    const RedistributionPlan plan = PlanOf(problem, {.merge = i % 2 == 0});
    ExpectKept(problem, plan);
    if (HasFatalFailure()) return;
    for (size_t d = 0; d < problem.dims.size(); ++d) {
      uneven += problem.dims[d] % problem.mesh.size(problem.to.at(d)) != 0;
    }
    for (const PlannedStep& step : plan.steps) {
      partial += step.step.kind == MoveKind::kMakePartial;
    }
  }
  EXPECT_GT(uneven, 50);
  EXPECT_GT(partial, 50);
}

// From blocks of any size, or nested or balanced chunks, to others, the axes in any order.
TEST(Emit, OfReblocksKeepsTheValue) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    Problem problem{.mesh = MeshOf({2, 3}),
                    .dims = {1 + static_cast<int64_t>(random() % 20), 2},
                    .from = {},
                    .to = {}};
    const bool both = random() % 2 == 0;
    for (ir::Sharding* const sharding : {&problem.from, &problem.to}) {
      AxisList axes = both && random() % 2 == 0 ? Axes({1, 0}) : both ? Axes({0, 1}) : Axes({1});
      sharding->Set(0, 2, axes, static_cast<int64_t>(random() % 6) - 1);
    }
    RedistributionPlan plan;
    plan.steps.push_back({.step = {.kind = MoveKind::kReblock,
                                   .axes = problem.from.at(0),
                                   .from = 0,
                                   .to = 0,
                                   .after = PackedLayout(problem.to)}});
    ExpectKept(problem, plan);
  }
}

}  // namespace
}  // namespace emit_test_cc
}  // namespace orrery::transforms::redistribution
