#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "ir/ops/cost_test_util.h"

// Flops of what works element by element or along one dimension, by the convention of
// ir/ops/pointwise.h: one for an add, a product, a quotient, a comparison, a choice, a magnitude;
// four for whatever takes a series or a table. Each function is counted here from its formula.

namespace orrery::ir {
namespace pointwise_cost_test_cc {
namespace {

constexpr int kSeries = 4;  // exp, log, powers, roots, trigonometry, erf

struct Function {
  const char* name;
  int flops;  // an element
};

// Those of one operand.
std::vector<Function> UnaryFunctions() {
  return {
      {"Abs", 1},
      {"Acos", kSeries},
      {"Acosh", kSeries},
      {"Asin", kSeries},
      {"Asinh", kSeries},
      {"Atan", kSeries},
      {"Atanh", kSeries},
      {"Ceil", 1},
      {"Cos", kSeries},
      {"Cosh", kSeries},
      {"Erf", kSeries},
      {"Exp", kSeries},
      {"Floor", 1},
      {"Log", kSeries},
      {"Reciprocal", 1},
      {"Round", 1},
      {"Rsqrt", kSeries},
      {"Sign", 1},
      {"Sin", kSeries},
      {"Sinh", kSeries},
      {"Sqrt", kSeries},
      {"Tan", kSeries},
      {"Tanh", kSeries},
      {"Celu", 1 + kSeries + 2},            // x / alpha; exp; times alpha, chosen
      {"Clip", 2},                          // two comparisons
      {"Elu", kSeries + 2},                 // exp; times alpha, chosen
      {"Gelu", 1 + kSeries + 1 + 2},        // x / root 2; erf; 1 +; times x / 2
      {"HardSigmoid", 2 + 2},               // alpha x + beta; cut off twice
      {"HardSwish", 2 + 2 + 1},             // the same, times x
      {"LeakyRelu", 2},                     // alpha x, chosen
      {"Mish", 2 * kSeries + kSeries + 1},  // exp and log; tanh; times x
      {"Selu", 1 + kSeries + 2},            // as Elu, times gamma
      {"Shrink", 3},                        // a magnitude or two comparisons, and the bias
      {"Sigmoid", kSeries + 2},             // exp; 1 +; 1 /
      {"Silu", kSeries + 3},                // the same, times x
      {"Softplus", kSeries + 1 + kSeries},  // exp; 1 +; log
      {"Softsign", 3},                      // |x|; 1 +; x /
      {"SquaredRelu", 2},                   // cut off, times itself
      {"ThresholdedRelu", 1},               // a choice
  };
}

TEST(PointwiseCosts, OfFunctionsAreTheSumOfTheirParts) {
  const std::vector<Function> functions = UnaryFunctions();
  EXPECT_EQ(functions.size(), 39u);  // all of them, as unary_test.cc has it
  for (const Function& f : functions) {
    EXPECT_EQ(FlopsOf(f.name, "f32[3,5]"), 15 * f.flops) << f.name;
    EXPECT_EQ(FlopsOf(f.name, "f32[]"), f.flops) << f.name;
    EXPECT_EQ(FlopsOf(f.name, "f16[3,99]"), 0) << f.name;
  }
}

// From x the derivative costs what the function does; from what was kept of the result it is a
// subtraction and a product; one more product applies it.
TEST(PointwiseCosts, OfAGradientAreThoseOfTheFunctionAndOneMore) {
  const std::set<std::string> of_result = {"Exp",  "Reciprocal", "Rsqrt", "Sigmoid",
                                           "Sqrt", "Tan",        "Tanh"};
  const std::set<std::string> flat = {"Ceil", "Floor", "Round", "Sign"};
  for (const Function& f : UnaryFunctions()) {
    if (flat.contains(f.name)) continue;
    const double each = of_result.contains(f.name) ? 3 : f.flops + 1;
    EXPECT_EQ(FlopsOf(absl::StrCat("UnaryGrad {of=\"", f.name, "\"}"), "f32[3,5]; f32[3,5]"),
              15 * each)
        << f.name;
  }
}

// One an element of the result, to which the smaller operand is repeated.
TEST(PointwiseCosts, OfTwoOperandsAreOneAnElementOfTheResult) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Equal", "Greater",
                         "GreaterOrEqual", "Less", "LessOrEqual"}) {
    EXPECT_EQ(FlopsOf(op, "f32[3,1]; f32[5]"), 15) << op;
  }
  for (const char* op : {"And", "Or", "Xor", "BitShift {direction=\"left\"}"}) {
    EXPECT_EQ(FlopsOf(op, "i32[3,1]; i32[5]"), 15) << op;
  }
  ExpectFlops({
      {"Neg", "f32[3,5]", 15},
      {"Not", "bool[3,5]", 15},
      {"IsNaN", "f32[3,5]", 15},
      {"IsInf", "f32[3,5]", 15},
      {"Cast {to=\"f16\"}", "f32[3,5]", 15},
      {"Scale {factor=2.0}", "f32[3,5]", 15},
      {"Relu", "f32[3,5]", 15},
      {"ReluGrad", "f32[3,5]; f32[3,5]", 15},
      {"Accumulate", "f32[3,5]; f32[3,5]", 15},
      {"Where", "bool[2,1,1]; f32[3,1]; f32[5]", 30},
      {"Dropout", "f32[3,5]", 15},
      {"DropoutGrad", "bool[3,5]; f32[3,5]", 15},
      {"RandomLike", "f32[3,5]", 15},
      {"CumSum {axis=0}", "f32[3,5]", 15},
  });
}

TEST(PointwiseCosts, OfPowersSlopesAndGates) {
  ExpectFlops({
      {"Pow", "f32[3,1]; f32[5]", kSeries * 15},
      // x to p - 1; p - 1, times p, times dy.
      {"PowGrad", "f32[3,5]; f32[5]; f32[3,5]", (kSeries + 3) * 15},
      {"PRelu", "f32[3,5]; f32[5]", 2 * 15},
      // A choice and a product for each of both gradients.
      {"PReluGrad", "f32[3,5]; f32[5]; f32[3,5]", 4 * 15},
      // A sigmoid of the gate, times it, times the other.
      {"SwiGlu", "f32[3,5]; f32[3,5]", (kSeries + 2 + 2) * 15},
      {"SwiGluGrad", "f32[3,5]; f32[3,5]; f32[3,5]", (kSeries + 6) * 15},
      // Divided, rounded, moved, cut off; back: moved, scaled.
      {"QuantizeLinear", "f32[3,5]; f32[]", 4 * 15},
      {"DequantizeLinear", "u8[3,5]; f32[]", 2 * 15},
  });
}

// Each element of the operand is looked at once, whatever is left.
TEST(PointwiseCosts, OfReductionsAreOneAnElementOfTheOperand) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"}) {
    for (const char* attributes : {" {axes=[1]}", " {axes=[0, 1], keepdims=1}", " {axes=[]}"}) {
      EXPECT_EQ(FlopsOf(absl::StrCat(op, attributes), "f32[3,5]"), 15) << op << attributes;
    }
  }
  ExpectFlops({
      // The maximum, subtracted; exp; sum. The logarithm is one a line.
      {"ReduceLogSumExp {axes=[1]}", "f32[3,5]", (3 + kSeries) * 15},
      {"ArgMax {axis=1}", "f32[3,5]", 15},
      {"ArgMin {axis=0}", "f32[3,5]", 15},
      {"TopK {axis=1, k=2}", "f32[3,5]", 15},
  });
}

// Of a softmax: the maximum, subtracted; exp; sum, divided.
TEST(PointwiseCosts, OfSoftmaxAreEightAnElement) {
  constexpr int kSoftmax = 2 + kSeries + 2;
  ExpectFlops({
      {"Softmax", "f32[3,5]", kSoftmax * 15},
      {"Softmax {axis=0}", "f32[3,5]", kSoftmax * 15},
      {"LogSoftmax", "f32[3,5]", kSoftmax * 15},
      // y (dy - sum of y dy): two products, a sum, a subtraction.
      {"SoftmaxGrad", "f32[3,5]; f32[3,5]", 4 * 15},
      // dy - exp(y) sum of dy: exp, a sum, a product, a subtraction.
      {"LogSoftmaxGrad", "f32[3,5]; f32[3,5]", (kSeries + 3) * 15},
      {"Hardmax", "f32[3,5]", 2 * 15},
      {"MaskedSoftmax", "f32[3,5]", kSoftmax * 15},
      {"MaskedSoftmax {causal=1}", "f32[3,5]", kSoftmax * 15},
      {"MaskedSoftmax {scale=1.0}", "f32[3,5]", kSoftmax * 15},
      {"MaskedSoftmax {scale=0.5}", "f32[3,5]", (kSoftmax + 1) * 15},
      {"MaskedSoftmax", "f32[3,5]; f32[5]", (kSoftmax + 1) * 15},
      {"MaskedSoftmax {scale=0.5}", "f32[3,5]; bool[3,5]", (kSoftmax + 2) * 15},
  });
}

// A likelihood a row takes seven a logit: the maximum, subtracted, exp, sum.
TEST(PointwiseCosts, OfLosses) {
  ExpectFlops({
      {"Loss {batch=3}", "f32[3,5]; f32[3,5]", 15},
      {"LossGrad {batch=3}", "f32[3,5]; f32[3,5]", 15},
      {"SumLoss", "f32[3,5]", 0},
      {"SumLossGrad", "f32[3,5]", 0},
      {"CrossEntropy {batch=3}", "f32[3,5]; i64[3]", (3 + kSeries) * 15},
      {"CrossEntropyGrad {batch=3}", "f32[3,5]; i64[3]", (3 + kSeries) * 15},
      {"CrossEntropyParts {parts=2}", "f32[3,6]; i64[3]", (3 + kSeries) * 18},
      // Of the two numbers of each part one goes into the sum.
      {"CrossEntropyOfParts {batch=3}", "f32[3,2,2]; i64[3]", (3 + kSeries) * 6},
      {"CrossEntropyPartsGrad {batch=3}", "f32[3,6]; i64[3]; f32[3,2,2]", (3 + kSeries) * 18},
      {"NegativeLikelihood", "f32[3,5,2]; i64[3,2]; f32[5]", 6},
      {"NegativeLikelihoodGrad {classes=5}", "f32[3,2]; i64[3,2]; f32[5]", 0},
  });
}

// What only moves costs none; what adds up where it goes one an element.
TEST(PointwiseCosts, OfMovementAreTheAdditions) {
  ExpectFlops({
      {"Transpose", "f32[3,5]", 0},
      {"Concat {axis=0}", "f32[3,5]; f32[3,5]", 0},
      {"Pad {axes=[0], before=[1], after=[1]}", "f32[3,5]", 0},
      {"PadGrad {axes=[0], before=[1], after=[1], mode=\"edge\"}", "f32[3,5]", 15},
      {"Tile {axes=[0], repeats=[2]}", "f32[3,5]", 0},
      {"Gather {axis=0}", "f32[9,5]; i64[3]", 0},
      {"GatherGrad {axis=0, size=9}", "i64[3]; f32[3,5]", 15},
      {"GatherElements {axis=0}", "f32[9,5]; i64[3,5]", 0},
      {"GatherElementsGrad {axis=0, size=9}", "i64[3,5]; f32[3,5]", 15},
      {"GatherND", "f32[9,5]; i64[3,1]", 0},
      {"GatherNDGrad {sizes=[9]}", "i64[3,1]; f32[3,5]", 15},
      {"ScatterElements {axis=0}", "f32[9,5]; i64[3,5]; f32[3,5]", 0},
      {"ScatterElements {axis=0, reduction=\"none\"}", "f32[9,5]; i64[3,5]; f32[3,5]", 0},
      {"ScatterElements {axis=0, reduction=\"add\"}", "f32[9,5]; i64[3,5]; f32[3,5]", 15},
      {"ScatterND {reduction=\"max\"}", "f32[9,5]; i64[3,1]; f32[3,5]", 15},
      {"ExtendRowsGrad {earlier=2}", "f32[3,5]", 0},
      {"ExtendRowsGrad {earlier=2, later=1}", "f32[3,5]", 15},
  });
}

// Most ops read all operands and write all results. These do not.
TEST(Bytes, OfWhatReadsAPartOfItsOperands) {
  ExpectBytes({
      // Three rows of five numbers, read and written, and their indices.
      {"Gather {axis=0}", "f32[9,5]; i64[3]", 2 * 15 * 4 + 3 * 8},
      {"Gather {axis=0}", "f16[9,5]; i32[3]", 2 * 15 * 2 + 3 * 4},
      {"GatherElements {axis=0}", "f32[9,5]; i64[3,5]", 2 * 15 * 4 + 15 * 8},
      {"GatherND", "f32[9,5]; i64[3,2]", 2 * 3 * 4 + 6 * 8},
      // Its rows and those of earlier slices are read and written; with later ones sums are read.
      {"ExtendRowsGrad {earlier=2}", "f32[3,5]", 2 * 15 * 4},
      {"ExtendRowsGrad {earlier=2, later=1}", "f16[3,5]", 3 * 15 * 2},
  });
}

}  // namespace
}  // namespace pointwise_cost_test_cc
}  // namespace orrery::ir
