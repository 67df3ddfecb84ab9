#include "ir/ops/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "ir/infer_test_util.h"
#include "ir/op_kind.h"
#include "ir/ops/newton_schulz.h"
#include "ir/optimizer_operands.h"

// Rules of optimizers against their papers, written out once more. What Muon makes orthogonal is
// held against what its polynomial makes of singular values, of matrices whose singular values and
// vectors are known.

namespace orrery::ir {
namespace optimizer_test_cc {
namespace {

Tensor Floats(Dims dims, std::vector<double> values) {
  return Tensor::OfFloats(DType::kF64, std::move(dims), std::move(values));
}

// The results of `steps` updates with these gradients, from zero moments.
std::vector<Tensor> Updated(OpKind kind, const AttributeSet& attributes, Tensor weight,
                            const std::vector<Tensor>& gradients, size_t moments) {
  std::vector<Tensor> held = {std::move(weight)};
  for (size_t j = 0; j < moments; ++j) held.emplace_back(DType::kF64, held[0].dims());
  AttributeSet all = attributes;
  all.Set(kParameterCount, int64_t{1});
  for (const Tensor& gradient : gradients) {
    std::vector<const Tensor*> operands;
    std::vector<TensorType> types;
    for (const Tensor& tensor : held) {
      operands.push_back(&tensor);
      types.push_back(tensor.type());
    }
    operands.push_back(&gradient);
    auto results = Evaluate(kind, all, operands, types);
    EXPECT_TRUE(results.ok()) << results.status();
    if (!results.ok()) return held;
    held = *std::move(results);
  }
  return held;
}

const std::vector<Tensor>& Gradients() {
  static const auto& gradients = *new std::vector<Tensor>{
      Floats({3}, {1, -2, 0}), Floats({3}, {3, 0.5, 0}), Floats({3}, {-4, 0.25, 1})};
  return gradients;
}

// G_t the sum of the squares so far: x_t+1 = x_t - eta g_t / (√G_t + epsilon).
TEST(Adagrad, DividesByTheRootOfAllSquares) {
  const std::vector<Tensor> results = Updated(OpKind::kAdagrad, {{"lr", 0.5}, {"epsilon", 0.0625}},
                                              Floats({3}, {1, 2, 3}), Gradients(), 1);
  double first = 1, second = 2, third = 3;
  first -= 0.5 * 1 / (1 + 0.0625);
  first -= 0.5 * 3 / (std::sqrt(10.0) + 0.0625);
  first += 0.5 * 4 / (std::sqrt(26.0) + 0.0625);
  second += 0.5 * 2 / (2 + 0.0625);
  second -= 0.5 * 0.5 / (std::sqrt(4.25) + 0.0625);
  second -= 0.5 * 0.25 / (std::sqrt(4.3125) + 0.0625);
  third -= 0.5 / (1 + 0.0625);
  EXPECT_NEAR(results[0].Number(0), first, 1e-12);
  EXPECT_NEAR(results[0].Number(1), second, 1e-12);
  EXPECT_NEAR(results[0].Number(2), third, 1e-12);
  EXPECT_EQ(results[1].floats(), (std::vector<double>{26, 4.3125, 1}));
}

// m = 0.5 m + 0.5 g, v = 0.75 v + 0.25 g², both corrected as in step 1: g and g². AdamW's decay is
// of the weight, and goes through neither.
TEST(Adam, DecaysWeightsBesideItsMoments) {
  const std::vector<Tensor> gradient = {Floats({3}, {1, -2, 4})};
  const AttributeSet attributes = {
      {"lr", 0.5}, {"beta1", 0.5}, {"beta2", 0.75}, {"epsilon", 0.0625}};
  AttributeSet decaying = attributes;
  decaying.Set("decay", 0.25);
  const Tensor weights = Floats({3}, {1, 2, 3});
  const std::vector<Tensor> plain = Updated(OpKind::kAdam, attributes, weights, gradient, 2);
  const std::vector<Tensor> decayed = Updated(OpKind::kAdam, decaying, weights, gradient, 2);
  for (const int64_t i : {0, 1, 2}) {
    const double w = weights.Number(i), g = gradient[0].Number(i);
    const double step = g / (std::abs(g) + 0.0625);
    EXPECT_NEAR(plain[0].Number(i), w - 0.5 * step, 1e-12);
    EXPECT_NEAR(decayed[0].Number(i), w - 0.5 * (step + 0.25 * w), 1e-12);
  }
  EXPECT_EQ(decayed[1].floats(), plain[1].floats());
  EXPECT_EQ(decayed[2].floats(), plain[2].floats());
}

// c = 0.5 m + 0.5 g; x -= eta (sign c + lambda x); m = 0.75 m + 0.25 g: of the first element
// c = 0.5, 1.625, -1.53125.
TEST(Lion, StepsByASignAndKeepsAnotherMean) {
  const std::vector<Tensor> results =
      Updated(OpKind::kLion, {{"lr", 0.5}, {"beta1", 0.5}, {"beta2", 0.75}, {"decay", 0.25}},
              Floats({3}, {1, 2, 3}), Gradients(), 1);
  const auto decayed = [](double x, double sign) { return x - 0.5 * (sign + 0.25 * x); };
  EXPECT_NEAR(results[0].Number(0), decayed(decayed(decayed(1, 1), 1), -1), 1e-12);
  // m: -0.5, -0.25, ...; c: -1, 0, 0: the sign of nothing is nothing.
  EXPECT_NEAR(results[0].Number(1), decayed(decayed(decayed(2, -1), 0), 0), 1e-12);
  EXPECT_NEAR(results[0].Number(2), decayed(decayed(decayed(3, 0), 0), 1), 1e-12);
  EXPECT_NEAR(results[1].Number(0), ((0.25 * 0.75) + 0.25 * 3) * 0.75 - 0.25 * 4, 1e-12);
}

// What five steps make of a singular value, as a share of the norm.
double OfSingularValue(double s) {
  for (int step = 0; step < 5; ++step) {
    s = 3.4445 * s - 4.7750 * s * s * s + 2.0315 * s * s * s * s * s;
  }
  return s;
}

// U diag(s) V' with rotations by these angles; `columns` 2 or 3, the last one zero before V is
// applied to the first two.
std::vector<double> WithSingularValues(double s0, double s1, bool tall) {
  const double u = 0.7, v = 1.1;
  const std::array<double, 4> left = {std::cos(u), -std::sin(u), std::sin(u), std::cos(u)};
  // The first two rows of a rotation of space.
  const std::array<double, 6> right = {std::cos(v), std::sin(v) * 0.6, std::sin(v) * 0.8, 0, -0.8,
                                       0.6};
  std::vector<double> matrix(6);
  for (size_t r = 0; r < 2; ++r) {
    for (size_t c = 0; c < 3; ++c) {
      const double value = left[2 * r] * s0 * right[c] + left[2 * r + 1] * s1 * right[3 + c];
      matrix[tall ? 2 * c + r : 3 * r + c] = value;
    }
  }
  return matrix;
}

TEST(NewtonSchulz, AppliesItsPolynomialToSingularValues) {
  for (const bool tall : {false, true}) {
    const std::vector<double> matrix = WithSingularValues(5, 0.25, tall);
    const double norm = std::sqrt(5 * 5 + 0.25 * 0.25);
    const std::vector<double> expected =
        WithSingularValues(OfSingularValue(5 / norm), OfSingularValue(0.25 / norm), tall);
    const std::vector<double> made = Orthogonal(matrix.data(), tall ? 3 : 2, tall ? 2 : 3, 5);
    for (size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], expected[i], 1e-6) << i;
  }
  // Near one, whatever they were.
  EXPECT_NEAR(OfSingularValue(0.05), 1, 0.35);
  EXPECT_NEAR(OfSingularValue(1), 1, 0.35);
}

// m = mu m + g, of which g + mu m is made orthogonal; 0.2 √3 times that is the step.
TEST(Muon, StepsByOrthogonalMatrices) {
  const double mu = 0.5, rate = 0.25;
  const std::vector<double> g = WithSingularValues(3, 1, false);
  Tensor two(DType::kF64, {2, 2, 3});
  for (int64_t i = 0; i < 6; ++i) {
    two.SetNumber(i, g[static_cast<size_t>(i)]);
    two.SetNumber(6 + i, -2 * g[static_cast<size_t>(i)]);  // of the same directions
  }
  const std::vector<Tensor> results = Updated(OpKind::kMuon, {{"lr", rate}, {"mu", mu}},
                                              Tensor(DType::kF64, {2, 2, 3}), {two, two}, 1);
  const double norm = std::sqrt(10.0);
  const std::vector<double> step =
      WithSingularValues(OfSingularValue(3 / norm), OfSingularValue(1 / norm), false);
  for (int64_t i = 0; i < 6; ++i) {
    const double each = rate * 0.2 * std::sqrt(3.0) * step[static_cast<size_t>(i)];
    EXPECT_NEAR(results[0].Number(i), -2 * each, 1e-6) << i;
    EXPECT_NEAR(results[0].Number(6 + i), 2 * each, 1e-6) << i;
    EXPECT_NEAR(results[1].Number(i), (1 + mu) * g[static_cast<size_t>(i)], 1e-12) << i;
  }
}

// So Muon and what it becomes have the same bounds.
TEST(Muon, ChecksItsSteps) {
  for (const std::string op : {"Muon {parameters=1, steps=", "NewtonSchulz {steps="}) {
    const std::string matrix = "f32[4,6]";
    const std::string types = op[0] == 'M' ? "f32[4,6]; f32[4,6]; f32[4,6]" : matrix;
    const std::string results = op[0] == 'M' ? "f32[4,6]; f32[4,6]" : matrix;
    Expect({{op + "1}", types, results},
            {op + "100}", types, results},
            {op + "0}", types, "got 0 steps; wanted 1 to 100"},
            {op + "101}", types, "got 101 steps; wanted 1 to 100"},
            {op + "2.5}", types, "got steps that are no whole number; wanted 1 to 100"}});
  }
}

// A record that can be chosen says how much it keeps.
TEST(Optimizers, AreChosenByNamesOfTheirOwn) {
  std::string names;
  for (int k = 0; k < OpKindCount(); ++k) {
    const OpInfo& info = GetOpInfo(static_cast<OpKind>(k));
    if (info.chosen_as.empty()) continue;
    EXPECT_EQ(info.op_class, OpClass::kOptimizer) << info.name;
    names += std::string(info.chosen_as) + " " + std::string(info.states) + "; ";
  }
  EXPECT_EQ(names, "sgd ; momentum m; adam m,v; adagrad v; lion m; adafactor r,c; muon m; ");
}

}  // namespace
}  // namespace optimizer_test_cc
}  // namespace orrery::ir
