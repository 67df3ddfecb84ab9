#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/cost_test_util.h"

// Flops and bytes of products, windows, norms and what stands around them, from shapes by hand: two
// for each multiply-add.

namespace orrery::ir {
namespace product_cost_test_cc {
namespace {

TEST(ProductCosts, OfMatrices) {
  ExpectFlops({
      // [2,5] matrices of 3 by 6, each a sum of 4.
      {"MatMul", "f32[2,1,3,4]; f32[5,4,6]", 2 * (2 * 5) * 3 * 6 * 4},
      {"MatMul {transpose_x=1}", "f32[4,3]; f32[4,6]", 2 * 3 * 6 * 4},
      {"MatMul {transpose_w=1}", "f32[3,4]; f32[6,4]", 2 * 3 * 6 * 4},
      {"MatMul {transpose_x=1, transpose_w=1}", "f32[4,3]; f32[6,4]", 2 * 3 * 6 * 4},
      {"MatMul", "f32[3,99]; f32[99,6]", 0},
      // Both gradients are as large a product as the product.
      {"MatMulGrad", "f32[2,3,4]; f32[4,5]; f32[2,3,5]", 2 * 2 * (2 * 3 * 4 * 5)},
      {"MatMulGrad {transpose_x=1}", "f32[2,4,3]; f32[4,5]; f32[2,3,5]", 2 * 2 * (2 * 3 * 4 * 5)},
      {"MatMulGrad {transpose_w=1}", "f32[2,3,4]; f32[5,4]; f32[2,3,5]", 2 * 2 * (2 * 3 * 4 * 5)},
      {"MatMulWeightGrad", "f32[2,3,4]; f32[2,3,5]", 2 * (2 * 3 * 4 * 5)},
      {"MatMulWeightGrad {transpose_x=1}", "f32[2,4,3]; f32[2,3,5]", 2 * (2 * 3 * 4 * 5)},
      {"MatMulWeightGrad {transpose_w=1}", "f32[2,3,4]; f32[2,3,5]", 2 * (2 * 3 * 4 * 5)},
  });
}

// Bias and activation are done on elements that are at hand.
TEST(ProductCosts, OfLinearLayersAreThoseOfTheirProducts) {
  constexpr double kOne = 2 * (2 * 3 * 4 * 5), kOther = 2 * (2 * 3 * 4 * 7);
  ExpectFlops({
      {"Linear", "f32[2,3,4]; f32[4,5]", kOne},
      {"Linear {transpose_w=1}", "f32[2,3,4]; f32[5,4]", kOne},
      {"Linear {activation=\"gelu\"}", "f32[2,3,4]; f32[4,5]; f32[5]", kOne},
      {"LinearGroup {count=2}", "f32[2,3,4]; f32[4,5]; f32[4,7]", kOne + kOther},
      {"LinearGroup {count=2}", "f32[2,3,4]; f32[4,5]; f32[4,7]; f32[5]; f32[7]", kOne + kOther},
      {"LinearGroupGrad {count=2}", "f32[2,3,4]; f32[4,5]; f32[4,7]; f32[2,3,5]; f32[2,3,7]",
       2 * (kOne + kOther)},
      {"LinearGroupGrad {count=1}", "f32[2,3,4]; f32[4,5]; f32[2,3,5]", 2 * kOne},
  });
}

// As many at each position of the whole space as there are operands; none where elements move.
TEST(ProductCosts, OfEinsums) {
  ExpectFlops({
      {"Einsum {equation=\"ij,jk->ik\"}", "f32[2,3]; f32[3,4]", 2 * (2 * 3 * 4)},
      {"Einsum {equation=\"i,i,i->\"}", "f32[4]; f32[4]; f32[4]", 3 * 4},
      {"Einsum {equation=\"ij->i\"}", "f32[2,3]", 6},
      {"Einsum {equation=\"ij->ji\"}", "f32[2,3]", 0},
      {"Einsum {equation=\"ii->i\"}", "f32[3,3]", 0},
      {"Einsum {equation=\"i,j->ij\"}", "f32[2]; f32[3]", 2 * 6},
      {"EinsumGrad {equation=\"ij,jk->i\"}", "f32[2,3]; f32[3,4]; f32[2]", 2 * (2 * 3 * 4)},
      {"EinsumGrad {equation=\"ii->i\"}", "f32[3,3]; f32[3]", 3},
  });
}

// Two for each element of the maps and each weight that makes it, of its group of channels.
TEST(ProductCosts, OfConvolutions) {
  const std::string x = "f32[1,4,5,5]", w = "f32[2,2,3,3]", offsets = "f32[1,18,3,3]";
  constexpr double kMaps = 2 * 3 * 3, kWeights = 2 * 3 * 3;
  ExpectFlops({
      {"Conv {group=2}", x + "; " + w, 2 * kMaps * kWeights},
      {"Conv {group=2, activation=\"relu\"}", x + "; " + w + "; f32[2]", 2 * kMaps * kWeights},
      {"ConvTranspose {spatial=[6]}", "f32[1,2,3]; f32[2,3,4]", 2 * (2 * 3) * (3 * 4)},
      {"ConvDataGrad {spatial=[6]}", "f32[1,2,3]; f32[2,3,4]", 2 * (2 * 3) * (3 * 4)},
      {"ConvWeightGrad {kernel=[4]}", "f32[1,3,6]; f32[1,2,3]", 2 * (2 * 3) * (3 * 4)},
      {"DeformConv {group=2}", x + "; " + w + "; " + offsets, 2 * kMaps * kWeights},
      {"DeformConv {group=2}", x + "; " + w + "; " + offsets + "; f32[1,9,3,3]",
       2 * kMaps * kWeights},
      {"DeformConvGrad {group=2}", x + "; " + w + "; " + offsets + "; f32[1,2,3,3]",
       2 * 2 * kMaps * kWeights},
  });
}

// A look at each element of each window, forward and back.
TEST(ProductCosts, OfPools) {
  const std::string x = "f32[1,1,4,4]", y = "f32[1,1,3,2]";
  constexpr double kSeen = (3 * 2) * (2 * 3);
  ExpectFlops({
      {"MaxPool {kernel=[2, 3]}", x, kSeen},
      {"MaxPool {indices=1, kernel=[2, 3]}", x, kSeen},
      {"MaxPoolGrad {kernel=[2, 3]}", x + "; " + y, kSeen},
      {"AveragePool {kernel=[2, 3]}", x, kSeen},
      {"AveragePoolGrad {kernel=[2, 3], spatial=[4, 4]}", y, kSeen},
      {"LpPool {kernel=[2, 3]}", x, kSeen},
      {"LpPoolGrad {kernel=[2, 3]}", x + "; " + y + "; " + y, kSeen},
      {"MaxUnpool {spatial=[4, 4]}", y + "; i64[1,1,3,2]", 0},
  });
}

// A product and a sum for each element that a point sees: 1, 2 or 4 along each dimension.
TEST(ProductCosts, OfInterpolations) {
  const std::string x = "f32[1,2,5,5]", grid = "f32[1,3,4,2]", dy = "f32[1,2,3,4]";
  constexpr double kPoints = 2 * 3 * 4;
  ExpectFlops({
      {"GridSample", x + "; " + grid, 2 * 4 * kPoints},
      {"GridSample {mode=\"nearest\"}", x + "; " + grid, 2 * 1 * kPoints},
      {"GridSample {mode=\"cubic\"}", x + "; " + grid, 2 * 16 * kPoints},
      {"GridSample", "f32[1,1,3,3,3]; f32[1,2,2,2,3]", 2 * 8 * 8},
      // Back to the image and to the grid.
      {"GridSampleGrad", x + "; " + grid + "; " + dy, 2 * 2 * 4 * kPoints},
      {"Resize {axes=[1], sizes=[6]}", "f32[2,3]", 0},
      {"Resize {axes=[1], sizes=[6], mode=\"linear\"}", "f32[2,3]", 2 * 2 * 12},
      {"Resize {axes=[0, 1], sizes=[4, 6], mode=\"cubic\"}", "f32[2,3]", 2 * (2 * 4) * 24},
      {"ResizeGrad {axes=[1], sizes=[3], mode=\"linear\"}", "f32[2,6]", 2 * 2 * 12},
  });
}

// Four points a bin, or the square of the ratio, each of four pixels.
TEST(ProductCosts, OfRegions) {
  const std::string align = "f32[1,2,8,8]; f32[3,4]; i64[3]";
  constexpr double kBins = 3 * 2 * (2 * 2);
  ExpectFlops({
      {"RoiAlign {pooled=[2, 2]}", align, 2 * 4 * 4 * kBins},
      {"RoiAlign {pooled=[2, 2], sampling_ratio=1}", align, 2 * 4 * 1 * kBins},
      {"RoiAlign {pooled=[2, 2], sampling_ratio=3}", align, 2 * 4 * 9 * kBins},
      {"RoiAlignGrad {pooled=[2, 2], sampling_ratio=3}", align + "; f32[3,2,2,2]",
       2 * 4 * 9 * kBins},
      {"RoiMaxPool {pooled=[2, 2]}", "f32[1,2,8,8]; f32[3,5]", kBins},
  });
}

// Two a weight, sample, step and direction. Back the same through the steps to h, and for each of
// x, w and r that has a gradient.
TEST(ProductCosts, OfRecurrentNets) {
  constexpr double kStepsAndSamples = 3 * 2;
  const std::string x = "f32[3,2,4]", y = "f32[3,1,2,5]";
  const std::string gru = x + "; f32[1,15,4]; f32[1,15,5]", rnn = x + "; f32[1,5,4]; f32[1,5,5]";
  const auto gates = [](double rows, double columns) {
    return 2 * kStepsAndSamples * rows * columns;
  };
  ExpectFlops({
      {"Rnn", rnn, gates(5, 4 + 5)},
      {"Gru", gru, gates(15, 4 + 5)},
      {"Gru {linear_before_reset=1}", gru, gates(15, 4 + 5)},
      {"Rnn {direction=\"reverse\"}", rnn, gates(5, 4 + 5)},
      {"Rnn {direction=\"bidirectional\"}", x + "; f32[2,5,4]; f32[2,5,5]", gates(2 * 5, 4 + 5)},
      {"RnnGrad {gradients=\"y\"}", rnn + "; " + y + "; " + y, gates(5, 2 * (4 + 5))},
      {"RnnGrad {gradients=\"y\", without=\"x\"}", rnn + "; " + y + "; " + y, gates(5, 4 + 2 * 5)},
      {"RnnGrad {gradients=\"y\", without=\"w\"}", rnn + "; " + y + "; " + y, gates(5, 4 + 2 * 5)},
      {"RnnGrad {gradients=\"y\", without=\"r,w\"}", rnn + "; " + y + "; " + y, gates(5, 4 + 5)},
      {"GruGrad {gradients=\"y\"}", gru + "; " + y + "; f32[3,1,2,15]; " + y,
       gates(15, 2 * (4 + 5))},
  });
}

// An element: four for its mean and variance, two to be normalized, two to be scaled.
TEST(ProductCosts, OfNorms) {
  const std::string image = "f32[2,4,3]", channels = "; f32[4]; f32[4]; f32[4]";
  const std::string group_grad = image + "; f32[4]; f32[2,2]; f32[2,2]; " + image;
  ExpectFlops({
      {"LayerNorm {axis=1}", "f32[2,3,4]; f32[3,4]", 8 * 24},
      {"LayerNormGrad", "f32[2,3,4]; f32[4]; f32[2,3,1]; f32[2,3,1]; f32[2,3,4]", 14 * 24},
      {"GroupNorm {groups=2}", image + "; f32[4]; f32[4]", 8 * 24},
      {"GroupNormGrad {groups=2}", group_grad, 14 * 24},
      // Nothing is centred: a square and a sum, twice scaled.
      {"RmsNorm", "f32[2,3,4]; f32[4]", 4 * 24},
      {"RmsNormGrad", "f32[2,3,4]; f32[4]; f32[2,3]; f32[2,3,4]", 8 * 24},
      {"BatchNormGrad", image + channels + "; " + image, 11 * 24},
      // A square and a sum for each of three channels around, and a power.
      {"LocalResponseNorm {size=3}", image, (2 * 3 + 4) * 24},
      {"LocalResponseNormGrad {size=5}", image + "; " + image, (2 * 5 + 4) * 24},
      {"Rotary", "f32[2,3,4]; f32[3,4]; f32[3,4]", 3 * 24},
  });
}

TEST(ProductCosts, OfMatricesThatAreTransformed) {
  ExpectFlops({
      {"Det", "f32[2,3,3]", 2 * (2 * 27.0) / 3},  // 2/3 n³ of elimination
      {"DetGrad", "f32[2,3,3]; f32[2]", 4 * 2 * (2 * 27.0) / 3},
      // 5 n log2 n for each of two lines.
      {"Dft {axis=1}", "f32[2,8,1]", 2 * 5 * 8 * 3},
      {"Dft {axis=1, onesided=1}", "f32[2,8,2]", 2 * 5 * 8 * 3},
      {"Dft {axis=0}", "f32[8,2,1]", 2 * 5 * 8 * 3},
      {"Dft {axis=1, length=16}", "f32[2,8,1]", 2 * 5 * 16 * 4},
      {"Dft {axis=1}", "f32[2,1,1]", 2 * 5 * 1 * 1},
  });
}

TEST(ProductCosts, OfExpertsAndOptimizers) {
  const std::string slots = "i32[2,3,4]", y = "f32[2,3,4,5]", gates = "f32[2,3,4]";
  constexpr double kElements = 2 * 3 * 4 * 5;
  const std::string two = "f32[3]; f32[2,2]";
  ExpectFlops({
      {"Route {experts=2}", "f32[3,4,2]; i64[3,4,2]", 0},
      {"Dispatch", "f32[3,6,5]; " + slots, 0},
      {"Combine {size=6}", y + "; " + slots, 2 * kElements},
      {"Combine {size=6}", y + "; " + slots + "; " + gates, 2 * kElements},
      {"CombineGrad", y + "; " + slots + "; " + gates + "; f32[3,6,5]", 3 * kElements},
      {"Sgd {parameters=2}", two + "; " + two, 2 * 7},
      // Master copies and moments are no parameters of their own.
      {"Sgd {parameters=2}", two + "; " + two + "; " + two, 2 * 7},
      {"Momentum {parameters=2}", two + "; " + two + "; " + two, 4 * 7},
      {"Adam {parameters=2}", two + "; " + two + "; " + two + "; " + two, 12 * 7},
      {"Adagrad {parameters=2}", two + "; " + two + "; " + two, 7 * 7},
      {"Lion {parameters=2}", two + "; " + two + "; " + two, 11 * 7},
      // Five steps of 4 m² n + 2 m³ (Jordan 2024), of two matrices of 3 by 4 each way.
      {"NewtonSchulz", "f32[2,3,4]", 2 * 5 * (4 * 9 * 4 + 2 * 27)},
      {"NewtonSchulz", "f32[2,4,3]", 2 * 5 * (4 * 9 * 4 + 2 * 27)},
      {"NewtonSchulz {steps=2}", "f32[3,4]", 2 * (4 * 9 * 4 + 2 * 27)},
      {"MuonMomentum", "f32[3,4]; f32[3,4]", 4 * 12},
      {"Muon {parameters=1}", "f32[3,4]; f32[3,4]; f32[3,4]", 6 * 12 + 5 * (4 * 9 * 4 + 2 * 27)},
  });
}

// Rows of q meet 5 keys; keys are 4 wide, values 6.
TEST(AttentionCosts, OfItsTwoProducts) {
  const std::string qkv = "f32[1,3,8]; f32[1,5,8]; f32[1,5,12]", y = "; f32[1,3,12]";
  const std::string kept = qkv + y + "; f32[1,2,3,5]" + y, flash = qkv + y + "; f32[1,2,3]" + y;
  constexpr double kOfQ = 2 * 2 * 3 * 5 * 4, kOfV = 2 * 2 * 3 * 5 * 6;  // over two heads
  ExpectFlops({
      {"Attention {heads=2}", qkv, kOfQ + kOfV},
      {"Attention {flash=1, heads=2}", qkv, kOfQ + kOfV},
      // Both operands of both products; and the first product again.
      {"AttentionGrad {heads=2}", kept, 2 * (kOfQ + kOfV)},
      {"AttentionGrad {flash=1, heads=2}", flash, 3 * kOfQ + 2 * kOfV},
      // Two weights and a sum an element; eight a row of each head.
      {"MergeAttention", "f32[2,6,8]; f32[2,4,6]; f32[2,6,8]; f32[2,4,6]", 3 * 96 + 8 * 48},
  });
  ExpectBytes({
      {"Attention {heads=2}", qkv, 4 * (24 + 40 + 60 + 36 + 30)},
      {"Attention {flash=1, heads=2}", qkv, 4 * (24 + 40 + 60 + 36 + 6)},
      {"AttentionGrad {heads=2}", kept, 4 * (24 + 40 + 60 + 36 + 30 + 36 + (24 + 40 + 60))},
  });
}

double RecomputedFlops(const std::string& op, const std::string& types) {
  const AppliedOp made = Apply(op, types);
  EXPECT_TRUE(made.status.ok()) << made.status;
  return made.With([&](const OpTypes& applied) {
    return GetOpInfo(made.kind).recomputed_flops(applied, made.results);
  });
}

// Only with flash=1 forward has not kept what backward needs.
TEST(AttentionCosts, OfWhatBackwardComputesAgain) {
  const std::string qkv = "f32[1,3,8]; f32[1,5,8]; f32[1,5,12]; f32[1,3,12]", dy = "; f32[1,3,12]";
  EXPECT_EQ(RecomputedFlops("AttentionGrad {heads=2}", qkv + "; f32[1,2,3,5]" + dy), 0);
  EXPECT_EQ(RecomputedFlops("AttentionGrad {flash=1, heads=2}", qkv + "; f32[1,2,3]" + dy),
            2 * 2 * 3 * 5 * 4);
}

// Of one rank's shapes, which no inference sees: `heads` heads of q, 5 rows of 3, and `held` of k
// and v, where four of the former share one of the latter.
int64_t BytesOfRank(int64_t heads, int64_t held, bool backward) {
  const TensorType q{DType::kF32, {1, heads, 5, 3}, {}}, k{DType::kF32, {1, held, 5, 3}, {}},
      l{DType::kF32, {1, heads, 5}, {}};
  std::vector<const TensorType*> operands = {&q, &k, &k};
  if (backward) operands.insert(operands.end(), {&q, &l, &q});
  const AttributeSet attributes = {
      {"flash", int64_t{1}}, {"heads", int64_t{16}}, {"kv_heads", int64_t{4}}};
  const OpInfo& info = GetOpInfo(backward ? OpKind::kAttentionGrad : OpKind::kAttention);
  const Mesh mesh;
  return info.bytes({.attributes = attributes, .operands = operands, .mesh = mesh},
                    backward ? TypeList{q, k, k} : TypeList{q, l});
}

// Heads that do not begin with a group may reach into one more of k and v.
TEST(AttentionCosts, OfARankThatReadsSomeOfItsKeysAndValues) {
  constexpr int64_t kHead = 4 * 5 * 3, kRow = 4 * 5;
  struct Case {
    int64_t heads, held, read;
  };
  for (const Case& c : {Case{1, 1, 1},
                        {1, 4, 1},
                        {2, 4, 1},
                        {3, 4, 2},
                        {4, 4, 1},
                        {5, 4, 3},
                        {6, 4, 3},
                        {8, 4, 2},
                        {9, 4, 4},
                        {16, 4, 4}}) {
    const int64_t forward = (2 * c.heads + 2 * c.read) * kHead + c.heads * kRow;
    EXPECT_EQ(BytesOfRank(c.heads, c.held, false), forward) << c.heads << " of " << c.held;
    // It writes the gradients of all keys and values that it has.
    const int64_t backward = (4 * c.heads + 2 * c.read + 2 * c.held) * kHead + c.heads * kRow;
    EXPECT_EQ(BytesOfRank(c.heads, c.held, true), backward) << c.heads << " of " << c.held;
  }
}

}  // namespace
}  // namespace product_cost_test_cc
}  // namespace orrery::ir
