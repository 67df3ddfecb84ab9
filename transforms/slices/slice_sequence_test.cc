#include "transforms/slices/slice_sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/slices/slices.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace slice_sequence_test_cc {
namespace {

using ir::Function;
using testing::HasSubstr;

// Two samples of six positions, of width 4: a table of positions, keys that are their own values,
// and a parameter beside them.
constexpr absl::string_view kStep = R"(func @f (
  %x: f32[2,6,4] data,
  %labels: i64[2,6] data,
  %table: f32[6,4] parameter,
  %w: f32[4,4] parameter
) {
  %h: f32[2,6,4] = Add(%x, %table)
  %k: f32[2,6,4] = MatMul(%h, %w)
  %y: f32[2,6,4], %p: f32[2,2,6,6] = Attention(%h, %k, %k) {causal=1, heads=2}
  %loss: f32[2,6] = CrossEntropy(%y, %labels) {batch=12}
  %dy: f32[2,6,4] = CrossEntropyGrad(%y, %labels) {batch=12}
  %dq: f32[2,6,4], %dk: f32[2,6,4], %dv: f32[2,6,4] = AttentionGrad(%h, %k, %k, %y, %p, %dy) {causal=1, heads=2}
  %dkv: f32[2,6,4] = Add(%dk, %dv)
  %dh: f32[2,6,4], %dw: f32[4,4] = MatMulGrad(%h, %w, %dkv)
  %dx: f32[2,6,4] = Add(%dh, %dq)
  %dtable: f32[6,4] = ReduceSum(%dx) {axes=[0]}
  return %loss: loss, %dw: gradient(%w), %dtable: gradient(%table)
}
)";

TEST(SliceSequence, MeetsKeysOfEarlierSlicesAndGathersTheirGradients) {
  const Function step = ir::ParseFunction(std::string(kStep)).value();
  const auto slice = SliceSequence(step, {.begin = 2, .rows = 2});
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_TRUE(ir::Verify(*slice).ok()) << ir::Verify(*slice);
  EXPECT_EQ(ir::Print(*slice), R"(func @f (
  %x: f32[2,2,4] data,
  %labels: i64[2,2] data,
  %table: f32[6,4] parameter,
  %w: f32[4,4] parameter
) {
  %4: f32[2,4] = Slice(%table) {axes=[0], ends=[4], slice=1, starts=[2], steps=[1]}
  %h: f32[2,2,4] = Add(%x, %4)
  %k: f32[2,2,4] = MatMul(%h, %w)
  %7: f32[2,4,4] = ExtendRows(%k) {dim=1, earlier=2}
  %y: f32[2,2,4], %p: f32[2,2,2,4] = Attention(%h, %7, %7) {causal=1, heads=2}
  %loss: f32[2,2] = CrossEntropy(%y, %labels) {batch=12}
  %dy: f32[2,2,4] = CrossEntropyGrad(%y, %labels) {batch=12}
  %dq: f32[2,2,4], %13: f32[2,4,4], %14: f32[2,4,4] = AttentionGrad(%h, %7, %7, %y, %p, %dy) {causal=1, heads=2}
  %dk: f32[2,2,4] = ExtendRowsGrad(%13) {dim=1, earlier=2, later=2}
  %dv: f32[2,2,4] = ExtendRowsGrad(%14) {dim=1, earlier=2, later=2}
  %dkv: f32[2,2,4] = Add(%dk, %dv)
  %dh: f32[2,2,4], %dw: f32[4,4] = MatMulGrad(%h, %w, %dkv)
  %dx: f32[2,2,4] = Add(%dh, %dq)
  %21: f32[2,4] = ReduceSum(%dx) {axes=[0]}
  %dtable: f32[6,4] = Pad(%21) {after=[2], axes=[0], before=[2], slice=1}
  return %loss: loss, %dw: gradient(%w), %dtable: gradient(%table)
}
)");
}

// One forward op on x [2,6,4], and a parameter w [4,4].
Function Forward(absl::string_view body) {
  return ir::ParseFunction(absl::StrCat("func @f (\n  %x: f32[2,6,4] data,\n",
                                        "  %w: f32[4,4] parameter,\n  %t: f32[7,4] parameter,\n",
                                        "  %m: f32[6,6] buffer\n) {\n  ", body,
                                        "\n  return %y: result\n}\n"))
      .value();
}

TEST(SliceSequence, TakesTheRowsThatPositionsLookUp) {
  const auto slice = SliceSequence(Forward(R"(%i: i64[6] = Constant() {values=[0, 1, 2, 3, 4, 5]}
  %r: f32[6,4] = Gather(%t, %i) {axis=0}
  %y: f32[2,6,4] = Add(%x, %r))"),
                                   {.begin = 4, .rows = 2});
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_THAT(ir::Print(*slice), HasSubstr(R"() {
  %i: i64[6] = Constant() {values=[0, 1, 2, 3, 4, 5]}
  %5: i64[2] = Slice(%i) {axes=[0], ends=[6], slice=1, starts=[4], steps=[1]}
  %6: f32[2,4] = Gather(%t, %5) {axis=0}
  %y: f32[2,2,4] = Add(%x, %6)
  return)"));
}

TEST(SliceSequence, FollowsPositionsThroughShapes) {
  const auto slice = SliceSequence(Forward(R"(%h: f32[2,6,2,2] = Reshape(%x) {shape=[-1, 6, 2, 2]}
  %a: f32[2,2,6,2] = Transpose(%h) {perm=[0, 2, 1, 3]}
  %b: f32[2,6,2,2] = Transpose(%a) {perm=[0, 2, 1, 3]}
  %y: f32[2,6,4] = Reshape(%b) {shape=[2, 6, 4]})"),
                                   {.begin = 4, .rows = 2});
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_THAT(ir::Print(*slice), HasSubstr(R"(
  %h: f32[2,2,2,2] = Reshape(%x) {shape=[-1, 2, 2, 2], slice_dim=1}
  %a: f32[2,2,2,2] = Transpose(%h) {perm=[0, 2, 1, 3]}
  %b: f32[2,2,2,2] = Transpose(%a) {perm=[0, 2, 1, 3]}
  %y: f32[2,2,4] = Reshape(%b) {shape=[2, 2, 4], slice_dim=1}
)"));
}

struct Mixing {
  absl::string_view body, why;
};

constexpr Mixing kMixing[] = {
    {"%y: f32[2,6,4], %p: f32[2,1,6,6] = Attention(%x, %x, %x) {heads=1}",
     "f: Attention %y is not causal: a position sees later ones (positions are dimension 1 of "
     "%x); slices of a sequence want a causal model; try a schedule of parts of the batch, such "
     "as 1f1b"},
    {"%y: f32[2,6,4], %p: f32[2,1,6,6] = Attention(%x, %x, %x, %m) {heads=1}",
     "Attention %y has a mask of its own, which may let a position see later ones"},
    {"%y: f32[2,6,4], %p: f32[2,1,6,6] = Attention(%x, %x, %x, %m) {causal=1, heads=1}",
     "Attention %y has a mask besides being causal"},
    {"%t1: f32[2,4,6] = Transpose(%x) {perm=[0, 2, 1]}\n  %y: f32[2,6,6] = MatMul(%x, %t1)",
     "MatMul %y takes positions times positions, and is no causal Attention"},
    {"%y: f32[2,4] = ReduceMean(%x) {axes=[1]}", "ReduceMean %y puts all positions together"},
    {"%y: f32[2,4] = ReduceSum(%x) {axes=[1]}", "ReduceSum %y puts all positions together"},
    {"%y: f32[2,6,4] = Softmax(%x) {axis=1}", "Softmax %y computes along the positions"},
    {"%y: f32[2,6,4] = CumSum(%x) {axis=1}", "CumSum %y computes along the positions"},
    {"%y: f32[2,1,4] = Slice(%x) {axes=[1], ends=[6], starts=[5], steps=[1]}",
     "Slice %y computes along the positions"},
    {"%y: f32[12,4] = Reshape(%x) {shape=[-1, 4]}", "Reshape %y computes along the positions"},
    {"%y: f32[4,4] = Relu(%w)", "Relu %y returns what is no sum over slices"},
};

TEST(SliceSequence, NamesWhatMixesPositions) {
  for (const Mixing& mixing : kMixing) {
    const absl::StatusOr<Function> slice =
        SliceSequence(Forward(mixing.body), {.begin = 2, .rows = 2});
    const auto infeasible = AsInfeasible(slice.status());
    ASSERT_TRUE(infeasible.has_value()) << mixing.body << slice.status();
    EXPECT_EQ(infeasible->reason, InfeasibleReason::kUnsupported);
    EXPECT_THAT(infeasible->detail, HasSubstr(std::string(mixing.why)));
  }
}

Function Step(absl::string_view family, absl::string_view keys) {
  Function function = ir::BuildModel(family, keys, 2);
  EXPECT_TRUE(MakeTrainingStep(function, {.optimizer = "adam"}).ok());
  return function;
}

TEST(SliceSequence, RefusesModelsThatAreNotCausal) {
  for (const auto& [family, keys, op] : std::vector<std::array<std::string, 3>>{
           {"bert", "layers=1,hidden=8,heads=2,seq=4,vocab=8,classes=4", "Attention"},
           {"lstm", "layers=1,hidden=4,seq=4,vocab=8", "Lstm"},
           {"resnet", "depth=18,image=32,width=2,classes=4", "Conv"},
           {"mlp", "layers=2,dim=4", "MatMul"},
           {"gpt", "layers=1,hidden=8,heads=2,seq=4,vocab=8,experts=2", "Route"}}) {
    const Function step = Step(family, keys);
    const auto slice = SliceSequence(step, {.begin = 0, .rows = 1});
    ASSERT_TRUE(AsInfeasible(slice.status()).has_value()) << family << slice.status();
    EXPECT_THAT(std::string(slice.status().message()), HasSubstr(absl::StrCat(": ", op, " %")));
  }
}

TEST(SliceSequence, DropsOutInEachSlice) {
  const auto slice = SliceSequence(
      Step("gpt", "layers=1,hidden=8,heads=2,seq=4,vocab=8,dropout=0.1"), {.begin = 2, .rows = 1});
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_TRUE(ir::Verify(*slice).ok()) << ir::Verify(*slice);
}

TEST(EqualSlices, DivideTheSequence) {
  const Function step = ir::ParseFunction(std::string(kStep)).value();
  const std::vector<SliceRange> slices = EqualSlices(step, 3).value();
  ASSERT_EQ(slices.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(slices[i].begin, 2 * static_cast<int64_t>(i));
    EXPECT_EQ(slices[i].rows, 2);
  }
  const absl::Status odd = EqualSlices(step, 4).status();
  EXPECT_EQ(AsInfeasible(odd)->reason, InfeasibleReason::kDivisibility);
  EXPECT_EQ(AsInfeasible(odd)->detail,
            "a sequence of 6 does not divide into 4 slices of equal length; try another number");
  EXPECT_TRUE(absl::IsInvalidArgument(EqualSlices(step, 0).status()));
  const Function flat = ir::ParseFunction(
                            "func @f (\n  %x: f32[6] data\n) {\n  %y: f32[6] = Relu(%x)\n"
                            "  return %y: result\n}\n")
                            .value();
  EXPECT_EQ(AsInfeasible(EqualSlices(flat, 2).status())->reason, InfeasibleReason::kUnsupported);
}

TEST(CheckSlices, WantsOneBehindTheOther) {
  EXPECT_TRUE(CheckSlices({{0, 4}, {4, 1}, {5, 1}}, 6).ok());
  for (const std::vector<SliceRange>& slices : {std::vector<SliceRange>{{1, 5}},
                                                {{0, 3}, {4, 2}},
                                                {{0, 3}, {2, 4}},
                                                {{0, 3}, {3, 4}},
                                                {{0, 3}, {3, 0}, {3, 3}},
                                                {{0, 3}, {3, 2}},
                                                {}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckSlices(slices, 6)));
  }
  const Function step = ir::ParseFunction(std::string(kStep)).value();
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParallelTransform3d(step, {.microbatches = 2}, {.slices = {{0, 3}, {2, 4}}}).status()));
}

// Where no backward takes the keys, ExtendRows tells that later slices do.
TEST(SliceSequence, TellsOfLaterRowsWhereNothingElseDoes) {
  const auto slice = SliceSequence(
      Forward("%y: f32[2,6,4], %s: f32[2,2,6] = Attention(%x, %x, %x) {causal=1, flash=1, "
              "heads=2}"),
      {.begin = 1, .rows = 2});
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_THAT(ir::Print(*slice), HasSubstr("ExtendRows(%x) {dim=1, earlier=1, later=3}"));
}

TEST(SliceSequence, WantsASliceOfTheSequence) {
  const Function step = ir::ParseFunction(std::string(kStep)).value();
  for (const SliceRange slice : {SliceRange{-1, 2}, SliceRange{0, 0}, SliceRange{5, 2}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(SliceSequence(step, slice).status()));
  }
}

}  // namespace
}  // namespace slice_sequence_test_cc
}  // namespace orrery::transforms
