#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "importer/onnx_test_util.h"

// Which constants of a graph are weights.

namespace orrery::importer {
namespace weights_test_cc {
namespace {

// What the function takes besides data.
std::vector<std::string> Parameters(const std::string& text) {
  std::vector<std::string> names;
  for (const absl::string_view line : absl::StrSplit(text.substr(0, text.find("\n) {")), '\n')) {
    if (absl::StrContains(line, " parameter")) names.emplace_back(absl::StripAsciiWhitespace(line));
  }
  return names;
}

// PyTorch writes a GroupNorm as an InstanceNormalization with ones and zeros of its own.
TEST(Weights, ConstantsOfEqualElementsAreNone) {
  const std::string text = ImportText(ModelOf(R"(
g (float[2,2,3] x) => (float[2,2,1] y) {
  g = Constant<value = float[2] {1.0, 1.0}>()
  b = Constant<value = float[2] {0.0, 0.0}>()
  h = InstanceNormalization(x, g, b)
  c = Constant<value = float[1,3] {0.25, 0.5, 1.0}>()
  w = Transpose(c)
  y = MatMul(h, w)
})"));
  EXPECT_THAT(Parameters(text), testing::ElementsAre("%w: f32[3,1] parameter")) << text;
}

// Larger ones, whose values no constant of the IR holds.
TEST(Weights, LargeConstantsOfEqualElementsAreNone) {
  for (const float last : {1.0F, 2.0F}) {
    onnx::ModelProto model = ModelOf(R"(
g (float[2,5000] x) => (float[2,5000] y) {
  w = Constant<value = float[1] {1.0}>()
  h = Cast<to = 1>(w)
  y = LayerNormalization(x, h)
})",
                                     17);
    onnx::TensorProto& tensor =
        *model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t();
    std::vector<float> values(5000, 1.0F);
    values.back() = last;
    tensor.clear_float_data();
    tensor.set_dims(0, 5000);
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
    const std::string text = ImportText(model);
    EXPECT_THAT(Parameters(text), testing::SizeIs(last == 1.0F ? 0 : 1)) << text;
  }
}

// Positions of a rotary embedding, more than are folded.
TEST(Weights, WhatTheGraphComputesIsNone) {
  for (const char* count : {"1024", "8192"}) {
    const std::string text = ImportText(ModelOf(absl::StrReplaceAll(R"(
g (float[2,3] x) => (float[3,$0] y, float[2,$0] z)
<int64 zero = {0}, int64 one = {1}, int64 n = {$0}, float[3,1] frequency = {}> {
  r = Range(zero, n, one)
  f = Cast<to = 1>(r)
  row = Constant<value = int64[2] {1, -1}>()
  u = Reshape(f, row)
  y = MatMul(frequency, u)
  z = MatMul(x, y)
})",
                                                                    {{"$0", count}})));
    EXPECT_THAT(Parameters(text), testing::ElementsAre("%frequency: f32[3,1] parameter")) << text;
  }
}

// Weights of light models are made by nodes.
constexpr char kLight[] = R"(
g (float[2,3,8,8] x) => (float[2,3,8,8] y)
<int64[4] s = {3, 3, 1, 1}, int64[1] c = {3}, float[3] mean = {1, 2, 3}> {
  w = ConstantOfShape<value = float[1] {0.02}>(s)
  g = ConstantOfShape<value = float[1] {1.0}>(c)
  b = ConstantOfShape<value = float[1] {0.0}>(c)
  v = Constant<value = float[3] {1.0, 1.0, 1.0}>()
  h = Conv(x, w)
  y = BatchNormalization(h, g, b, mean, v)
})";

TEST(Weights, ConstantsThatStandWhereWeightsDo) {
  EXPECT_EQ(ImportText(ModelOf(kLight)),
            R"(
func @m (
  %x: f32[2,3,8,8] data,
  %mean: f32[3] buffer,
  %w: f32[3,3,1,1] parameter,
  %g: f32[3] parameter,
  %b: f32[3] parameter
) {
  %v: f32[3] = Constant() {fill=1.0}
  %h: f32[2,3,8,8] = Conv(%x, %w) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}
  %y: f32[2,3,8,8] = BatchNorm(%h, %g, %b, %mean, %v) {epsilon=1e-05}
  return %y: result
}
)");
}

TEST(Weights, ThatAreConstantsCanBeFrozen) {
  const std::string text = ImportText(ModelOf(kLight), {.roles = {.freeze = "^g$"}});
  EXPECT_NE(text.find("%w: f32[3,3,1,1] parameter"), std::string::npos) << text;
  EXPECT_NE(text.find("%g: f32[3] buffer"), std::string::npos) << text;
}

}  // namespace
}  // namespace weights_test_cc
}  // namespace orrery::importer
