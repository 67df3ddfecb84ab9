#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/infer_test_util.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"
#include "ir/text/text.h"

// Types, errors and gradients of the ops that move elements.

namespace orrery::ir {
namespace movement_test_cc {
namespace {

TEST(Movement, SplitsAreKeptThroughAReshapeWherePartsStayContiguous) {
  Expect({
      {"Reshape {shape=[-1, 8]}", "f32[4@dp,3,8]", "f32[12@dp,8]"},
      {"Reshape {shape=[4, 3, 8]}", "f32[12@dp,8@hp]", "f32[4@dp,3,8@hp]"},
      {"Reshape {shape=[2, 3, 8, 4]}", "f32[2@dp,3,32@hp]", "f32[2@dp,3,8@hp,4]"},
      {"Reshape {shape=[1, 4, 1, 6]}", "f32[4@dp,6]", "f32[1,4@dp,1,6]"},
      {"Reshape {shape=[4, 6]}", "f32[6@dp,4]", "f32[4@dp,6]"},
      {"Reshape {shape=[6, 4]}", "f32[6,4] partial(dp)", "f32[6,4] partial(dp)"},
      {"Reshape {shape=[6, 4]}", "f32[6,4@dp]", "f32[6,4@dp]"},
      {"Reshape {shape=[24]}", "f32[6,4@dp]",
       "dimension 1 of operand 0 is split over dp; it must be whole"},
      {"Reshape {shape=[3, 8]}", "f32[6@dp,4]",
       "dimension 0 of the result, of 3, does not divide into the 2 parts of the operand's "
       "dimension of 6"},
      {"Reshape {shape=[2, 4]}", "f32[8@hp]",
       "dimension 0 of the result, of 2, does not divide into the 4 parts of the operand's "
       "dimension of 8"},
  });
}

TEST(Movement, ShapesOfReshape) {
  const std::string trouble = "; wanted as many elements, and at most one -1";
  Expect({
      {"Reshape {shape=[]}", "f32[1,1]", "f32[]"},
      {"Reshape {shape=[0, 7]}", "f32[3,99]", "f32[0,7]"},
      {"Reshape {shape=[4]}", "f32[3]", "cannot reshape [3] to [4]" + trouble},
      {"Reshape {shape=[-1, -1]}", "f32[4]", "cannot reshape [4] to [-1,-1]" + trouble},
      {"Reshape {shape=[-2, 2]}", "f32[4]", "cannot reshape [4] to [-2,2]" + trouble},
      {"Reshape {shape=[0, -1]}", "f32[99]", "cannot reshape [0] to [0,-1]" + trouble},
      {"Reshape {shape=[4611686018427387904, 4611686018427387904]}", "f32[4]",
       "cannot reshape [4] to [4611686018427387904,4611686018427387904]" + trouble},
  });
}

TEST(Movement, ShapesOfSqueezeUnsqueezeAndExpand) {
  Expect({
      {"Squeeze {axes=[1]}", "f32[4@dp,1]", "f32[4@dp]"},
      {"Squeeze {axes=[0]}", "f32[4,1]", "dimension 0 of [4,1] cannot be left out; wanted size 1"},
      {"Squeeze {axes=[1, 1]}", "f32[4,1]", "axes=[1,1] names 1 twice"},
      {"Unsqueeze {axes=[0, 3]}", "f32[4@dp,3]", "f32[1,4@dp,3,1]"},
      {"Unsqueeze {axes=[4]}", "f32[4,3]", "axis 4 is none of the 3 dimensions"},
      {"Expand {shape=[-1, 3]}", "f32[4@dp,1]", "f32[4@dp,3]"},
      {"Expand {batch_dim=0, shape=[8, -1, -1]}", "f32[1,5]", "f32[8,1,5]"},
      {"Expand {shape=[0, -1]}", "f32[1,5]", "f32[0,5]"},
      {"Expand {shape=[4, 2]}", "f32[4,3]",
       "cannot expand [4,3] to [4,2]; wanted the same sizes where they are not 1, or -1"},
      {"Expand {shape=[-1, 4]}", "f32[4]",
       "cannot expand [4] to [-1,4]; wanted the same sizes where they are not 1, or -1"},
  });
}

TEST(Movement, ShapesOfConcatSplitAndSlice) {
  Expect({
      {"Concat {axis=1}", "f32[4@dp,1]; f32[4@dp,99]; f32[4@dp,3]", "f32[4@dp,4]"},
      {"Concat {axis=0}", "f32[4@dp,3]; f32[4@dp,3]",
       "dimension 0 of operand 0 is split over dp; it must be whole"},
      {"Concat {axis=0}", "f32[4,1]; f32[4,2]",
       "cannot join f32[4,1] and f32[4,2] along dimension 0; wanted all others alike"},
      {"Concat {axis=0}", "f32[4]; f16[4]",
       "cannot join f32[4] and f16[4] along dimension 0; wanted all others alike"},
      {"Concat {axis=0}", "f32[]; f32[]", "axis 0 is none of the 0 dimensions"},
      {"Split {axis=1, sizes=[1, 0, 3]}", "f32[8@hp,4]", "f32[8@hp,1]; f32[8@hp,0]; f32[8@hp,3]"},
      {"Split {axis=1, sizes=[5, -1]}", "f32[8,4]",
       "sizes=[5,-1] do not add up to the 4 of dimension 1"},
      {"Split {axis=1}", "f32[8,4]", "sizes=[] do not add up to the 4 of dimension 1"},
      {"Slice {axes=[1], starts=[1], ends=[9223372036854775807], steps=[3]}", "f32[4@dp,8]",
       "f32[4@dp,3]"},
      {"Slice {axes=[0], starts=[6], ends=[0], steps=[-2]}", "f32[8]", "f32[3]"},
      {"Slice {axes=[0], starts=[8], ends=[9223372036854775807], steps=[1]}", "f32[8]", "f32[0]"},
      {"Slice {axes=[0], starts=[9], ends=[9223372036854775807], steps=[1]}", "f32[8]",
       "the slice from 9 to 9223372036854775807 by 1 leaves dimension 0 of [8]"},
      {"Slice {axes=[0], starts=[0], ends=[9], steps=[1]}", "f32[8]",
       "the slice from 0 to 9 by 1 leaves dimension 0 of [8]"},
      {"Slice {axes=[0], starts=[0], ends=[4], steps=[0]}", "f32[8]",
       "the slice from 0 to 4 by 0 leaves dimension 0 of [8]"},
      {"Slice {axes=[0], starts=[0], ends=[4]}", "f32[8]",
       "steps=[]; wanted one number of at least -2305843009213693952 for each of the 1 axes"},
      {"Slice {axes=[0], starts=[-1], ends=[4], steps=[1]}", "f32[8]",
       "starts=[-1]; wanted one number of at least 0 for each of the 1 axes"},
  });
}

TEST(Movement, ShapesOfPadAndTile) {
  Expect({
      {"Pad {axes=[1], before=[1], after=[2]}", "f32[4@dp,99]", "f32[4@dp,3]"},
      {"Pad {axes=[0], before=[1], after=[2], mode=\"edge\"}", "f32[99]",
       "dimension 0 of [0] has nothing to repeat for mode=\"edge\""},
      {"Pad {axes=[0], before=[1], after=[2], mode=\"twice\"}", "f32[3]",
       "mode=\"twice\"; wanted one of constant, edge, reflect, wrap"},
      {"Pad {axes=[0], before=[9223372036854775807], after=[9223372036854775807]}", "f32[3]",
       "its result would be f32[2305843009213693952]; wanted at most 2^60 bytes"},
      {"PadGrad {axes=[0], before=[1], after=[2], mode=\"edge\"}", "f32[3]",
       "dimension 0 of [3] is no more than 3 of padding"},
      {"Tile {axes=[1], repeats=[3]}", "f32[4@dp,2]", "f32[4@dp,6]"},
      {"Tile {axes=[0], repeats=[3]}", "f32[4@dp]",
       "dimension 0 of operand 0 is split over dp; it must be whole"},
      {"Tile {axes=[0], repeats=[9223372036854775807]}", "f32[4]",
       "its result would be f32[2305843009213693952]; wanted at most 2^60 bytes"},
  });
}

// Rows 4 and 5 of a table of eight.
std::string GatheredFromShare(std::vector<int64_t> ids) {
  const Dims dims = {static_cast<int64_t>(ids.size())};
  const Tensor table = Tensor::OfFloats(DType::kF32, {2}, {40, 50});
  const Tensor indices = Tensor::OfInts(DType::kI64, dims, std::move(ids));
  const std::vector<const Tensor*> operands = {&table, &indices};
  std::vector<Tensor> results = {Tensor(DType::kF32, dims)};
  const std::vector<Share> shares = {{{4}, {8}}, {{0}, dims}, {{0}, dims}};
  const AttributeSet attributes = {{"axis", int64_t{0}}};
  Evaluation e{
      .attributes = attributes, .operands = operands, .results = results, .shares = shares};
  const absl::Status status = GetOpInfo(OpKind::kGather).evaluate(e);
  if (!status.ok()) return std::string(status.message());
  return absl::StrJoin(results[0].floats(), " ");
}

// Indices are into the whole table, from its end when negative.
TEST(Movement, GatherTakesOfItsShareWhatIndicesIntoTheWholeName) {
  EXPECT_EQ(GatheredFromShare({4, 0, 5, -4, -3, -8, 7}), "40 0 50 40 50 0 0");
  EXPECT_EQ(GatheredFromShare({8}), "index 8 is no position in a dimension of 8");
  EXPECT_EQ(GatheredFromShare({-9}), "index -9 is no position in a dimension of 8");
}

TEST(Movement, ShapesOfGatherAndScatter) {
  Expect({
      {"Gather {axis=0}", "f32[100,16@hp]; i64[8@dp,3]", "f32[8@dp,3,16@hp]"},
      {"Gather {axis=1}", "f32[8@dp,5]; i32[]", "f32[8@dp]"},
      {"Gather {axis=0}", "f32[100,16]; f32[8]", "the indices are f32; wanted i32 or i64"},
      {"GatherGrad {axis=0, size=100}", "i64[8@dp]; f32[8@dp,16@hp]", "f32[100,16@hp] partial(dp)"},
      {"Gather {axis=0}", "f32[100@hp,16]; i64[8@dp,3]", "f32[8@dp,3,16] partial(hp)"},
      {"Gather {axis=1}", "i32[8@dp,100@hp]; i64[]", "i32[8@dp] partial(hp)"},
      {"Gather {axis=0}", "bool[100@hp]; i64[8]",
       "dimension 0 of operand 0 is split over hp; it must be whole"},
      {"GatherGrad {axis=0, size=100}", "i64[8]; f32[8,16] partial(dp)", "f32[100,16] partial(dp)"},
      {"GatherGrad {axis=0, size=100}", "i64[8@hp]; f32[8@hp,16] partial(dp)",
       "f32[100,16] partial(dp.hp)"},
      {"GatherGrad {axis=0, size=100, split=\"hp\"}", "i64[8@dp]; f32[8@dp,16]",
       "f32[100@hp,16] partial(dp)"},
      {"GatherGrad {axis=0, size=104, split=\"hp.dp\"}", "i64[8]; f32[8,16]", "f32[104@hp.dp,16]"},
      {"GatherGrad {axis=0, size=100, split=\"hp\"}", "i64[8]; f32[8,16@hp]",
       "split='hp' names an axis that splits an operand; wanted others"},
      {"GatherGrad {axis=0, size=102, split=\"hp\"}", "i64[8]; f32[8,16]",
       "dimension 0 of the result, of 102, does not divide into the 4 parts that split='hp' wants"},
      {"GatherGrad {axis=0, size=100}", "i64[8]; f32[7,16]",
       "got indices [8], rows [7,16], axis 0 and size 100; wanted rows that have the indices' "
       "dimensions from the axis on"},
      {"GatherElements {axis=1}", "f32[8@dp,5]; i64[8@dp,4@hp]", "f32[8@dp,4@hp]"},
      {"GatherElements {axis=1}", "f32[8@dp,12@hp]; i64[8@dp,4]", "f32[8@dp,4] partial(hp)"},
      {"GatherElementsGrad {axis=1, size=12, split=\"hp\"}", "i64[8@dp,4]; f32[8@dp,4]",
       "f32[8@dp,12@hp]"},
      {"GatherElements {axis=1}", "f32[8,5]; i64[9,3]",
       "got shapes [8,5] and [9,3]; wanted indices of the same rank and no larger, but for "
       "dimension 1"},
      {"GatherElementsGrad {axis=1, size=5}", "i64[8@dp,4@hp]; f32[8@dp,4@hp]",
       "f32[8@dp,5] partial(hp)"},
      {"ScatterElements {axis=1}", "f32[8@dp,5]; i64[8@dp,3]; f32[8@dp,3]", "f32[8@dp,5]"},
      {"ScatterElements {axis=1}", "f32[8,5]; i64[8,3]; f16[8,3]",
       "the updates are f16[8,3]; wanted f32[8,3]"},
      {"ScatterElements {axis=1, reduction=\"sum\"}", "f32[8,5]; i64[8,3]; f32[8,3]",
       "reduction=\"sum\"; wanted one of none, add, mul, max, min"},
      {"GatherND {batch_dims=1}", "f32[8@dp,5,16@hp]; i64[8@dp,3,1]", "f32[8@dp,3,16@hp]"},
      {"GatherND", "f32[8,5]; i64[3,3]",
       "got shapes [8,5] and [3,3] with batch_dims=0; wanted indices [batch..,tuples..,k] into k "
       "dimensions after the batch"},
      {"GatherND", "f32[8,5]; i64[]",
       "got shapes [8,5] and [] with batch_dims=0; wanted indices [batch..,tuples..,k] into k "
       "dimensions after the batch"},
      {"ScatterND", "f32[8,16@hp]; i64[3,1]; f32[3,16@hp]", "f32[8,16@hp]"},
      {"ScatterND", "f32[8,16]; i64[2@dp,1]; f32[2@dp,16]",
       "dimension 0 of operand 1 is split over dp; it must be whole"},
  });
}

TEST(Movement, ShapesOfTheOthers) {
  Expect({
      {"TopK {axis=1, k=3}", "f32[8@dp,5]", "f32[8@dp,3]; i64[8@dp,3]"},
      {"TopK {axis=1, k=6}", "f32[8,5]", "k=6; wanted at most the 5 elements of the dimension"},
      {"Trilu {upper=0}", "f32[8@dp,5,4]", "f32[8@dp,5,4]"},
      {"Trilu", "f32[8]", "got shape [8]; wanted [..,rows,columns]"},
      {"ReverseSequence {batch_axis=0, time_axis=1}", "f32[8@dp,5]; i64[8@dp]", "f32[8@dp,5]"},
      {"ReverseSequence", "f32[8,5]; i64[8]",
       "got lengths [8] for [8,5]; wanted one for each position along dimension 1"},
      {"OneHot {axis=1, depth=5, to=\"f16\"}", "i64[8@dp]", "f16[8@dp,5]"},
      {"OneHot {axis=0, depth=5, to=\"f17\"}", "i64[8]",
       "to=\"f17\"; wanted an element type, as f32"},
      {"RandomLike {to=\"bf16\"}", "f32[8@dp]", "bf16[8@dp]"},
      {"Resize {axes=[2, 3], sizes=[6, 8]}", "f32[2@dp,4@hp,3,4]", "f32[2@dp,4@hp,6,8]"},
      {"Resize {axes=[0], sizes=[6], mode=\"quadratic\"}", "f32[4]",
       "mode=\"quadratic\"; wanted one of nearest, linear, cubic"},
      {"Resize {axes=[0], sizes=[0]}", "f32[4]",
       "sizes=[0]; wanted one number of at least 1 for each of the 1 axes"},
      {"Resize {axes=[0], sizes=[6], scales=[0.0]}", "f32[4]",
       "scales=[0] and roi=[] for 1 axes; wanted a positive scale and a begin and an end for each, "
       "or none"},
  });
}

// The ops that a gradient rule adds for the last op of the body, all of whose results have
// gradients dy0, dy1, … but those whose number `without` has.
std::string GradientOf(const std::string& text, const std::vector<int>& without = {}) {
  absl::StatusOr<Function> function = ParseFunction(text);
  if (!function.ok()) return std::string(function.status().message());
  const OpId op = function->order().back();
  std::vector<ValueId> gradients;
  for (int32_t j = 0; j < function->result_count(op); ++j) {
    const TensorType type = function->type(function->result(op, j));
    const bool has = std::find(without.begin(), without.end(), j) == without.end();
    gradients.push_back(has ? function->AddInput(absl::StrCat("dy", j), type, InputRole::kData)
                            : ValueId());
  }
  const size_t before = function->order().size();
  Builder builder(*std::move(function));
  const IdTable<ValueId, char> needed(builder.function().value_limit(), 1);
  GradientContext context(builder, op, gradients, needed);
  const absl::Status status = builder.function().info(op).gradient(context);
  if (!status.ok()) return std::string(status.message());
  std::string added;
  const auto& order = builder.function().order();
  for (size_t i = before; i < order.size(); ++i) {
    const Function& f = builder.function();
    absl::StrAppend(&added, f.info(order[i]).name, " ", ToString(f.attributes(order[i])), " ",
                    ToString(f.type(f.result(order[i])), f.mesh()), "\n");
  }
  return added;
}

TEST(MovementGradients, LeaveTheBatchOpen) {
  EXPECT_EQ(GradientOf("func @f (%x: f32[2,3,4] parameter) { %y: f32[6,4] = Reshape(%x) "
                       "{shape=[-1, 4]} return %y: result }"),
            "Reshape {shape=[-1, 3, 4]} f32[2,3,4]\n");
  EXPECT_EQ(GradientOf("func @f (%x: f32[6,4] parameter) { %y: f32[2,3,4] = Reshape(%x) "
                       "{shape=[-1, 3, 4]} return %y: result }"),
            "Reshape {shape=[-1, 4]} f32[6,4]\n");
  EXPECT_EQ(GradientOf("func @f (%x: f32[2,3] parameter) { %y: f32[2,6] = Tile(%x) "
                       "{axes=[1], repeats=[2]} return %y: result }"),
            "Reshape {shape=[-1, 2, 3]} f32[2,2,3]\nReduceSum {axes=[1]} f32[2,3]\n");
}

TEST(MovementGradients, OfPartsThatNothingDependsOnArePadding) {
  const std::string split =
      "func @f (%x: f32[2,10] parameter) { %a: f32[2,1], %b: f32[2,2], %c: f32[2,3], %d: f32[2,4] "
      "= Split(%x) {axis=1, sizes=[1, 2, 3, 4]} return %a: result }";
  EXPECT_EQ(GradientOf(split), "Concat {axis=1} f32[2,10]\n");
  EXPECT_EQ(GradientOf(split, {0, 2, 3}), "Pad {after=[7], axes=[1], before=[1]} f32[2,10]\n");
  EXPECT_EQ(GradientOf(split, {0, 2}),
            "Pad {after=[3], axes=[1], before=[1]} f32[2,6]\nConcat {axis=1} f32[2,10]\n");
}

TEST(MovementGradients, OfSlices) {
  EXPECT_EQ(GradientOf("func @f (%x: f32[2,7] parameter) { %y: f32[2,3] = Slice(%x) {axes=[1], "
                       "starts=[2], ends=[5], steps=[1]} return %y: result }"),
            "Pad {after=[2], axes=[1], before=[2]} f32[2,7]\n");
  EXPECT_EQ(GradientOf("func @f (%x: f32[7] parameter) { %y: f32[3] = Slice(%x) {axes=[0], "
                       "starts=[1], ends=[6], steps=[2]} return %y: result }"),
            "SliceGrad {axes=[0], sizes=[7], starts=[1], steps=[2]} f32[7]\n");
  EXPECT_EQ(GradientOf("func @f (%x: f32[3] parameter) { %y: f32[6] = Pad(%x) {axes=[0], "
                       "before=[3], after=[0]} return %y: result }"),
            "Slice {axes=[0], ends=[9223372036854775807], starts=[3], steps=[1]} f32[3]\n");
}

TEST(MovementGradients, OfScatters) {
  const std::string head =
      "func @f (%x: f32[4,3] parameter, %ids: i64[2,1] data, %u: f32[2,3] parameter) { %y: "
      "f32[4,3] = ScatterND(%x, %ids, %u) ";
  EXPECT_EQ(GradientOf(head + "return %y: result }"),
            "ScatterND {value=0} f32[4,3]\nGatherND  f32[2,3]\n");
  EXPECT_EQ(GradientOf(head + "{reduction=\"add\"} return %y: result }"), "GatherND  f32[2,3]\n");
  EXPECT_EQ(GradientOf(head + "{reduction=\"mul\"} return %y: result }"),
            "has no gradient with reduction=\"mul\"; wanted none or add");
  // Fewer indices than elements: the others get no gradient.
  EXPECT_EQ(GradientOf("func @f (%x: f32[4,3] parameter, %ids: i64[2,1] data) { %y: f32[2,1] = "
                       "GatherElements(%x, %ids) {axis=0} return %y: result }"),
            "GatherElementsGrad {axis=0, size=4} f32[4,1]\n"
            "Pad {after=[2], axes=[1], before=[0]} f32[4,3]\n");
}

// 1, 2, … of `dims`, resized along all of them.
std::vector<double> Resized(const Dims& dims, AttributeSet attributes,
                            const std::vector<int64_t>& sizes, const std::vector<double>& scales) {
  Tensor x(DType::kF64, dims);
  for (size_t i = 0; i < x.floats().size(); ++i) x.floats()[i] = static_cast<double>(i + 1);
  attributes.Set("axes", std::vector<int64_t>{0, 1});
  attributes.Set("sizes", sizes);
  if (!scales.empty()) attributes.Set("scales", scales);
  const TensorType type{DType::kF64, Dims(sizes.begin(), sizes.end()), {}};
  const Tensor* const operands[] = {&x};
  const auto y = Evaluate(OpKind::kResize, attributes, operands, std::span(&type, 1));
  return y.ok() ? (*y)[0].floats() : std::vector<double>();
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5) << i;
}

// The outputs that ONNX 1.15 documents for what its test data of 1.12 lacks.
TEST(Resize, AsOnnxDocumentsIt) {
  const AttributeSet linear = {{"mode", "linear"}, {"antialias", int64_t{1}}};
  const AttributeSet cubic = {{"mode", "cubic"}, {"antialias", int64_t{1}}};
  ExpectNear(Resized({4, 4}, linear, {2, 2}, {0.6, 0.6}), {2.875, 4.5, 9.375, 11});
  ExpectNear(Resized({4, 4}, linear, {3, 3}, {}), {2.3636363, 3.590909, 4.818182, 7.2727275, 8.5,
                                                   9.727273, 12.181818, 13.409091, 14.636364});
  ExpectNear(Resized({4, 4}, cubic, {2, 2}, {0.6, 0.6}),
             {2.5180721, 4.2858863, 9.589329, 11.357142});
  ExpectNear(Resized({1, 4}, {{"mode", "linear"}, {"coordinates", "half_pixel_symmetric"}}, {1, 2},
                     {1.0, 0.6}),
             {1.6666667, 3.3333333});
}

}  // namespace
}  // namespace movement_test_cc
}  // namespace orrery::ir
