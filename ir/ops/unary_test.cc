#include "ir/ops/unary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/tensor.h"
#include "ir/text/text.h"

namespace orrery::ir {
namespace unary_test_cc {
namespace {

std::vector<const UnaryFunction*> AllFunctions() {
  std::vector<const UnaryFunction*> functions;
  for (int k = 0; k < OpKindCount(); ++k) {
    const UnaryFunction* f = FindUnaryFunction(GetOpInfo(static_cast<OpKind>(k)).name);
    if (f != nullptr) functions.push_back(f);
  }
  return functions;
}

TEST(UnaryFunctions, AreFoundByName) {
  EXPECT_EQ(AllFunctions().size(), 39u);
  EXPECT_EQ(FindUnaryFunction("Tanh")->name, "Tanh");
  EXPECT_EQ(FindUnaryFunction(""), nullptr);
  EXPECT_EQ(FindUnaryFunction("Add"), nullptr);
  EXPECT_EQ(FindUnaryFunction("Zeta"), nullptr);
}

// Points of the domain of each function, away from its kinks.
std::vector<double> PointsOf(absl::string_view name) {
  if (name == "Acosh") return {1.1, 1.7, 4};
  if (name == "Acos" || name == "Asin" || name == "Atanh") return {-0.9, -0.2, 0.1, 0.7};
  if (name == "Log" || name == "Sqrt" || name == "Rsqrt") return {0.1, 0.9, 3};
  return {-4.3, -1.2, -0.3, 0.2, 0.45, 1.3, 3.7};
}

TEST(UnaryFunctions, HaveTheSlopeThatFiniteDifferencesHave) {
  int differentiable = 0;
  for (const UnaryFunction* f : AllFunctions()) {
    if (f->slope == nullptr) continue;
    ++differentiable;
    std::vector<AttributeSet> variants = {{}};
    if (f->name == "Gelu") {
      variants.push_back({{"approximate", std::string("tanh")}});
      variants.push_back({{"approximate", std::string("sigmoid")}});
    }
    if (f->name == "Clip") variants.push_back({{"min", -1.0}, {"max", 0.4}});
    if (f->name == "Celu" || f->name == "Elu") variants.push_back({{"alpha", 0.6}});
    for (const AttributeSet& attributes : variants) {
      const UnaryParameters p = ReadParameters(*f, attributes);
      for (const double x : PointsOf(f->name)) {
        constexpr double kStep = 1e-5;
        const double wanted = (f->value(x + kStep, p) - f->value(x - kStep, p)) / (2 * kStep);
        const double got = f->slope(f->saves_result ? f->value(x, p) : x, p);
        EXPECT_NEAR(got, wanted, 1e-6 * std::max(1.0, std::abs(wanted)))
            << f->name << " at " << x << ToString(attributes);
      }
    }
  }
  EXPECT_EQ(differentiable, 35);
}

// What no gradient flows through says so.
TEST(UnaryFunctions, WithoutASlopePassNoGradient) {
  for (const UnaryFunction* f : AllFunctions()) {
    const OpInfo& info = GetOpInfo(*FindOp(f->name));
    EXPECT_EQ(info.gradient == nullptr, f->slope == nullptr) << f->name;
    EXPECT_EQ((info.no_gradient & 1) != 0, f->slope == nullptr) << f->name;
  }
}

double Value(absl::string_view name, double x, const AttributeSet& attributes = {}) {
  const UnaryFunction& f = *FindUnaryFunction(name);
  return f.value(x, ReadParameters(f, attributes));
}

TEST(UnaryFunctions, HaveKnownValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(Value("Gelu", 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(Value("Gelu", 1, {{"approximate", std::string("tanh")}}), 0.8411919906, 1e-9);
  EXPECT_EQ(Value("Round", 0.5), 0);
  EXPECT_EQ(Value("Round", 1.5), 2);
  EXPECT_EQ(Value("Round", -2.5), -2);
  EXPECT_EQ(Value("Sign", -3), -1);
  EXPECT_EQ(Value("Sign", 0), 0);
  EXPECT_EQ(Value("Softplus", 800), 800);
  EXPECT_EQ(Value("Softplus", -800), 0);
  EXPECT_EQ(Value("Sigmoid", -800), 0);
  EXPECT_EQ(Value("Clip", 7), 7);
  EXPECT_EQ(Value("Clip", 7, {{"max", 6.0}}), 6);
  EXPECT_EQ(Value("Clip", -infinity, {{"min", int64_t{-1}}}), -1);
  EXPECT_EQ(Value("HardSwish", 4), 4);
  EXPECT_EQ(Value("HardSwish", -4), 0);
  EXPECT_EQ(Value("SquaredRelu", 3), 9);
  EXPECT_EQ(Value("SquaredRelu", -3), 0);
  EXPECT_NEAR(Value("HardSigmoid", 1), 0.7, 1e-15);
  EXPECT_EQ(Value("Shrink", 2, {{"lambd", 1.5}, {"bias", 1.5}}), 0.5);
  EXPECT_EQ(Value("ThresholdedRelu", 1), 0);
  EXPECT_NEAR(Value("Selu", -1), -1.1113307378125625, 1e-8);  // constants of ONNX, floats
  EXPECT_NEAR(Value("Mish", 1), 0.8650983882673103, 1e-12);
  EXPECT_TRUE(std::isnan(Value("Clip", std::nan(""), {{"min", 0.0}, {"max", 1.0}})));
}

std::string ErrorOf(absl::string_view op, absl::string_view type, absl::string_view attributes) {
  const auto functions = ParseFunctions(
      absl::StrCat("func @f (%x: ", type, " data, %d: f32[2] data) { %y: ", type, " = ", op,
                   op == "UnaryGrad" ? "(%x, %d) " : "(%x) ", attributes, " return %y: result }"));
  return std::string(functions.status().message());
}

TEST(UnaryFunctions, SayWhatTheyTake) {
  EXPECT_EQ(ErrorOf("Tanh", "i64[2]", ""),
            "f: %y (Tanh): operand 0 is of i64; wanted floating point");
  EXPECT_EQ(ErrorOf("Abs", "bool[2]", ""), "f: %y (Abs): operand 0 is of bool; wanted numbers");
  EXPECT_EQ(ErrorOf("Abs", "i8[2]", ""), "");
  EXPECT_EQ(ErrorOf("UnaryGrad", "f32[2]", "{of=\"Floor\"}"),
            "f: %y (UnaryGrad): of=\"Floor\" is no unary function that has a gradient; wanted one "
            "such as \"Tanh\"");
  EXPECT_EQ(ErrorOf("UnaryGrad", "f32[3]", "{of=\"Sin\"}"),
            "f: %y (UnaryGrad): shapes differ; got [3] and [2]");
}

}  // namespace
}  // namespace unary_test_cc
}  // namespace orrery::ir
