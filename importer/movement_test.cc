#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx_test_util.h"
#include "ir/op_info.h"

// ONNX ops that move elements: what differs from opset to opset, what they fold to, and what they
// leave free for the batch.

namespace orrery::importer {
namespace movement_test_cc {
namespace {

// The ops of the function that `graph` becomes, a line each, or the error after the node.
std::string Ops(const std::string& graph, int opset) {
  const auto function =
      ImportOnnx(WriteTestFile("m.onnx", ModelOf(graph, opset).SerializeAsString()), {});
  if (!function.ok()) {
    const std::string message = TextOf(function);
    return message.substr(message.find("': ") + 3);
  }
  std::string text;
  for (const ir::OpId op : function->order()) {
    absl::StrAppend(&text, function->info(op).name, ToString(function->attributes(op)));
    for (int32_t i = 0; i < function->result_count(op); ++i) {
      absl::StrAppend(&text, i == 0 ? " " : ", ",
                      ToString(function->type(function->result(op, i)), function->mesh()));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

TEST(MovementOnnx, ReshapeLeavesTheBatchOpen) {
  EXPECT_EQ(Ops("g (float[2,3,4] x) => (float[2,12] y) <int64[2] s = {0, -1}> {"
                "y = Reshape(x, s) }",
                13),
            "Reshape{shape=[-1, 12]} f32[2,12]\n");
  EXPECT_EQ(Ops("g (float[2,3,4] x) => (float[6,4] y) <int64[2] s = {-1, 4}> {"
                "y = Reshape(x, s) }",
                14),
            "Reshape{shape=[-1, 4]} f32[6,4]\n");
  EXPECT_EQ(
      Ops("g (float[2,3] x) => (float[2] y) <int64[3] s = {2, 3, 0}> { y = Reshape(x, s) }", 14),
      "shape [2,3,0] keeps dimension 2 of an input that has 2");
  EXPECT_EQ(Ops("g (float[2,3,4] x) => (float[2,12] y) { y = Flatten(x) }", 13),
            "Reshape{shape=[-1, 12]} f32[2,12]\n");
  EXPECT_EQ(Ops("g (float[2,3,4] x) => (float[6,4] y) { y = Flatten<axis = -1>(x) }", 13),
            "Reshape{shape=[-1, 4]} f32[6,4]\n");
}

// The usual way to flatten: everything but the reshape is folded.
TEST(MovementOnnx, ShapesAreFolded) {
  EXPECT_EQ(Ops(R"(
g (float[2,3,4] x) => (float[2,12] y) <int64 i = {0}, int64[1] a = {0}, int64[1] m = {-1}> {
  s = Shape(x)
  n = Gather(s, i)
  u = Unsqueeze(n, a)
  t = Concat<axis = 0>(u, m)
  y = Reshape(x, t)
})",
                13),
            "Reshape{shape=[-1, 12]} f32[2,12]\n");
  EXPECT_EQ(Ops(R"(
g (float[2,3,4] x) => (float[4,3] y) {
  s = Shape<start = -1>(x)
  t = Shape<start = 1, end = -1>(x)
  u = Concat<axis = 0>(s, t)
  y = ConstantOfShape(u)
})",
                15),
            "Constant{fill=0.0} f32[4,3]\n");
}

TEST(MovementOnnx, AxesWereAttributes) {
  const std::string wanted = "Unsqueeze{axes=[0, 3]} f32[1,2,3,1]\nSqueeze{axes=[0]} f32[2,3,1]\n";
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,3,1] y) {"
                "u = Unsqueeze<axes = [-1, 0]>(x) y = Squeeze<axes = [0]>(u) }",
                11),
            wanted);
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,3,1] y) <int64[2] a = {-1, 0}, int64[1] b = {0}> {"
                "u = Unsqueeze(x, a) y = Squeeze(u, b) }",
                13),
            wanted);
  EXPECT_EQ(Ops("g (float[1,3,1] x) => (float[3] y) { y = Squeeze(x) }", 13),
            "Squeeze{axes=[0, 2]} f32[3]\n");
}

TEST(MovementOnnx, ExpandKeepsDimensionsThatItDoesNotRepeat) {
  EXPECT_EQ(Ops("g (float[2,1,3] x) => (float[2,4,3] y) <int64[2] s = {4, 1}> {"
                "y = Expand(x, s) }",
                13),
            "Expand{shape=[-1, 4, -1]} f32[2,4,3]\n");
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,3] y) <int64[1] s = {1}> { y = Expand(x, s) }", 13),
            "Identity f32[2,3]\n");
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,3] y) <int64[1] s = {2}> { y = Expand(x, s) }", 13),
            "cannot expand [2,3] to [2]; wanted the same sizes where neither is 1");
}

TEST(MovementOnnx, SlicesAreNormalized) {
  EXPECT_EQ(Ops("g (float[2,8] x) => (float[2,3] y) {"
                "y = Slice<axes = [0, 1], starts = [0, -3], ends = [100, 2147483647]>(x) }",
                9),
            "Slice{axes=[1], ends=[9223372036854775807], starts=[5], steps=[1]} f32[2,3]\n");
  EXPECT_EQ(Ops("g (float[2,8] x) => (float[2,8] y) <int64[1] s = {-1}, int64[1] e = "
                "{-9223372036854775807}, int64[1] a = {1}, int64[1] p = {-1}> {"
                "y = Slice(x, s, e, a, p) }",
                13),
            "Slice{axes=[1], ends=[9223372036854775807], starts=[9223372036854775807], "
            "steps=[-1]} f32[2,8]\n");
  EXPECT_EQ(Ops("g (float[2,8] x) => (float[2,8] y) <int64[2] s = {0, 0}, int64[2] e = {2, 8}> {"
                "y = Slice(x, s, e) }",
                13),
            "Identity f32[2,8]\n");
  EXPECT_EQ(Ops("g (float[2,8] x, int64[1] s) => (float[2,8] y) <int64[1] e = {2}> {"
                "y = Slice(x, s, e) }",
                13),
            "input 1 ('s') depends on data; wanted whole numbers that are known beforehand; try to "
            "export the model with fixed sizes");
}

TEST(MovementOnnx, OneElementOfADimensionIsAView) {
  EXPECT_EQ(Ops("g (float[2,8,3] x) => (float[2,3] y) <int64 i = {0}> {"
                "y = Gather<axis = 1>(x, i) }",
                13),
            "Slice{axes=[1], ends=[1], starts=[0], steps=[1]} f32[2,1,3]\n"
            "Squeeze{axes=[1]} f32[2,3]\n");
  EXPECT_EQ(Ops("g (float[2,8,3] x) => (float[2,3] y) <int64 i = {-2}> {"
                "y = Gather<axis = 1>(x, i) }",
                13),
            "Slice{axes=[1], ends=[7], starts=[6], steps=[1]} f32[2,1,3]\n"
            "Squeeze{axes=[1]} f32[2,3]\n");
  EXPECT_EQ(Ops("g (float[2,8,3] x, int64[4] i) => (float[2,4,3] y) {"
                "y = Gather<axis = -2>(x, i) }",
                13),
            "Gather{axis=1} f32[2,4,3]\n");
  EXPECT_EQ(Ops("g (float[2,8,3] x) => (float[2,3] y) <int64 i = {8}> {"
                "y = Gather<axis = 1>(x, i) }",
                13),
            "index 8 is no position in a dimension of 8");
}

TEST(MovementOnnx, SplitsFromOpsetToOpset) {
  EXPECT_EQ(
      Ops("g (float[2,6] x) => (float[2,3] y, float[2,3] z) { y, z = Split<axis = 1>(x) }", 9),
      "Split{axis=1, sizes=[3, 3]} f32[2,3], f32[2,3]\n");
  EXPECT_EQ(Ops("g (float[2,6] x) => (float[2,2] y, float[2,4] z) {"
                "y, z = Split<axis = 1, split = [2, 4]>(x) }",
                11),
            "Split{axis=1, sizes=[2, 4]} f32[2,2], f32[2,4]\n");
  EXPECT_EQ(Ops("g (float[2,6] x) => (float[2,2] y, float[2,4] z) <int64[2] s = {2, 4}> {"
                "y, z = Split<axis = -1>(x, s) }",
                13),
            "Split{axis=1, sizes=[2, 4]} f32[2,2], f32[2,4]\n");
  EXPECT_EQ(Ops("g (float[2,7] x) => (float[2,4] y, float[2,3] z) {"
                "y, z = Split<axis = 1, num_outputs = 2>(x) }",
                18),
            "Split{axis=1, sizes=[4, 3]} f32[2,4], f32[2,3]\n");
  EXPECT_EQ(
      Ops("g (float[2,7] x) => (float[2,4] y, float[2,3] z) { y, z = Split<axis = 1>(x) }", 13),
      "a dimension of 7 does not split into 2 equal parts");
}

TEST(MovementOnnx, PadsFromOpsetToOpset) {
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,6] y) {"
                "y = Pad<pads = [0, 1, 0, 2], value = 1.5>(x) }",
                9),
            "Pad{after=[2], axes=[1], before=[1], value=1.5} f32[2,6]\n");
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,3] y) <int64[4] p = {0, -1, 0, 1}> {"
                "y = Pad<mode = \"edge\">(x, p) }",
                13),
            "Slice{axes=[1], ends=[9223372036854775807], starts=[1], steps=[1]} f32[2,2]\n"
            "Pad{after=[1], axes=[1], before=[0], mode=\"edge\"} f32[2,3]\n");
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,6] y) <int64[2] p = {1, 2}, float v = {0.5}, "
                "int64[1] a = {-1}> { y = Pad(x, p, v, a) }",
                18),
            "Pad{after=[2], axes=[1], before=[1], value=0.5} f32[2,6]\n");
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,3] y) <int64[4] p = {0, 0, 0, 0}> {"
                "y = Pad(x, p) }",
                13),
            "Identity f32[2,3]\n");
  EXPECT_EQ(Ops("g (float[2,5,3] x) => (float[2,4,6] y) <int64[2] s = {4, 6}> {"
                "y = CenterCropPad<axes = [1, 2]>(x, s) }",
                18),
            "Slice{axes=[1], ends=[4], starts=[0], steps=[1]} f32[2,4,3]\n"
            "Pad{after=[2], axes=[2], before=[1]} f32[2,4,6]\n");
}

TEST(MovementOnnx, ResizesFromOpsetToOpset) {
  const std::string old =
      "Resize{axes=[2, 3], coordinates=\"asymmetric\", mode=\"nearest\", nearest_mode=\"floor\", "
      "scales=[2.0, 2.0], sizes=[4, 6]} f32[1,2,4,6]\n";
  const std::string graph =
      "g (float[1,2,2,3] x) => (float[1,2,4,6] y) <float[4] s = {1, 1, 2, 2}> ";
  EXPECT_EQ(Ops(graph + "{ y = Upsample(x, s) }", 9), old);
  EXPECT_EQ(Ops(graph + "{ y = Resize(x, s) }", 10), old);
  EXPECT_EQ(Ops(graph + "{ y = Upsample<mode = \"bilinear\">(x, s) }", 9),
            "Resize{axes=[2, 3], coordinates=\"asymmetric\", mode=\"linear\", "
            "nearest_mode=\"floor\", scales=[2.0, 2.0], sizes=[4, 6]} f32[1,2,4,6]\n");
  EXPECT_EQ(Ops(graph + "{ y = Resize<mode = \"linear\">(x, , s) }", 13),
            "Resize{axes=[2, 3], coordinates=\"half_pixel\", mode=\"linear\", scales=[2.0, 2.0], "
            "sizes=[4, 6]} f32[1,2,4,6]\n");
  EXPECT_EQ(Ops("g (float[1,2,2,3] x) => (float[1,2,4,6] y) <int64[2] s = {5, 6}> {"
                "y = Resize<axes = [2, 3], keep_aspect_ratio_policy = \"not_larger\">(x, , , s) }",
                18),
            "Resize{axes=[2, 3], coordinates=\"half_pixel\", mode=\"nearest\", "
            "nearest_mode=\"round_prefer_floor\", scales=[2.0, 2.0], sizes=[4, 6]} f32[1,2,4,6]\n");
  EXPECT_EQ(Ops("g (float[1,2,2,3] x) => (float[1,2,5,8] y) <int64[2] s = {5, 6}> {"
                "y = Resize<axes = [2, 3], keep_aspect_ratio_policy = \"not_smaller\">(x, , , s) }",
                18),
            "Resize{axes=[2, 3], coordinates=\"half_pixel\", mode=\"nearest\", "
            "nearest_mode=\"round_prefer_floor\", scales=[2.5, 2.5], sizes=[5, 8]} f32[1,2,5,8]\n");
}

// Unless a mode says otherwise the blocks come before the channels.
TEST(MovementOnnx, DepthBecomesSpaceBlockByBlock) {
  EXPECT_EQ(Ops("g (float[2,12,4,5] x) => (float[2,3,8,10] y) {"
                "y = DepthToSpace<blocksize = 2>(x) }",
                11),
            "Reshape{shape=[-1, 2, 2, 3, 4, 5]} f32[2,2,2,3,4,5]\n"
            "Transpose{perm=[0, 3, 4, 1, 5, 2]} f32[2,3,4,2,5,2]\n"
            "Reshape{shape=[-1, 3, 8, 10]} f32[2,3,8,10]\n");
}

TEST(MovementOnnx, SizesThatDependOnData) {
  const std::string tail =
      "; wanted sizes that are known beforehand; try to export the model with fixed sizes, or "
      "without this part";
  EXPECT_EQ(Ops("g (float[4] x) => (int64[1,n] y) { y = NonZero(x) }", 13),
            "the size of its result depends on data, on 'x'" + tail);
  EXPECT_EQ(Ops("g (float[4] x) => (float[n] y) { y = Unique(x) }", 13),
            "the size of its result depends on data, on 'x'" + tail);
  EXPECT_EQ(Ops("g (float[4] x, bool[4] b) => (float[n] y) { y = Compress(x, b) }", 13),
            "the size of its result depends on data, on 'b'" + tail);
  EXPECT_EQ(
      Ops("g (float[1,4,4] b, float[1,1,4] s) => (int64[n,3] y) {"
          "y = NonMaxSuppression(b, s) }",
          13),
      "the number of boxes that it keeps depends on data, on 'b'; wanted sizes that are known "
      "beforehand; try to export the model without its post-processing");
  EXPECT_EQ(Ops("g (float[4,2] x) => (float[3,2] y) <bool[4] b = {1, 0, 1, 1}> {"
                "y = Compress<axis = 0>(x, b) }",
                13),
            "Constant{values=[0, 2, 3]} i64[3]\nGather{axis=0} f32[3,2]\n");
  EXPECT_EQ(
      Ops("g (float[4] x) => (float[n] y) { y = Range(x, x, x) }", 13),
      "input 0 depends on data; wanted one number that is known beforehand; try to export the "
      "model with fixed sizes");
}

TEST(MovementOnnx, TablesOfNumbers) {
  EXPECT_EQ(Ops("g (float[2] x) => (float[2] y) <int64 n = {2}> {"
                "w = HannWindow(n) y = Add(x, w) }",
                17),
            "Constant{values=[0.0, 1.0]} f32[2]\nAdd f32[2]\n");
  EXPECT_EQ(Ops("g (float[2,3] x) => (float[2,3] y) { w = EyeLike<k = 1>(x) y = Add(x, w) }", 13),
            "Constant{values=[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]} f32[2,3]\nAdd f32[2,3]\n");
  EXPECT_EQ(Ops("g (float[3] x) => (float[3] y) <float a = {1}, float b = {2.5}, float d = {0.5}> {"
                "w = Range(a, b, d) y = Add(x, w) }",
                13),
            "Constant{values=[1.0, 1.5, 2.0]} f32[3]\nAdd f32[3]\n");
}

// No inference of ONNX 1.12 knows these.
TEST(MovementOnnx, GridsAndColumns) {
  EXPECT_EQ(Ops("g (float[5,2,3] x) => (float[5,2,2,2] y) <int64[4] s = {5, 1, 2, 2}> {"
                "y = AffineGrid<align_corners = 1>(x, s) }",
                20),
            "Constant{values=[-1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]} "
            "f32[3,4]\n"
            "MatMul f32[5,2,4]\n"
            "Transpose{perm=[0, 2, 1]} f32[5,4,2]\n"
            "Reshape{shape=[-1, 2, 2, 2]} f32[5,2,2,2]\n");
  EXPECT_EQ(Ops("g (float[5,4,2] x) => (float[5,2,3] y) <int64[1] s = {3}, int64[1] b = {2}> {"
                "y = Col2Im(x, s, b) }",
                18),
            "Constant{values=[0, 1, 1, 2]} i64[4]\n"
            "Reshape{shape=[-1, 2, 4]} f32[5,2,4]\n"
            "GatherGrad{axis=2, size=4} f32[5,2,4]\n"
            "Slice{axes=[2], ends=[3], starts=[0], steps=[1]} f32[5,2,3]\n"
            "Reshape{shape=[-1, 2, 3]} f32[5,2,3]\n");
}

TEST(Gather, OfPlacesThatAreNone) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[4,16] x) => (float[4,2] y) {
  places = Constant <value = int64[2] {15, 100}> ()
  y = Gather <axis = 1> (x, places)
})")),
            "m.onnx: the Gather that makes 'y': index 100 is no position in a dimension of 16");
}

}  // namespace
}  // namespace movement_test_cc
}  // namespace orrery::importer
