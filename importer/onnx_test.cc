#include "importer/onnx.h"

#include <gtest/gtest.h>

#include "importer/onnx_test_util.h"
#include "ir/verifier.h"
#include "support/paths_test_util.h"

namespace orrery::importer {
namespace onnx_test_cc {
namespace {

TEST(ImportOnnx, TwoLayerMlp) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[8,16] x) => (float[8,4] y) <float[16,32] w0 = {}, float[32] b0 = {}, float[32,4] w1 = {}> {
  h0 = MatMul(x, w0)
  h1 = Add(h0, b0)
  a = Relu(h1)
  y = MatMul(a, w1)
})")),
            R"(
func @m (
  %x: f32[8,16] data,
  %w0: f32[16,32] parameter,
  %b0: f32[32] parameter,
  %w1: f32[32,4] parameter
) {
  %h0: f32[8,32] = MatMul(%x, %w0)
  %h1: f32[8,32] = Add(%h0, %b0)
  %a: f32[8,32] = Relu(%h1)
  %y: f32[8,4] = MatMul(%a, %w1)
  return %y: result
}
)");
}

TEST(ImportOnnx, GemmBecomesMatMulScaleAdd) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[16,8] x) => (float[8,4] y) <float[4,16] w = {}, float[4] b = {}> {
  y = Gemm <alpha = 0.5, beta = 2.0, transA = 1, transB = 1> (x, w, b)
})")),
            R"(
func @m (
  %x: f32[16,8] data,
  %w: f32[4,16] parameter,
  %b: f32[4] parameter
) {
  %3: f32[8,4] = MatMul(%x, %w) {transpose_w=1, transpose_x=1}
  %4: f32[8,4] = Scale(%3) {factor=0.5}
  %5: f32[4] = Scale(%b) {factor=2.0}
  %y: f32[8,4] = Add(%4, %5)
  return %y: result
}
)");
}

TEST(ImportOnnx, GemmWithoutBias) {
  const std::string expected = R"(
func @m (
  %x: f32[8,16] data,
  %w: f32[16,4] parameter
) {
  %y: f32[8,4] = MatMul(%x, %w)
  return %y: result
}
)";
  const std::string head = "g (float[8,16] x) => (float[8,4] y) <float[16,4] w = {}> ";
  EXPECT_EQ(ImportText(ModelOf(head + "{ y = Gemm(x, w) }")), expected);
  onnx::ModelProto empty_name = ModelOf(head + "{ y = Gemm(x, w) }");
  empty_name.mutable_graph()->mutable_node(0)->add_input("");
  EXPECT_EQ(ImportText(empty_name), expected);
}

TEST(ImportOnnx, EveryOtherOp) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[2,3,4] x) => (float[4,2,3] y, float[4,3,2] z) {
  c = Constant <value = float {0.5}> ()
  m = Mul(x, c)
  i = Identity(m)
  y = Transpose <perm = [2, 0, 1]> (i)
  z = Transpose(x)
})")),
            R"(
func @m (
  %x: f32[2,3,4] data
) {
  %c: f32[] = Constant() {values=[0.5]}
  %m: f32[2,3,4] = Mul(%x, %c)
  %i: f32[2,3,4] = Identity(%m)
  %y: f32[4,2,3] = Transpose(%i) {perm=[2, 0, 1]}
  %z: f32[4,3,2] = Transpose(%x)
  return %y: result, %z: result
}
)");
}

TEST(ImportOnnx, ConstantsOfEachForm) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (int64[2] x) => (float f, float[2] fs, int64 i, int64[2] is, int64[2] sum) <int64[2] t = {3, 4}> {
  f = Constant <value_float = 1.5> ()
  fs = Constant <value_floats = [1.0, 2.0]> ()
  i = Constant <value_int = 7> ()
  is = Constant <value_ints = [1, 2]> ()
  sum = Add(x, t)
})")),
            R"(
func @m (
  %x: i64[2] data
) {
  %t: i64[2] = Constant() {values=[3, 4]}
  %f: f32[] = Constant() {values=[1.5]}
  %fs: f32[2] = Constant() {values=[1.0, 2.0]}
  %i: i64[] = Constant() {values=[7]}
  %is: i64[2] = Constant() {values=[1, 2]}
  %sum: i64[2] = Add(%x, %t)
  return %f: result, %fs: result, %i: result, %is: result, %sum: result
}
)");
}

TEST(ImportOnnx, LeavesOutWhatNoOutputNeeds) {
  onnx::ModelProto model = ModelOf(R"(
g (float[4] x, float[4] spare) => (float[4] y) <float[9,9] dead = {}, float[7] idle = {}> {
  a = Softmax(dead)
  b = MatMul(a, nowhere)
  y = Relu(x)
})");
  EXPECT_EQ(ImportText(model), R"(
func @m (
  %x: f32[4] data,
  %spare: f32[4] data
) {
  %y: f32[4] = Relu(%x)
  return %y: result
}
)");
}

TEST(ImportOnnx, InitializersThatAreInputsToo) {  // IR version 3 asks for it
  onnx::ModelProto model = ModelOf(R"(
g (float[8,16] x, float[16,4] w, float[2] idle) => (float[8,4] y)
<float[16,4] w0 = {}, float[2] idle0 = {}> {
  y = MatMul(x, w)
})");
  model.set_ir_version(3);
  model.mutable_graph()->mutable_initializer(0)->set_name("w");
  model.mutable_graph()->mutable_initializer(1)->set_name("idle");
  EXPECT_EQ(ImportText(model), R"(
func @m (
  %x: f32[8,16] data,
  %w: f32[16,4] parameter
) {
  %y: f32[8,4] = MatMul(%x, %w)
  return %y: result
}
)");
}

TEST(ImportOnnx, OutputsThatNoNodeMakes) {
  EXPECT_EQ(ImportText(ModelOf("g (float[4] x) => (float[4] x, float[2] w) <float[2] w = {}> { }")),
            R"(
func @m (
  %x: f32[4] data,
  %w: f32[2] parameter
) {
  return %x: result, %w: result
}
)");
}

// From the ONNX versions after the library's own.
TEST(ImportOnnx, NewerVersions) {
  onnx::ModelProto model = ModelOf("g (float[4] x) => (float[4] y) { y = Relu(x) }", 21);
  model.set_ir_version(10);
  EXPECT_EQ(ImportText(model).substr(0, 9), "\nfunc @m ");
}

onnx::ModelProto Dynamic() {
  return ModelOf(R"(
g (float[batch,16] x, float[batch,seq] z) => (float[batch,4] y) <float[16,4] w = {}> {
  y = MatMul(x, w)
})");
}

TEST(ImportOnnx, SymbolsBindDynamicDimensions) {
  const std::string text = ImportText(Dynamic(), {.symbols = {{"batch", 32}, {"seq", 7}}});
  EXPECT_EQ(text, R"(
func @m (
  %x: f32[32,16] data,
  %z: f32[32,7] data,
  %w: f32[16,4] parameter
) {
  %y: f32[32,4] = MatMul(%x, %w)
  return %y: result
}
)");
  EXPECT_EQ(ImportText(Dynamic(), {.symbols = {{"seq", 7}}, .batch_size = 32}), text);
  EXPECT_EQ(ImportText(Dynamic(), {.symbols = {{"batch", 32}, {"seq", 7}}, .batch_size = 32}),
            text);
}

TEST(ImportOnnx, SymbolsOfDimensionsWithoutNames) {
  onnx::ModelProto model = Dynamic();
  auto* dim = model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type();
  dim->mutable_shape()->mutable_dim(1)->clear_dim_param();
  EXPECT_EQ(ImportText(model, {.symbols = {{"batch", 2}, {"z.1", 3}}}).substr(0, 54),
            "\nfunc @m (\n  %x: f32[2,16] data,\n  %z: f32[2,3] data,\n");
  EXPECT_EQ(ImportText(model, {.symbols = {{"batch", 2}}}),
            "m.onnx: no value for the dynamic dimension 'z.1' (dimension 1 of 'z'); try `symbol` "
            "z.1=VALUE");
}

TEST(ImportOnnx, RealModelWithoutItsWeights) {
  const auto function = ImportOnnx(SourceDir() + "/examples/models/mlp_64x512.onnx");
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_TRUE(ir::Verify(*function).ok());
  EXPECT_EQ(function->name(), "mlp_64x512");
  EXPECT_EQ(function->order().size(), 128);
  ASSERT_EQ(function->inputs().size(), 65);
  EXPECT_EQ(function->inputs()[0].role, ir::InputRole::kData);
  for (size_t i = 1; i < 65; ++i) {
    EXPECT_EQ(function->inputs()[i].role, ir::InputRole::kParameter);
    EXPECT_EQ(function->type(function->inputs()[i].value).dims, ir::Dims({512, 512}));
  }
  const std::string text = ir::Print(*function);
  const auto again = ir::ParseFunction(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ir::Print(*again), text);
}

}  // namespace
}  // namespace onnx_test_cc
}  // namespace orrery::importer
