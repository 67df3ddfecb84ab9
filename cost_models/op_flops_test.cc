#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cost_models/summary.h"
#include "ir/text/text.h"

// The flops of ops that no formula of a whole model checks, by hand.

namespace orrery::cost_models {
namespace op_flops_test_cc {
namespace {

// Of `op`, whose operands are `inputs`; it makes %y first.
double Count(const std::string& inputs, const std::string& op) {
  const auto function =
      ir::ParseFunction(absl::StrCat("func @f (", inputs, ") {\n", op, "\nreturn %y: result\n}\n"));
  EXPECT_TRUE(function.ok()) << function.status();
  return function.ok() ? Summarize(*function).total().flops.count() : 0;
}

TEST(OpFlops, OfProducts) {
  EXPECT_EQ(Count("%x: f32[2,3,4] data, %w: f32[2,3,5] data",
                  "%y: f32[2,4,5] = MatMul(%x, %w) {transpose_x=1}"),
            2 * 2 * 4 * 5 * 3);
  EXPECT_EQ(Count("%x: f32[2,3,4] data, %dy: f32[2,3,5] data",
                  "%y: f32[4,5] = MatMulWeightGrad(%x, %dy)"),
            2 * 2 * 3 * 4 * 5);
  EXPECT_EQ(Count("%q: f32[2,3,2,4] data, %k: f32[2,5,2,4] data",
                  "%y: f32[2,2,3,5] = Einsum(%q, %k) {equation=\"bihd,bjhd->bhij\"}"),
            2 * 2 * 2 * 3 * 5 * 4);
}

// Keys are 4 wide, values 6.
TEST(OpFlops, OfAttentionWithWideValues) {
  const std::string operands = "%q: f32[1,3,8] data, %k: f32[1,5,8] data, %v: f32[1,5,12] data";
  EXPECT_EQ(Count(operands,
                  "%y: f32[1,3,12], %p: f32[1,2,3,5] = Attention(%q, %k, %v) {heads=2, scale=0.5}"),
            2 * 2 * 3 * 5 * (4 + 6));
  EXPECT_EQ(
      Count(absl::StrCat(operands,
                         ", %o: f32[1,3,12] data, %s: f32[1,2,3] data, "
                         "%do: f32[1,3,12] data"),
            "%y: f32[1,3,8], %dk: f32[1,5,8], %dv: f32[1,5,12] = AttentionGrad(%q, %k, %v, %o, %s, "
            "%do) {flash=1, heads=2, scale=0.5}"),
      2 * 2 * 3 * 5 * (3 * 4 + 2 * 6));
}

// Two for each of 16 elements of the maps and the 12 weights of each; backward as forward.
TEST(OpFlops, OfConvolutions) {
  const std::string x = "%x: f32[2,4,5,3] data", w = "%w: f32[2,2,3,2] data",
                    dy = "%dy: f32[2,2,2,2] data";
  EXPECT_EQ(
      Count(absl::StrCat(x, ", ", w), "%y: f32[2,2,2,2] = Conv(%x, %w) {group=2, strides=[2, 1]}"),
      2 * 16 * 12);
  EXPECT_EQ(Count(absl::StrCat(dy, ", ", w),
                  "%y: f32[2,4,5,3] = ConvDataGrad(%dy, %w) {group=2, spatial=[5, 3], "
                  "strides=[2, 1]}"),
            2 * 16 * 12);
  EXPECT_EQ(Count(absl::StrCat(x, ", ", dy),
                  "%y: f32[2,2,3,2] = ConvWeightGrad(%x, %dy) {group=2, kernel=[3, 2], "
                  "strides=[2, 1]}"),
            2 * 16 * 12);
}

// Two a weight, sample and step; twice as many backward.
TEST(OpFlops, OfRecurrence) {
  const std::string weights = "%x: f32[3,2,4] data, %w: f32[1,20,4] data, %r: f32[1,20,5] data";
  EXPECT_EQ(Count(weights,
                  "%y: f32[3,1,2,5], %h: f32[1,2,5], %c: f32[1,2,5], %g: f32[3,1,2,20], "
                  "%s: f32[3,1,2,5] = Lstm(%x, %w, %r) {given=\"\"}"),
            2 * 3 * 2 * 20 * (4 + 5));
  EXPECT_EQ(Count(absl::StrCat(weights,
                               ", %o: f32[3,1,2,5] data, %g: f32[3,1,2,20] data, "
                               "%s: f32[3,1,2,5] data, %do: f32[3,1,2,5] data"),
                  "%y: f32[3,2,4], %dw: f32[1,20,4], %dr: f32[1,20,5] = LstmGrad(%x, %w, %r, %o, "
                  "%g, %s, %do) {given=\"\", gradients=\"y\"}"),
            2 * 2 * 3 * 2 * 20 * (4 + 5));
}

TEST(OpFlops, OfImages) {
  EXPECT_EQ(Count("%x: f32[1,2,6] data", "%y: f32[1,2,4] = MaxPool(%x) {kernel=[3]}"), 8 * 3);
  const std::string resize =
      "{axes=[2, 3], coordinates=\"half_pixel\", scales=[2.0, 2.0], sizes=[6, 6], mode=";
  const std::string y = "%y: f32[1,2,6,6] = Resize(%x) ";
  EXPECT_EQ(Count("%x: f32[1,2,3,3] data", absl::StrCat(y, resize, "\"linear\"}")), 72 * 2 * 2 * 2);
  EXPECT_EQ(Count("%x: f32[1,2,3,3] data", absl::StrCat(y, resize, "\"cubic\"}")), 72 * 2 * 2 * 4);
}

// An element: normalized, or by statistics that are known.
TEST(OpFlops, OfNorms) {
  EXPECT_EQ(Count("%x: f32[2,4] data, %g: f32[4] data",
                  "%y: f32[2,4], %m: f32[2,1], %r: f32[2,1] = LayerNorm(%x, %g) {axis=1}"),
            8 * 8);
  const std::string operands =
      "%x: f32[2,3,4] data, %s: f32[3] data, %b: f32[3] data, %m: f32[3] data, %v: f32[3] data";
  EXPECT_EQ(Count(operands, "%y: f32[2,3,4] = BatchNorm(%x, %s, %b, %m, %v)"), 2 * 24);
  EXPECT_EQ(Count(operands,
                  "%y: f32[2,3,4], %e: f32[3], %r: f32[3], %p: f32[3], %q: f32[3] = BatchNorm(%x, "
                  "%s, %b, %m, %v) {training=1}"),
            6 * 24);
  EXPECT_EQ(Count("%x: f32[1,2,3,4] data, %cos: f32[3,4] data, %sin: f32[3,4] data",
                  "%y: f32[1,2,3,4] = Rotary(%x, %cos, %sin)"),
            3 * 24);
}

TEST(OpFlops, OfOptimizers) {
  EXPECT_EQ(Count("%w: f32[3,4] parameter, %g: f32[3,4] data",
                  "%y: f32[3,4] = Sgd(%w, %g) {parameters=1}"),
            2 * 12);
  EXPECT_EQ(Count("%w: f32[3,4] parameter, %m: f32[3,4] state, %g: f32[3,4] data",
                  "%y: f32[3,4], %n: f32[3,4] = Momentum(%w, %m, %g) {parameters=1}"),
            4 * 12);
  EXPECT_EQ(Count("%w: f32[3,4] parameter, %m: f32[3,4] state, %v: f32[3,4] state, "
                  "%g: f32[3,4] data",
                  "%y: f32[3,4], %n: f32[3,4], %u: f32[3,4] = Adam(%w, %m, %v, %g) {parameters=1}"),
            12 * 12);
}

}  // namespace
}  // namespace op_flops_test_cc
}  // namespace orrery::cost_models
