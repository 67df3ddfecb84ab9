#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_test_util.h"

// What becomes of the pointwise and reducing ops of ONNX, at the opsets that define them anew.

namespace orrery::importer {
namespace pointwise_test_cc {
namespace {

// The body of what comes of `nodes` over x: float[2,3,4], or the error.
std::string BodyOf(const std::string& nodes, int opset = 13,
                   const std::string& inputs = "float[2,3,4] x") {
  onnx::ModelProto model =
      ModelOf(absl::StrCat("g (", inputs, ") => (float[?,?,?] y) { ", nodes, " }"), opset);
  model.mutable_graph()->mutable_output(0)->clear_type();  // whatever it is
  const std::string text = ImportText(model);
  const size_t begin = text.find(") {\n"), end = text.find("  return");
  if (begin == std::string::npos || end == std::string::npos) return text;
  return text.substr(begin + 3, end - begin - 3);
}

TEST(PointwiseImport, OfFunctions) {
  EXPECT_EQ(BodyOf("y = Tanh(x)"), "\n  %y: f32[2,3,4] = Tanh(%x)\n");
  EXPECT_EQ(BodyOf("y = Elu<alpha = 0.5>(x)"), "\n  %y: f32[2,3,4] = Elu(%x) {alpha=0.5}\n");
  EXPECT_EQ(BodyOf("y = LeakyRelu(x)"), "\n  %y: f32[2,3,4] = LeakyRelu(%x)\n");
  EXPECT_EQ(BodyOf("y = Gelu<approximate = \"tanh\">(x)", 20),
            "\n  %y: f32[2,3,4] = Gelu(%x) {approximate=\"tanh\"}\n");
  EXPECT_EQ(BodyOf("y = Gelu(x)", 20), "\n  %y: f32[2,3,4] = Gelu(%x)\n");
  EXPECT_EQ(BodyOf("y = Gelu<approximate = \"erf\">(x)", 20),
            "m.onnx: the Gelu that makes 'y': approximate is 'erf'; wanted 'none' or 'tanh'");
  EXPECT_EQ(BodyOf("y = Mish(x)", 18), "\n  %y: f32[2,3,4] = Mish(%x)\n");
  EXPECT_EQ(BodyOf("y = Exp(x)", 13, "int64[2,3,4] x"),
            "m.onnx: the Exp that makes 'y': operand 0 is of i64; wanted floating point");
}

TEST(PointwiseImport, OfArithmetic) {
  EXPECT_EQ(BodyOf("y = Max(x, x, x)"),
            "\n  %1: f32[2,3,4] = Max(%x, %x)\n  %y: f32[2,3,4] = Max(%1, %x)\n");
  EXPECT_EQ(BodyOf("y = Sum(x)"), "\n  %y: f32[2,3,4] = Identity(%x)\n");
  EXPECT_EQ(BodyOf("y = Mean(x, x)"),
            "\n  %1: f32[2,3,4] = Add(%x, %x)\n  %y: f32[2,3,4] = Scale(%1) {factor=0.5}\n");
  EXPECT_EQ(BodyOf("y = Mod<fmod = 1>(x, x)"), "\n  %y: f32[2,3,4] = Mod(%x, %x) {fmod=1}\n");
  EXPECT_EQ(BodyOf("n = Constant<value = int64 {2}>() y = Pow(x, n)"),
            "\n  %n: i64[] = Constant() {values=[2]}\n  %y: f32[2,3,4] = Pow(%x, %n)\n");
  EXPECT_EQ(BodyOf("y = And(x, x)"),
            "m.onnx: the And that makes 'y': input 0 is of f32; wanted bool");
  EXPECT_EQ(BodyOf("y = BitwiseNot(x)", 18, "bool[2,3,4] x"),
            "m.onnx: the BitwiseNot that makes 'y': input 0 is of bool; wanted whole numbers");
}

// Whole numbers that are known are computed while importing.
TEST(PointwiseImport, FoldsWhatIsKnown) {
  EXPECT_EQ(BodyOf("a = Constant<value = int64[2] {7, -7}>() b = Constant<value = int64 {2}>() "
                   "c = Div(a, b) d = Mul(c, c) e = Cast<to = 1>(d) "
                   "f = ReduceSum<keepdims = 0>(e) y = Add(x, f)"),
            "\n  %f: f32[] = Constant() {values=[18.0]}\n  %y: f32[2,3,4] = Add(%x, %f)\n");
}

// Before opset 7 the second operand stood along the first from a dimension on that `axis` named.
TEST(PointwiseImport, OfOldBroadcasting) {
  EXPECT_EQ(BodyOf("y = Sub<broadcast = 1, axis = 1>(x, z)", 6, "float[2,3,4] x, float[3] z"),
            "\n  %2: f32[3,1] = Unsqueeze(%z) {axes=[1]}\n  %y: f32[2,3,4] = Sub(%x, %2)\n");
  EXPECT_EQ(BodyOf("y = Add<broadcast = 1>(x, z)", 6, "float[2,3,4] x, float[4] z"),
            "\n  %y: f32[2,3,4] = Add(%x, %z)\n");
  EXPECT_EQ(BodyOf("y = PRelu(x, z)", 6, "float[2,3,4] x, float[3] z"),
            "\n  %2: f32[3,1] = Unsqueeze(%z) {axes=[1]}\n  %y: f32[2,3,4] = PRelu(%x, %2)\n");
  EXPECT_EQ(BodyOf("y = Div<broadcast = 1, axis = 5>(x, z)", 6, "float[2,3,4] x, float[3] z"),
            "m.onnx: the Div that makes 'y': axis 5 is none of the 3 dimensions");
}

TEST(PointwiseImport, OfChoices) {
  EXPECT_EQ(BodyOf("c = Greater(x, x) y = Where(c, x, x)"),
            "\n  %c: bool[2,3,4] = Greater(%x, %x)\n  %y: f32[2,3,4] = Where(%c, %x, %x)\n");
  EXPECT_EQ(BodyOf("y = Cast<to = 10>(x)"), "\n  %y: f16[2,3,4] = Cast(%x) {to=\"f16\"}\n");
  EXPECT_EQ(BodyOf("y = Cast<to = 1>(x)"), "\n  %y: f32[2,3,4] = Identity(%x)\n");
  EXPECT_EQ(BodyOf("y = CastLike(x, z)", 15, "float[2,3,4] x, double[1] z"),
            "\n  %y: f64[2,3,4] = Cast(%x) {to=\"f64\"}\n");
}

TEST(PointwiseImport, OfClip) {
  EXPECT_EQ(BodyOf("y = Clip<min = 0.0, max = 6.0>(x)", 10),
            "\n  %y: f32[2,3,4] = Clip(%x) {max=6.0, min=0.0}\n");
  EXPECT_EQ(BodyOf("y = Clip(x)", 10), "\n  %y: f32[2,3,4] = Identity(%x)\n");
  EXPECT_EQ(BodyOf("m = Constant<value = float {6.0}>() y = Clip(x, , m)"),
            "\n  %y: f32[2,3,4] = Clip(%x) {max=6.0}\n");
  EXPECT_EQ(BodyOf("y = Clip(x, z)", 13, "float[2,3,4] x, float z"),
            "\n  %y: f32[2,3,4] = Max(%x, %z)\n");
  EXPECT_EQ(BodyOf("y = Clip(x, , z)", 13, "int64[2,3,4] x, int64 z"),
            "\n  %y: i64[2,3,4] = Min(%x, %z)\n");
  EXPECT_EQ(BodyOf("m = Constant<value = int64 {9007199254740993}>() y = Clip(x, m)", 13,
                   "int64[2,3,4] x"),
            "\n  %m: i64[] = Constant() {values=[9007199254740993]}\n"
            "  %y: i64[2,3,4] = Max(%x, %m)\n");
}

// The axes are an attribute, later an input; none are all, or none.
TEST(PointwiseImport, OfReductions) {
  EXPECT_EQ(BodyOf("y = ReduceSum<axes = [-1, 0], keepdims = 0>(x)", 11),
            "\n  %y: f32[3] = ReduceSum(%x) {axes=[0, 2]}\n");
  EXPECT_EQ(BodyOf("a = Constant<value = int64[1] {-2}>() y = ReduceSum(x, a)"),
            "\n  %y: f32[2,1,4] = ReduceSum(%x) {axes=[1], keepdims=1}\n");
  EXPECT_EQ(BodyOf("y = ReduceMean<axes = [2]>(x)", 17),
            "\n  %y: f32[2,3,1] = ReduceMean(%x) {axes=[2], keepdims=1}\n");
  EXPECT_EQ(BodyOf("a = Constant<value = int64[1] {2}>() y = ReduceMax(x, a)", 18),
            "\n  %y: f32[2,3,1] = ReduceMax(%x) {axes=[2], keepdims=1}\n");
  EXPECT_EQ(BodyOf("y = ReduceMin<keepdims = 0>(x)", 18),
            "\n  %y: f32[] = ReduceMin(%x) {axes=[0, 1, 2]}\n");
  EXPECT_EQ(BodyOf("y = ReduceSum<noop_with_empty_axes = 1>(x)"),
            "\n  %y: f32[2,3,4] = Identity(%x)\n");
  EXPECT_EQ(BodyOf("y = ReduceL2<axes = [2]>(x)"),
            "\n  %1: f32[2,3,4] = Mul(%x, %x)\n"
            "  %2: f32[2,3,1] = ReduceSum(%1) {axes=[2], keepdims=1}\n"
            "  %y: f32[2,3,1] = Sqrt(%2)\n");
  EXPECT_EQ(BodyOf("y = ReduceLogSum<axes = [2]>(x)"),
            "\n  %1: f32[2,3,1] = ReduceSum(%x) {axes=[2], keepdims=1}\n"
            "  %y: f32[2,3,1] = Log(%1)\n");
  EXPECT_EQ(BodyOf("y = ReduceProd<axes = [3]>(x)"),
            "m.onnx: the ReduceProd that makes 'y': axis 3 is none of the 3 dimensions");
  EXPECT_EQ(BodyOf("y = ReduceSum(x, z)", 13, "float[2,3,4] x, int64[1] z"),
            "m.onnx: the ReduceSum that makes 'y': input 1 ('z') depends on data; wanted whole "
            "numbers that are known beforehand; try to export the model with fixed sizes");
  EXPECT_EQ(BodyOf("y = ArgMax<axis = -1, keepdims = 0>(x)"),
            "\n  %y: i64[2,3] = ArgMax(%x) {axis=2}\n");
}

// Before opset 13 all dimensions from `axis` on were one.
TEST(PointwiseImport, OfSoftmax) {
  EXPECT_EQ(BodyOf("y = Softmax(x)"), "\n  %y: f32[2,3,4] = Softmax(%x) {axis=2}\n");
  EXPECT_EQ(BodyOf("y = LogSoftmax<axis = -2>(x)"),
            "\n  %y: f32[2,3,4] = LogSoftmax(%x) {axis=1}\n");
  EXPECT_EQ(BodyOf("y = Softmax<axis = 2>(x)", 11), "\n  %y: f32[2,3,4] = Softmax(%x) {axis=2}\n");
  EXPECT_EQ(BodyOf("y = Softmax(x)", 11),
            "\n  %1: f32[2,12] = Reshape(%x) {shape=[-1, 12]}\n"
            "  %2: f32[2,12] = Softmax(%1) {axis=1}\n"
            "  %y: f32[2,3,4] = Reshape(%2) {shape=[-1, 3, 4]}\n");
  EXPECT_EQ(BodyOf("y = Hardmax<axis = 3>(x)"),
            "m.onnx: the Hardmax that makes 'y': axis 3 is none of the 3 dimensions");
}

TEST(PointwiseImport, OfQuantization) {
  EXPECT_EQ(BodyOf("s = Constant<value = float {0.5}>() z = Constant<value = int8 {3}>() "
                   "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)"),
            "\n  %s: f32[] = Constant() {values=[0.5]}\n"
            "  %z: i8[] = Constant() {values=[3]}\n"
            "  %q: i8[2,3,4] = QuantizeLinear(%x, %s, %z) {to=\"i8\"}\n"
            "  %y: f32[2,3,4] = DequantizeLinear(%q, %s, %z)\n");
  EXPECT_EQ(BodyOf("y = QuantizeLinear<output_dtype = 3>(x, s)", 21, "float[2,3,4] x, float[3] s"),
            "\n  %y: i8[2,3,4] = QuantizeLinear(%x, %s) {axis=1, to=\"i8\"}\n");
  EXPECT_EQ(BodyOf("y = DequantizeLinear<axis = 0, block_size = 2>(q, s)", 21,
                   "uint8[2,3,4] q, float[1,3,4] s"),
            "\n  %y: f32[2,3,4] = DequantizeLinear(%q, %s) {axis=0, block_size=2}\n");
}

}  // namespace
}  // namespace pointwise_test_cc
}  // namespace orrery::importer
