#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_ops_test_util.h"

// Quantized numbers and their products; boxes that are kept.

namespace orrery::importer {
namespace quantized_test_cc {
namespace {

TEST(Quantization, IsAlongTheAxisOfItsScales) {
  EXPECT_EQ(OpLines("g (float[4,3] x, float s) => (uint8[4,3] y) { y = QuantizeLinear(x, s) }"), R"(
  %y: u8[4,3] = QuantizeLinear(%x, %s) {to="u8"})");
  EXPECT_EQ(OpLines("g (float[4,3] x, float[3] s, int8[3] z) => (int8[4,3] y) { "
                    "y = QuantizeLinear(x, s, z) }"),
            R"(
  %y: i8[4,3] = QuantizeLinear(%x, %s, %z) {axis=1, to="i8"})");
  EXPECT_EQ(OpLines("g (float[4,3] x, float[4] s) => (int8[4,3] y) { "
                    "y = QuantizeLinear<axis = 0, output_dtype = 3>(x, s) }",
                    21),
            R"(
  %y: i8[4,3] = QuantizeLinear(%x, %s) {axis=0, to="i8"})");
  EXPECT_EQ(OpLines("g (uint8[4,6] x, float[4,1] s) => (float[4,6] y) { "
                    "y = DequantizeLinear<block_size = 6>(x, s) }",
                    21),
            R"(
  %y: f32[4,6] = DequantizeLinear(%x, %s) {axis=1, block_size=6})");
  EXPECT_EQ(OpLines("g (float[4,3] x, float s) => (uint8[4,3] y) { "
                    "y = QuantizeLinear<output_dtype = -3>(x, s) }",
                    21)
                .substr(0, 22),
            "element type UNDEFINED");
}

// 255 steps from the least to the most, with zero among them.
TEST(Quantization, FindsItsOwnScale) {
  EXPECT_EQ(OpLines("g (float[4,3] x) => (uint8[4,3] y, float s, uint8 z) { "
                    "y, s, z = DynamicQuantizeLinear(x) }"),
            R"(
  %1: f32[] = Constant() {fill=0.0}
  %2: f32[] = Constant() {fill=255.0}
  %3: f32[] = ReduceMax(%x) {axes=[0, 1]}
  %4: f32[] = Max(%3, %1)
  %5: f32[] = ReduceMin(%x) {axes=[0, 1]}
  %6: f32[] = Min(%5, %1)
  %7: f32[] = Sub(%4, %6)
  %s: f32[] = Div(%7, %2)
  %9: f32[] = Neg(%6)
  %z: u8[] = QuantizeLinear(%9, %s) {to="u8"}
  %y: u8[4,3] = QuantizeLinear(%x, %s, %z) {to="u8"})");
}

TEST(QuantizedProducts, OfWholeNumbersAreLessTheirZeroPoints) {
  EXPECT_EQ(OpLines("g (uint8[4,3] x, int8[3,5] w, uint8[4] a, int8[5] b) => (int32[4,5] y) { "
                    "y = MatMulInteger(x, w, a, b) }"),
            R"(
  %4: i32[4,3] = Cast(%x) {to="i32"}
  %5: i32[4] = Cast(%a) {to="i32"}
  %6: i32[4,1] = Unsqueeze(%5) {axes=[1]}
  %7: i32[4,3] = Sub(%4, %6)
  %8: i32[3,5] = Cast(%w) {to="i32"}
  %9: i32[5] = Cast(%b) {to="i32"}
  %10: i32[5] = Unsqueeze(%9) {axes=[]}
  %11: i32[3,5] = Sub(%8, %10)
  %y: i32[4,5] = MatMul(%7, %11))");
  EXPECT_EQ(OpLines("g (uint8[4,3] x, int8[3,5] w) => (int32[4,5] y) { y = MatMulInteger(x, w) }"),
            R"(
  %2: i32[4,3] = Cast(%x) {to="i32"}
  %3: i32[3,5] = Cast(%w) {to="i32"}
  %y: i32[4,5] = MatMul(%2, %3))");
  EXPECT_EQ(OpLines("g (uint8[3] x, int8[3,5] w) => (int32[5] y) { y = MatMulInteger(x, w) }"),
            "inputs have 1 and 2 dimensions; wanted at least 2");
  EXPECT_EQ(OpLines("g (uint8[4,3] x, int8[3] w) => (int32[4] y) { y = MatMulInteger(x, w) }"),
            "inputs have 2 and 1 dimensions; wanted at least 2");
}

TEST(QuantizedProducts, OfWindowsAreLessTheirZeroPoints) {
  EXPECT_EQ(OpLines("g (uint8[1,4,5,5] x, uint8[6,2,3,3] w, uint8 a, uint8[6] b) => "
                    "(int32[1,6,3,3] y) { y = ConvInteger<group = 2>(x, w, a, b) }"),
            R"(
  %4: i32[1,4,5,5] = Cast(%x) {to="i32"}
  %5: i32[] = Cast(%a) {to="i32"}
  %6: i32[1,4,5,5] = Sub(%4, %5)
  %7: i32[6,2,3,3] = Cast(%w) {to="i32"}
  %8: i32[6] = Cast(%b) {to="i32"}
  %9: i32[6,1,1,1] = Unsqueeze(%8) {axes=[1, 2, 3]}
  %10: i32[6,2,3,3] = Sub(%7, %9)
  %y: i32[1,6,3,3] = Conv(%6, %10) {dilations=[1, 1], group=2, pads=[0, 0, 0, 0], strides=[1, 1]})");
}

TEST(QuantizedProducts, OfRealNumbersAreDequantized) {
  EXPECT_EQ(OpLines("g (uint8[4,3] x, float[4] xs, uint8[4] xz, uint8[3,5] w, float[5] ws, "
                    "uint8[5] wz, float s, int8 z) => (int8[4,5] y) { "
                    "y = QLinearMatMul(x, xs, xz, w, ws, wz, s, z) }"),
            R"(
  %8: f32[4,3] = DequantizeLinear(%x, %xs, %xz) {axis=0}
  %9: f32[3,5] = DequantizeLinear(%w, %ws, %wz) {axis=1}
  %10: f32[4,5] = MatMul(%8, %9)
  %y: i8[4,5] = QuantizeLinear(%10, %s, %z) {to="i8"})");
  EXPECT_EQ(OpLines("g (uint8[1,4,5,5] x, float xs, uint8 xz, uint8[6,4,3,3] w, float[6] ws, "
                    "uint8[6] wz, float s, uint8 z, int32[6] b) => (uint8[1,6,3,3] y) { "
                    "y = QLinearConv(x, xs, xz, w, ws, wz, s, z, b) }"),
            R"(
  %9: f32[1,4,5,5] = DequantizeLinear(%x, %xs, %xz)
  %10: f32[6,4,3,3] = DequantizeLinear(%w, %ws, %wz) {axis=0}
  %11: f32[6] = Mul(%xs, %ws)
  %12: f32[6] = Cast(%b) {to="f32"}
  %13: f32[6] = Mul(%12, %11)
  %14: f32[1,6,3,3] = Conv(%9, %10, %13) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}
  %y: u8[1,6,3,3] = QuantizeLinear(%14, %s, %z) {to="u8"})");
  EXPECT_EQ(OpLines("g (uint8[3] x, float xs, uint8 xz, uint8[3,5] w, float ws, "
                    "uint8 wz, float s, int8 z) => (int8[5] y) { "
                    "y = QLinearMatMul(x, xs, xz, w, ws, wz, s, z) }"),
            "inputs have 1 and 2 dimensions; wanted at least 2");
}

// What is kept of boxes by the scores of each class, at most `most` a class: rows of batch entry,
// class and box.
struct Suppression {
  std::string boxes, scores, most, overlap, attributes = "", threshold = "0.0";
};
std::string Kept(const Suppression& s) {
  const std::string ops = OpLines(absl::StrCat(
      "g (float[1] x) => (float[1] x2, int64[?,3] y) { x2 = Relu(x) b = Constant<value = ", s.boxes,
      ">() s = Constant<value = ", s.scores, ">() m = Constant<value = int64 {", s.most,
      "}>() o = Constant<value = float {", s.overlap, "}>() t = Constant<value = float {",
      s.threshold, "}>() y = NonMaxSuppression", s.attributes, "(b, s, m, o, t) }"));
  const size_t begin = ops.find("values=");
  return begin == std::string::npos ? ops : ops.substr(begin + 7, ops.find('}', begin) - begin - 7);
}

// Of 2 by 2, the same half a step aside, and half of the first: 3 of 5 are common to the first two,
// 2 of 4 to the first and the last, 1 of 5 to the last two.
const char* const kCorners =
    "float[1,3,4] {0.0, 0.0, 2.0, 2.0, 0.0, 0.5, 2.0, 2.5, 2.0, 1.0, 0.0, 0.0}";
const char* const kCenters =
    "float[1,3,4] {1.0, 1.0, 2.0, 2.0, 1.5, 1.0, 2.0, 2.0, 0.5, 1.0, 1.0, 2.0}";
// The second class has another order.
const char* const kScores = "float[1,2,3] {0.75, 0.5, 0.25, 0.25, 0.75, 0.5}";

TEST(Boxes, AreKeptWhereTheyOverlapABetterOneLittle) {
  for (const bool centers : {false, true}) {
    const auto kept = [&](const std::string& overlap) {
      return Kept({.boxes = centers ? kCenters : kCorners,
                   .scores = kScores,
                   .most = "3",
                   .overlap = overlap,
                   .attributes = centers ? "<center_point_box = 1>" : ""});
    };
    EXPECT_EQ(kept("0.625"), "[0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 1, 0, 1, 2, 0, 1, 0]");
    EXPECT_EQ(kept("0.5"), "[0, 0, 0, 0, 0, 2, 0, 1, 1, 0, 1, 2]");
    EXPECT_EQ(kept("0.375"), "[0, 0, 0, 0, 1, 1, 0, 1, 2]");
    EXPECT_EQ(kept("0.125"), "[0, 0, 0, 0, 1, 1]");
  }
}

TEST(Boxes, AreKeptUpToANumberAndAboveAScore) {
  EXPECT_EQ(Kept({kCorners, kScores, "1", "0.5"}), "[0, 0, 0, 0, 1, 1]");
  EXPECT_EQ(Kept({kCorners, kScores, "3", "0.5", "", "0.5"}), "[0, 0, 0, 0, 1, 1]");
  EXPECT_EQ(Kept({kCorners, kScores, "3", "0.5", "", "0.25"}), "[0, 0, 0, 0, 1, 1, 0, 1, 2]");
  // Equal scores keep the order of the boxes, which share a side and no area.
  EXPECT_EQ(Kept({"float[1,2,4] {0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 2.0}",
                  "float[1,1,2] {0.5, 0.5}", "2", "0.0"}),
            "[0, 0, 0, 0, 0, 1]");
}

// Each entry of a batch has its own boxes.
TEST(Boxes, AreThoseOfTheirEntry) {
  EXPECT_EQ(Kept({"float[2,2,4] {0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 5.0, "
                  "5.0, 6.0, 6.0}",
                  "float[2,1,2] {0.5, 0.75, 0.5, 0.75}", "2", "0.5"}),
            "[0, 0, 1, 1, 0, 1, 1, 0, 0]");
}

TEST(Boxes, FitTheirScores) {
  const std::string wanted =
      "boxes and scores do not fit; wanted [batch,boxes,4] and [batch,classes,boxes]";
  EXPECT_EQ(Kept({kCorners, "float[1,1,2] {0.5, 0.5}", "3", "0.5"}), wanted);
  EXPECT_EQ(Kept({kCorners, "float[2,1,3] {0.5, 0.5, 0.5, 0.5, 0.5, 0.5}", "3", "0.5"}), wanted);
  EXPECT_EQ(Kept({kCorners, "float[1,3] {0.5, 0.5, 0.5}", "3", "0.5"}), wanted);
  EXPECT_EQ(Kept({"float[1,1,3] {0.5, 0.5, 0.5}", "float[1,1,1] {0.5}", "3", "0.5"}), wanted);
}

}  // namespace
}  // namespace quantized_test_cc
}  // namespace orrery::importer
