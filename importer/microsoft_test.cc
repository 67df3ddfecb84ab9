#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_test_util.h"

// Ops of ONNX Runtime, by which its training graphs are written.

namespace orrery::importer {
namespace microsoft_test_cc {
namespace {

// The body of what comes of one node of com.microsoft that makes y.
std::string BodyOf(const std::string& node, const std::string& inputs) {
  onnx::ModelProto model =
      ModelOf(absl::StrCat("g (", inputs, ") => (float[N] y) { ", node, " }"), 14);
  model.mutable_graph()->mutable_output(0)->clear_type();
  for (onnx::NodeProto& each : *model.mutable_graph()->mutable_node()) {
    each.set_domain("com.microsoft");
  }
  const std::string text = ImportText(model);
  const size_t begin = text.find(") {\n"), end = text.find("  return");
  if (begin == std::string::npos || end == std::string::npos) return text;
  return text.substr(begin + 3, end - begin - 3);
}

TEST(Microsoft, Forward) {
  EXPECT_EQ(BodyOf("y = FastGelu(x, b)", "float[2,4] x, float[4] b"), R"(
  %2: f32[2,4] = Add(%x, %b)
  %y: f32[2,4] = Gelu(%2) {approximate="tanh"}
)");
  EXPECT_EQ(BodyOf("y = FusedMatMul<alpha = 0.5, transB = 1>(x, w)", "float[2,4] x, float[3,4] w"),
            R"(
  %2: f32[2,3] = MatMul(%x, %w) {transpose_w=1}
  %y: f32[2,3] = Scale(%2) {factor=0.5}
)");
  EXPECT_EQ(BodyOf("y, m, d, s = SkipLayerNormalization<epsilon = 0.5>(x, z, g, b)",
                   "float[2,4] x, float[2,4] z, float[4] g, float[4] b"),
            R"(
  %s: f32[2,4] = Add(%x, %z)
  %y: f32[2,4], %m: f32[2,1], %d: f32[2,1] = LayerNorm(%s, %g, %b) {axis=1, epsilon=0.5}
)");
  EXPECT_EQ(BodyOf("y = SkipLayerNormalization(x, z, g, b, c)",
                   "float[2,4] x, float[2,4] z, float[4] g, float[4] b, float[4] c")
                .substr(0, 59),
            R"(
  %5: f32[2,4] = Add(%x, %c)
  %6: f32[2,4] = Add(%5, %z)
)");
}

TEST(Microsoft, Gradients) {
  EXPECT_EQ(BodyOf("y = GeluGrad(dy, x)", "float[2,4] dy, float[2,4] x"),
            "\n  %y: f32[2,4] = UnaryGrad(%x, %dy) {of=\"Gelu\"}\n");
  EXPECT_EQ(BodyOf("y = ReluGrad(dy, x)", "float[2,4] dy, float[2,4] x"),
            "\n  %y: f32[2,4] = ReluGrad(%x, %dy)\n");
  EXPECT_EQ(BodyOf("y = SoftmaxGrad_13<axis = 0>(dy, p)", "float[2,4] dy, float[2,4] p"),
            "\n  %y: f32[2,4] = SoftmaxGrad(%p, %dy) {axis=0}\n");
  EXPECT_EQ(
      BodyOf("y = SoftmaxGrad<axis = 0>(dy, p)", "float[2,4] dy, float[2,4] p"),
      "m.onnx: the SoftmaxGrad that makes 'y': axis 0 of 2 dimensions is not supported; wanted "
      "the last");
  EXPECT_EQ(BodyOf("y = DropoutGrad(dy, m)", "float[2,4] dy, bool[2,4] m"),
            "\n  %y: f32[2,4] = DropoutGrad(%m, %dy) {ratio=0.5}\n");
  EXPECT_EQ(BodyOf("y, dw, db = ConvGrad<pads = [1, 1, 1, 1]>(dy, x, w)",
                   "float[2,5,8,8] dy, float[2,3,8,8] x, float[5,3,3,3] w")
                .substr(0, 43),
            "\n  %y: f32[2,3,8,8] = ConvDataGrad(%dy, %w)");
}

TEST(Microsoft, GradientsOfNorms) {
  EXPECT_EQ(BodyOf("y, dg, db = LayerNormalizationGrad(dy, x, g, mean, rstd)",
                   "float[2,4] dy, float[2,4] x, float[4] g, float[2,1] mean, float[2,1] rstd"),
            "\n  %y: f32[2,4], %dg: f32[4], %db: f32[4] = LayerNormGrad(%x, %g, %mean, %rstd, %dy) "
            "{axis=1}\n");
}

// That of a mean is divided by the rows, that of a sum is not.
TEST(Microsoft, GradientsOfLosses) {
  const std::string inputs = "float dl, float[8,5] p, int64[8] l";
  EXPECT_EQ(BodyOf("y = SoftmaxCrossEntropyLossGrad(dl, p, l)", inputs), R"(
  %3: f32[8,5] = CrossEntropyGrad(%p, %l) {batch=8}
  %y: f32[8,5] = Mul(%3, %dl)
)");
  EXPECT_EQ(BodyOf("y = SoftmaxCrossEntropyLossGrad<reduction = \"sum\">(dl, p, l)", inputs), R"(
  %3: f32[8,5] = CrossEntropyGrad(%p, %l) {batch=1}
  %y: f32[8,5] = Mul(%3, %dl)
)");
}

TEST(Microsoft, GradientsOfDropoutHaveItsRatio) {
  onnx::ModelProto model = ModelOf(
      "g (float[2,4] dy, bool[2,4] m) => (float[2,4] y) <float r = {0.25}> {"
      "y = DropoutGrad(dy, m, r) }");
  model.mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
  EXPECT_NE(ImportText(model).find("DropoutGrad(%m, %dy) {ratio=0.25}"), std::string::npos);
}

TEST(Microsoft, SumsOfGradients) {
  EXPECT_EQ(ImportText([] {
              onnx::ModelProto model = ModelOf(R"(
g (float[2,4] dy, float[4] b) => (float[4] db) {
  s = Shape(dy)
  t = Shape(b)
  a, c = BroadcastGradientArgs(s, t)
  d = ReduceSumTraining<keepdims = 0, noop_with_empty_axes = 1>(dy, c)
  db = Reshape(d, t)
})");
              for (const int i : {2, 3}) {
                model.mutable_graph()->mutable_node(i)->set_domain("com.microsoft");
              }
              return model;
            }()),
            R"(
func @m (
  %dy: f32[2,4] data,
  %b: f32[4] parameter
) {
  %d: f32[4] = ReduceSum(%dy) {axes=[0]}
  %db: f32[4] = Reshape(%d) {shape=[4]}
  return %db: gradient(%b)
}
)");
}

TEST(Microsoft, Optimizer) {
  onnx::ModelProto model = ModelOf(R"(
g (float[4] x, float r, int64 t, float[4] w, float[4] g, float[4] m, float[4] v)
  => (float[4] m2, float[4] v2, float[4] w2) {
  t2, m2, v2, w2 = AdamOptimizer(r, t, w, g, m, v)
})");
  model.mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
  const std::string text = ImportText(model);
  EXPECT_NE(text.find("%w: f32[4] parameter"), std::string::npos) << text;
  EXPECT_NE(text.find("%m: f32[4] state"), std::string::npos) << text;
  EXPECT_NE(text.find("return %m2: updated(%m), %v2: updated(%v), %w2: updated(%w)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace microsoft_test_cc
}  // namespace orrery::importer
