#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "importer/onnx_test_util.h"

// How ONNX's ops of neural nets become ops of the IR. What they compute is for tests/backend/ to
// say.

namespace orrery::importer {
namespace neural_test_cc {
namespace {

// The ops of a graph without its header and its inputs; or the error.
std::string Ops(const std::string& graph, int opset = 17) {
  const std::string text = ImportText(ModelOf(graph, opset));
  std::string ops;
  bool in_body = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (in_body && line.rfind("  %", 0) == 0) absl::StrAppend(&ops, "\n", line);
    in_body = in_body || line.rfind(") {", 0) == 0;
  }
  return ops.empty() ? text : ops;
}

TEST(Products, OfVectorsAreEinsums) {
  EXPECT_EQ(Ops("g (float[4,3] x, float[3] v) => (float[4] y) { y = MatMul(x, v) }"), R"(
  %y: f32[4] = Einsum(%x, %v) {equation="mk,k->m"})");
  EXPECT_EQ(Ops("g (float[2,4,3] x, float[4] v) => (float[2,3] y) { y = MatMul(v, x) }"), R"(
  %y: f32[2,3] = Einsum(%v, %x) {equation="k,Ckn->Cn"})");
}

TEST(Products, OfLettersAreMatMulsWhereTheyCan) {
  EXPECT_EQ(Ops(R"(g (float[2,4,3] x, float[2,5,3] z) => (float[2,4,5] y) {
    y = Einsum<equation = "bik, bjk -> bij">(x, z) })"),
            R"(
  %y: f32[2,4,5] = MatMul(%x, %z) {transpose_w=1})");
  EXPECT_EQ(Ops(R"(g (float[2,4,3] x, float[3,5] z) => (float[2,4,5] y) {
    y = Einsum<equation = "...ij,jk">(x, z) })"),
            R"(
  %y: f32[2,4,5] = MatMul(%x, %z))");
  EXPECT_EQ(Ops(R"(g (float[4,3] x, float[3,5] z, float[5,4] w) => (float y) {
    y = Einsum<equation = "ij,jk,ki->">(x, z, w) })"),
            R"(
  %3: f32[4,5] = MatMul(%x, %z)
  %y: f32[] = Einsum(%3, %w) {equation="ik,ki->"})");
  EXPECT_EQ(Ops(R"(g (float[1,4,3] x, float[2,5,3] z) => (float[2,4,5] y) {
    y = Einsum<equation = "...ik,...jk->...ij">(x, z) })"),
            R"(
  %2: f32[4,3] = ReduceSum(%x) {axes=[0]}
  %y: f32[2,4,5] = Einsum(%2, %z) {equation="ik,Ajk->Aij"})");
}

TEST(Convolutions, TakePaddingByName) {
  EXPECT_EQ(Ops(R"(g (float[8,3,7,7] x) => (float[8,2,4,4] y) <float[2,3,4,4] w = {}> {
    y = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w) })"),
            R"(
  %y: f32[8,2,4,4] = Conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 2, 2], strides=[2, 2]})");
  EXPECT_EQ(Ops(R"(g (float[8,3,4] x) => (float[8,2,8] y) <float[3,2,3] w = {}> {
    y = ConvTranspose<strides = [2], pads = [1, 1], output_padding = [1]>(x, w) })"),
            R"(
  %y: f32[8,2,8] = ConvTranspose(%x, %w) {dilations=[1], group=1, pads=[1, 1], spatial=[8], strides=[2]})");
  EXPECT_EQ(
      Ops("g (float[8,3] x) => (float[8] y) <float[2,3,3] w = {}> { y = Conv(x, w) }"),
      "m.onnx: the Conv that makes 'y': input 0 has 2 dimensions; wanted [batch,channels,..]");
}

// SAME_LOWER has the odd row in front; how far a kernel reaches depends on its dilation.
TEST(Convolutions, PadTheOddRowInFront) {
  EXPECT_EQ(Ops(R"(g (float[8,3,7,7] x) => (float[8,2,7,7] y) <float[2,3,2,2] w = {}> {
    y = Conv<auto_pad = "SAME_LOWER", dilations = [3, 3]>(x, w) })"),
            R"(
  %y: f32[8,2,7,7] = Conv(%x, %w) {dilations=[3, 3], group=1, pads=[2, 2, 1, 1], strides=[1, 1]})");
  EXPECT_EQ(Ops(R"(g (float[8,3,4] x) => (float[8,2,8] y) <float[3,2,3] w = {}> {
    y = ConvTranspose<strides = [2], auto_pad = "SAME_UPPER">(x, w) })"),
            R"(
  %y: f32[8,2,8] = ConvTranspose(%x, %w) {dilations=[1], group=1, pads=[0, 1], spatial=[8], strides=[2]})");
  EXPECT_EQ(Ops(R"(g (float[5,3,4] x) => (float[5,2,8] y) <float[3,2,3] w = {}> {
    y = ConvTranspose<strides = [2], output_shape = [5, 2, 8]>(x, w) })"),
            R"(
  %y: f32[5,2,8] = ConvTranspose(%x, %w) {dilations=[1], group=1, pads=[1, 0], spatial=[8], strides=[2]})");
}

TEST(Pools, OfWholeImagesAreReductions) {
  EXPECT_EQ(Ops("g (float[8,3,7,7] x) => (float[8,3,1,1] y) { y = GlobalAveragePool(x) }"), R"(
  %y: f32[8,3,1,1] = ReduceMean(%x) {axes=[2, 3], keepdims=1})");
  EXPECT_EQ(Ops(R"(g (float[8,3,7] x) => (float[8,3,3] y) {
    y = MaxPool<kernel_shape = [3], strides = [2]>(x) })"),
            R"(
  %y: f32[8,3,3] = MaxPool(%x) {dilations=[1], kernel=[3], pads=[0, 0], strides=[2]})");
  EXPECT_EQ(Ops("g (float[8,3,7] x) => (float[8,3,5] y) { y = LpPool<kernel_shape = [3]>(x) }"), R"(
  %y: f32[8,3,5] = LpPool(%x) {dilations=[1], kernel=[3], p=2, pads=[0, 0], strides=[1]})");
}

// Before opset 16 there was no half pixel.
TEST(Pools, OfRegions) {
  const std::string graph =
      "g (float[1,2,8,8] x, float[3,4] r, int64[3] b) => (float[3,2,1,1] y) { "
      "y = RoiAlign(x, r, b) }";
  EXPECT_EQ(Ops(graph, 10), R"(
  %y: f32[3,2,1,1] = RoiAlign(%x, %r, %b) {mode="avg", pooled=[1, 1], sampling_ratio=0, spatial_scale=1.0})");
  EXPECT_EQ(Ops(graph, 16), R"(
  %y: f32[3,2,1,1] = RoiAlign(%x, %r, %b) {half_pixel=1, mode="avg", pooled=[1, 1], sampling_ratio=0, spatial_scale=1.0})");
}

TEST(Dropout, OfInferenceIsNothing) {
  EXPECT_EQ(Ops("g (float[8,3] x) => (float[8,3] y) { y = Dropout<ratio = 0.25>(x) }", 10), R"(
  %y: f32[8,3] = Identity(%x))");
  EXPECT_EQ(Ops(R"(g (float[8,3] x) => (float[8,3] y)
    <float r = {0.25}, bool t = {1}> { y = Dropout(x, r, t) })"),
            R"(
  %y: f32[8,3], %2: bool[8,3] = Dropout(%x) {ratio=0.25})");
}

TEST(Dropout, WhoseModeIsGivenLaterIsOfTraining) {
  EXPECT_EQ(Ops(R"(g (float[8,3] x, bool t) => (float[8,3] y) <float r = {0.25}> {
    y = Dropout(x, r, t) })"),
            R"(
  %y: f32[8,3], %3: bool[8,3] = Dropout(%x) {ratio=0.25})");
}

TEST(Losses, AreMeansUnlessTheySayOtherwise) {
  EXPECT_EQ(Ops(R"(g (float[8,5,3] x, int64[8,3] l) => (float y) {
    y = SoftmaxCrossEntropyLoss(x, l) })"),
            R"(
  %2: f32[8,5,3] = LogSoftmax(%x) {axis=1}
  %3: f32[8,3], %4: f32[8,3] = NegativeLikelihood(%2, %l)
  %5: f32[] = ReduceSum(%3) {axes=[0, 1]}
  %6: f32[] = ReduceSum(%4) {axes=[0, 1]}
  %y: f32[] = Div(%5, %6))");
}

// A part of a batch is divided by the whole of it: by the attribute, or by the third input.
TEST(Losses, OfDistIrKnowTheGlobalBatch) {
  EXPECT_EQ(Ops(R"(g (float[8,4] x, float[8,4] z) => (float[8,4] y) {
    y = Loss<N = 32>(x, z) })"),
            R"(
  %y: f32[8,4] = Loss(%x, %z) {batch=32})");
  EXPECT_EQ(Ops(R"(g (float[8,4] x, float[8,4] z) => (float[8,4] y) <int64[1] n = {64}> {
    y = Loss(x, z, n) })"),
            R"(
  %y: f32[8,4] = Loss(%x, %z) {batch=64})");
}

TEST(BatchNormalization, HasRunningStatisticsInTraining) {
  const std::string weights =
      "<float[3] s = {}, float[3] b = {}, float[3] m = {}, float[3] v = {}>";
  EXPECT_EQ(Ops(absl::StrCat("g (float[8,3,4] x) => (float[8,3,4] y) ", weights,
                             " { y = BatchNormalization(x, s, b, m, v) }")),
            R"(
  %y: f32[8,3,4] = BatchNorm(%x, %s, %b, %m, %v) {epsilon=1e-05})");
  EXPECT_EQ(
      Ops(absl::StrCat("g (float[8,3,4] x) => (float[8,3,4] y, float[3] rm, float[3] rv) ", weights,
                       " { y, rm, rv = BatchNormalization<training_mode = 1>(x, s, b, m, v) }")),
      R"(
  %y: f32[8,3,4], %6: f32[3], %7: f32[3], %rm: f32[3], %rv: f32[3] = BatchNorm(%x, %s, %b, %m, %v) {epsilon=1e-05, momentum=0.9, training=1})");
}

TEST(Recurrent, NetsTakeWhatIsThere) {
  EXPECT_EQ(Ops(R"(g (float[5,8,3] x, float[1,8,4] h) => (float[5,1,8,4] y)
    <float[1,16,3] w = {}, float[1,16,4] r = {}> { y = LSTM<hidden_size = 4>(x, w, r, , , h) })"),
            R"(
  %x.batch1: f32[5,8,3] = Transpose(%x) {perm=[1, 0, 2]}
  %h.batch1: f32[1,8,4] = Transpose(%h) {perm=[1, 0, 2]}
  %y: f32[5,1,8,4], %7: f32[1,8,4], %8: f32[1,8,4], %9: f32[5,1,8,16], %10: f32[5,1,8,4] = Lstm(%x.batch1, %w, %r, %h.batch1) {direction="forward", given="initial_h"})");
  EXPECT_EQ(Ops(R"(g (float[8,5,3] x) => (float[8,5,1,4] y)
    <float[1,4,3] w = {}, float[1,4,4] r = {}> {
    y = RNN<hidden_size = 4, layout = 1, activations = ["Relu"]>(x, w, r) })"),
            R"(
  %3: f32[5,8,3] = Transpose(%x) {perm=[1, 0, 2]}
  %4: f32[5,1,8,4], %5: f32[1,8,4] = Rnn(%3, %w, %r) {activation_alpha=[1.0], activation_beta=[0.0], activations="Relu", direction="forward", given=""}
  %y: f32[8,5,1,4] = Transpose(%4) {perm=[2, 0, 1, 3]})");
}

// Numbers are for the activations that take one; without, each has its own default.
TEST(Recurrent, ActivationsHaveTheirNumbers) {
  const std::string text = Ops(R"(g (float[5,8,3] x) => (float[5,1,8,4] y)
    <float[1,16,3] w = {}, float[1,16,4] r = {}> {
    y = LSTM<hidden_size = 4, clip = 2.0, input_forget = 1, activation_alpha = [0.25],
             activations = ["Sigmoid", "HardSigmoid", "LeakyRelu"]>(x, w, r) })");
  EXPECT_EQ(text.substr(text.find("{activation")),
            "{activation_alpha=[1.0, 0.25, 0.01], activation_beta=[0.0, 0.5, 0.0], "
            "activations=\"Sigmoid,HardSigmoid,LeakyRelu\", clip=2.0, direction=\"forward\", "
            "given=\"\", input_forget=1}");
  const std::string gru = Ops(R"(g (float[5,8,3] x) => (float[5,1,8,4] y)
    <float[1,12,3] w = {}, float[1,12,4] r = {}> {
    y = GRU<hidden_size = 4, activations = ["HardSigmoid", "ScaledTanh"]>(x, w, r) })");
  EXPECT_NE(gru.find("{activation_alpha=[0.2, 1.0], activation_beta=[0.5, 1.0]"), std::string::npos)
      << gru;
}

// What attributes say of the weights must be so.
TEST(Convolutions, WhoseAttributesAreWrong) {
  const auto error = [](const char* op, const char* attribute) {
    return ImportText(
        ModelOf(absl::StrCat("g (float[1,3,8,8] x) => (float[1,3,a,b] y) "
                             "<float[3,3,3,3] w = {}> { y = ",
                             op, " <", attribute, "> (x, w) }")));
  };
  for (const char* op : {"Conv", "ConvTranspose"}) {
    const std::string where = absl::StrCat("m.onnx: the ", op, " that makes 'y': ");
    EXPECT_EQ(error(op, "auto_pad = \"ODD\""),
              where + "auto_pad is \"ODD\"; wanted NOTSET, SAME_UPPER, SAME_LOWER or VALID");
    EXPECT_EQ(error(op, "kernel_shape = [9, 9]"),
              where + "attribute 'kernel_shape' is [9,9]; wanted [3,3], as the weights have it");
    EXPECT_EQ(
        error(op, "strides = [-1, 2]"),
        where + "attribute 'strides' is [-1,2]; wanted 2 numbers, none of them negative or huge");
  }
}

TEST(Recurrent, HiddenSizeIsThatOfTheWeights) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[5,2,4] x) => (float[5,1,2,3] y)
<float[1,12,4] w = {}, float[1,12,3] r = {}> { y = LSTM <hidden_size = -16> (x, w, r) })")),
            "m.onnx: the LSTM that makes 'y': attribute 'hidden_size' is -16; wanted 3, as the "
            "weights have it");
}

}  // namespace
}  // namespace neural_test_cc
}  // namespace orrery::importer
