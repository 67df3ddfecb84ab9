#include "tests/semantics/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/semantics/spread.h"

// By hand: small enough to check by eye.

namespace orrery::semantics {
namespace {

using ir::OpKind;

std::vector<Tensor> Do(OpKind kind, const std::vector<Tensor>& operands,
                       const ir::AttributeSet& attributes = {}) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  return Evaluate(kind, attributes, pointers);
}

const Tensor kA = {{2, 3},
                   {1, 2, 3,  //
                    4, 5, 6}};
const Tensor kB = {{3, 2},
                   {1, 0,  //
                    0, 1,  //
                    1, 1}};

TEST(Interpreter, MultipliesMatrices) {
  const Tensor product = {{2, 2},
                          {4, 5,  //
                           10, 11}};
  EXPECT_EQ(Do(OpKind::kMatMul, {kA, kB})[0], product);
  const Tensor b_transposed = Do(OpKind::kTranspose, {kB})[0];
  EXPECT_EQ(b_transposed, (Tensor{{2, 3}, {1, 0, 1, 0, 1, 1}}));
  EXPECT_EQ(Do(OpKind::kMatMul, {kA, b_transposed}, {{"transpose_w", int64_t{1}}})[0], product);
  const Tensor a_transposed =
      Do(OpKind::kTranspose, {kA}, {{"perm", std::vector<int64_t>{1, 0}}})[0];
  EXPECT_EQ(Do(OpKind::kMatMul, {a_transposed, kB}, {{"transpose_x", int64_t{1}}})[0], product);
}

TEST(Interpreter, GradientsOfAProductAreProducts) {
  const Tensor dy = {{2, 2}, {1, 2, 3, 4}};
  const std::vector<Tensor> gradients = Do(OpKind::kMatMulGrad, {kA, kB, dy});
  EXPECT_EQ(gradients[0], Do(OpKind::kMatMul, {dy, kB}, {{"transpose_w", int64_t{1}}})[0]);
  EXPECT_EQ(gradients[1], Do(OpKind::kMatMul, {kA, dy}, {{"transpose_x", int64_t{1}}})[0]);
}

TEST(Interpreter, Broadcasts) {
  EXPECT_EQ(Do(OpKind::kAdd, {kA, {{3}, {10, 20, 30}}})[0],
            (Tensor{{2, 3}, {11, 22, 33, 14, 25, 36}}));
  EXPECT_EQ(Do(OpKind::kMul, {{{2, 1}, {2, 3}}, kA})[0], (Tensor{{2, 3}, {2, 4, 6, 12, 15, 18}}));
}

TEST(Interpreter, ReducesDimensions) {
  EXPECT_EQ(Do(OpKind::kReduceSum, {kA}, {{"axes", std::vector<int64_t>{0}}})[0],
            (Tensor{{3}, {5, 7, 9}}));
  EXPECT_EQ(Do(OpKind::kReduceSum, {kA}, {{"axes", std::vector<int64_t>{0, 1}}})[0],
            (Tensor{{}, {21}}));
}

TEST(Interpreter, LosesAndLearns) {
  const Tensor x = {{2}, {3, -1}}, z = {{2}, {1, 1}};
  EXPECT_EQ(Do(OpKind::kLoss, {x, z}, {{"batch", int64_t{2}}})[0], (Tensor{{2}, {2, 2}}));
  EXPECT_EQ(Do(OpKind::kLossGrad, {x, z}, {{"batch", int64_t{2}}})[0], (Tensor{{2}, {2, -2}}));
  EXPECT_EQ(Do(OpKind::kRelu, {x})[0], (Tensor{{2}, {3, 0}}));
  EXPECT_EQ(Do(OpKind::kReluGrad, {x, z})[0], (Tensor{{2}, {1, 0}}));
  const std::vector<Tensor> updated = Do(OpKind::kSgd, {x, z}, {{"parameters", int64_t{1}}});
  EXPECT_DOUBLE_EQ(updated[0].values[0], 2.9);
  EXPECT_DOUBLE_EQ(updated[0].values[1], -1.1);
}

TEST(Interpreter, CutsAndPastes) {
  Tensor a = kA;
  const Tensor middle = Slice(a, 1, 1, 2);
  EXPECT_EQ(middle, (Tensor{{2, 1}, {2, 5}}));
  Paste(middle, 1, 0, a);
  EXPECT_EQ(a, (Tensor{{2, 3}, {2, 2, 3, 5, 5, 6}}));
  EXPECT_EQ(Distance(a, kA), 1);
  EXPECT_TRUE(std::isinf(Distance(a, kB)));
}

TEST(Spread, GatherPutsTogetherWhatScatterTookApart) {
  const ir::Mesh mesh({{"a", 2}, {"b", 3}});
  const std::vector<int32_t> ranks = {0, 1, 2, 3, 4, 5};
  Tensor whole = Filled({12, 2}, 0);
  for (size_t i = 0; i < whole.values.size(); ++i) whole.values[i] = static_cast<double>(i);
  ir::TensorType type{ir::DType::kF32, {12, 2}, {}};
  ir::AxisList both(1);
  both.push_back(0);  // b outermost
  type.sharding.Set(0, 2, both);
  std::vector<Tensor> parts;
  for (const int32_t rank : ranks) parts.push_back(Scatter(whole, type, mesh, rank));
  // Rank 3 is a1 b0: part 0 * 2 + 1.
  EXPECT_EQ(parts[3], (Tensor{{2, 2}, {4, 5, 6, 7}}));
  double disagreement = 0;
  EXPECT_EQ(Gather(parts, type, mesh, ranks, disagreement), whole);
  EXPECT_EQ(disagreement, 0);
}

TEST(Spread, GatherAddsPartsAndTellsRanksThatDisagree) {
  const ir::Mesh mesh({{"a", 2}, {"b", 2}});
  ir::TensorType type{ir::DType::kF32, {1}, {}};
  type.sharding.partial = ir::AxisList(0);
  const std::vector<Tensor> parts = {{{1}, {1}}, {{1}, {2}}, {{1}, {10}}, {{1}, {20}}};
  const std::vector<int32_t> ranks = {0, 1, 2, 3};
  double disagreement = 0;
  EXPECT_EQ(Gather(parts, type, mesh, ranks, disagreement), (Tensor{{1}, {11}}));
  EXPECT_EQ(disagreement, 11);
}

}  // namespace
}  // namespace orrery::semantics
