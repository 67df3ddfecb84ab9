#include "transforms/substitutions/check_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/execution/execute.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/prove_rule.h"
#include "transforms/substitutions/standard_rules.h"

namespace orrery::transforms::substitutions {
namespace check_rule_test_cc {
namespace {

using testing::HasSubstr;

std::string ErrorOf(absl::string_view text) {
  return std::string(CheckRule(ParseRules(text).value()[0]).message());
}

TEST(CheckRule, RefusesAWrongRuleWithItsCounterexample) {
  const std::string error = ErrorOf(R"(rule @planted (%x: [m], %y: [m]) {
  %r = Relu(%x)
  %s = Relu(%y)
  %t = Add(%r, %s)
  return %t
} equals {
  %s = Add(%x, %y)
  %t = Relu(%s)
  return %t
})");
  EXPECT_THAT(error, testing::StartsWith("rule @planted (line 1): not equal at m="));
  EXPECT_THAT(error, testing::ContainsRegex("%x = f64\\[[0-9]\\] \\[.*\\], %y = f64"));
  EXPECT_THAT(error,
              testing::ContainsRegex(
                  "element [0-9] of result 0 is -?[0-9]+ on the left, -?[0-9]+ on the right"));
}

TEST(CheckRule, RefusesWhatHoldsForSomeSizesAlone) {
  // The parts of a sum may not be of other sizes; those of a product of a matrix with itself not.
  EXPECT_THAT(
      ErrorOf("rule @a (%x: [m,n]) { return %x } becomes { %y = Transpose(%x) {perm=[1, 0]} "
              "return %y }"),
      HasSubstr("not equal at"));
  EXPECT_THAT(ErrorOf("rule @a (%x: [n]) { %y = Scale(%x) {factor=$f} %z = Relu(%y) return %z } "
                      "equals { %y = Relu(%x) %z = Scale(%y) {factor=$f} return %z }"),
              HasSubstr("$f=-"));  // right for factors above 0
}

// Each of these holds for small whole numbers, for small sizes, or for the activation that was
// tried.
TEST(CheckRule, RefusesWhatHoldsWhereDrawsAreNarrow) {
  const auto unary = [](absl::string_view op) {
    return absl::StrCat("rule @a (%x: [m,n]) { %y = ", op, " return %y } becomes { return %x }");
  };
  EXPECT_THAT(ErrorOf(unary("Floor(%x)")),
              testing::ContainsRegex("%x = f64\\[.*\\.[257].*on the left, .*on the right"));
  EXPECT_THAT(ErrorOf(unary("Clip(%x) {max=4, min=-4}")),
              testing::ContainsRegex("is -?4 on the left, -?[0-9.]+ on the right"));
  EXPECT_THAT(ErrorOf(unary("Clip(%x) {max=1000.0, min=-1000.0}")),
              testing::ContainsRegex("is -?1000 on the left, -?[0-9.]+ on the right"));
  EXPECT_THAT(ErrorOf(unary("Roll(%x) {axes=[1], shifts=[60]}")), HasSubstr("not equal at m="));
  // A multiple of all sizes up to 13.
  EXPECT_THAT(ErrorOf(unary("Roll(%x) {axes=[0], shifts=[360360]}")), HasSubstr("not equal at m="));
  EXPECT_THAT(ErrorOf("rule @a (%x: [..]) { %y = Roll(%x) {axes=[0], shifts=[6]} return %y } "
                      "becomes { return %x }"),
              HasSubstr("not equal at ..=["));
}

// Relu lets factors above 0 through, relu6 does not.
constexpr absl::string_view kScaledConv = R"(rule @a (%x: [b,c,h,w], %u: [o,c,r,s]) {
  %y = Scale(%x) {factor=2.0}
  %z = Conv(%y, %u) {activation=$a}
  return %z
} equals {
  %y = Conv(%x, %u) {activation=$a}
  %z = Scale(%y) {factor=2.0}
  return %z
})";

TEST(CheckRule, DrawsAllActivations) {
  EXPECT_THAT(ErrorOf(kScaledConv),
              testing::AllOf(HasSubstr("not equal at"), HasSubstr("$a=\"relu6\"")));
}

TEST(CheckRule, RefusesAttributesThatNobodyReads) {
  EXPECT_EQ(ErrorOf("rule @a (%x: [n]) { %y = Relu(%x) {slope=3} %z = Relu(%y) return %z } becomes "
                    "{ %y = Relu(%x) {slope=3} return %y }"),
            "rule @a (line 1): Relu reads no attribute 'slope'; wanted one that it reads, or none");
  EXPECT_THAT(ErrorOf("rule @a (%x: [n]) { %y = Relu(%x) {slope=$s} return %y } equals { %y = "
                      "Relu(%x) {slope=$s} return %y }"),
              HasSubstr("an attribute is a variable whose values are not known; wanted one of"));
}

TEST(CheckRule, RefusesWhatIsTooLargeToExecute) {
  const auto error = [](absl::string_view shape) {
    return ErrorOf(
        absl::StrCat("rule @a (%x: ", shape,
                     ") { %y = Relu(%x) return %y } equals { %y = Relu(%x) return %y }"));
  };
  for (const absl::string_view shape :
       {"[1000000000*n]", "[4000000000*n,4000000000*n]", "[9223372036854775807+n]"}) {
    EXPECT_THAT(error(shape), HasSubstr("wanted smaller numbers, which can be executed")) << shape;
  }
}

TEST(CheckRule, RefusesWhatCannotBeComputed) {
  EXPECT_EQ(
      ErrorOf(
          "rule @a (%x: [n], %u: [n,n]) { %y = MatMul(%x, %u) return %y } equals { return %x }"),
      "rule @a (line 1): no sizes and attributes were found at which both sides can be computed");
}

TEST(CheckRule, AFileWithAPlantedRuleIsRefused) {
  const std::string path = absl::StrCat(testing::TempDir(), "/planted.rules");
  ASSERT_TRUE(WriteFile(path, absl::StrCat(kGeneratedRules, R"(
rule @planted (%x: [m,k], %u: [k,n], %v: [k,p]) {
  %a = MatMul(%x, %u)
  %b = MatMul(%x, %v)
  return %a, %b
} equals {
  %w = Concat(%v, %u) {axis=1}
  %y = MatMul(%x, %w)
  %a, %b = Split(%y) {axis=1, sizes=[n, p]}
  return %a, %b
})"))
                  .ok());
  const auto rules = LoadRules(absl::StrCat("standard+", path));
  EXPECT_THAT(rules.status().message(), HasSubstr("rule @planted"));
  EXPECT_THAT(rules.status().message(), HasSubstr("not equal at"));
  EXPECT_TRUE(LoadRules("standard").ok());
}

// The outputs of a side by the executor, which shares nothing with the evaluation of rules but the
// records of ops.
std::vector<ir::Tensor> Executed(const WorkTable& works, const Dataflow& side,
                                 const std::vector<ir::Tensor>& inputs) {
  ir::Function like("side");
  ir::NamedTensors named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = absl::StrCat("x", i);
    like.AddInput(name, inputs[i].type(), ir::InputRole::kData);
    named[name] = inputs[i];
  }
  for (size_t i = 0; i < side.outputs.size(); ++i) {
    like.AddOutput({.value = like.inputs()[0].value, .role = ir::OutputRole::kResult, .of = {}});
  }
  return ir::Execute(ToFunction(works, side, like), named).value().outputs;
}

double Difference(const ir::Tensor& a, const ir::Tensor& b) {
  EXPECT_EQ(a.dims(), b.dims());
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double size = std::max({1.0, std::abs(a.Number(i)), std::abs(b.Number(i))});
    most = std::max(most, std::abs(a.Number(i) - b.Number(i)) / size);
  }
  return most;
}

TEST(CheckRule, TwoHundredSamplesAreEqualOnFreshShapes) {
  const std::vector<Rule> rules = LoadRules("standard").value();
  RandomBits random(20261129);  // no seed that rules were checked with
  for (int sample = 0; sample < 200; ++sample) {
    const Rule& rule = rules[random.Next() % rules.size()];
    SCOPED_TRACE(Print(rule));
    WorkTable works;
    const auto variables = DrawVariables(rule, {.most = 7}, random, works);
    ASSERT_TRUE(variables.has_value());
    const RuleSides sides = *SidesOf(rule, *variables, works);
    std::vector<ir::Tensor> inputs;
    for (int32_t i = 0; i < sides.left.inputs; ++i) {
      const ir::TensorType& type = works.type(TypeOf(works, sides.left, {.node = i}));
      inputs.emplace_back(type.dtype, type.dims);
      // Variances are not negative; a rule that is right for these alone is caught by its proof.
      for (double& value : inputs.back().floats()) {
        value = static_cast<double>(random.Between(1, 900)) / 100;
      }
    }
    const auto left = Executed(works, sides.left, inputs);
    const auto right = Executed(works, sides.right, inputs);
    ASSERT_EQ(left.size(), right.size());
    for (size_t i = 0; i < left.size(); ++i) EXPECT_LT(Difference(left[i], right[i]), 1e-9);
  }
}

TEST(CheckRule, AllRulesAndAxiomsHold) {
  for (const absl::string_view text : {kGeneratedRules, kKernelRules, kAxioms}) {
    const std::vector<Rule> rules = ParseRules(text).value();
    for (const Rule& rule : rules) {
      EXPECT_EQ(CheckRule(rule, {.shapes = 20, .seed = 99}), absl::OkStatus());
    }
  }
}

TEST(ProveRule, DerivesWhatARuleClaims) {
  const std::vector<Rule> axioms = ParseRules(kAxioms).value();
  const std::vector<Rule> generated = ParseRules(kGeneratedRules).value();
  for (const Rule& rule : generated) {
    EXPECT_EQ(CheckProof(rule, axioms), absl::OkStatus());
  }
  const auto error = [&](absl::string_view claim) {
    const std::string text = absl::StrCat(
        "rule @a (%x: [m,n]) { %y = Relu(%x) %z = Relu(%y) return %z } equals { %y = Relu(%x) "
        "return %y } checked on 48 shapes, follows from ",
        claim);
    return std::string(CheckProof(ParseRules(text).value()[0], axioms).message());
  };
  EXPECT_EQ(error("relu_of_relu"), "");
  EXPECT_EQ(error("relu_of_relus"),
            "rule @a (line 1): there is no axiom 'relu_of_relus'; wanted one of "
            "data/substitutions/axioms.rules; did you mean relu_of_relu?");
  EXPECT_THAT(error("hope"), HasSubstr("there is no axiom 'hope'; wanted one of data/"));
  EXPECT_THAT(error("relu_of_square"), HasSubstr("does not follow from relu_of_square"));
  EXPECT_EQ(error("relu_of_relu, relu_of_square"),
            "rule @a (line 1): follows from relu_of_relu; wanted it without 'relu_of_square'");
}

// A proof holds for any activation, not for the one that it was looked for with.
TEST(ProveRule, DoesNotProveWhatHoldsForSomeActivations) {
  const std::vector<Rule> axioms = ParseRules(kAxioms).value();
  EXPECT_FALSE(Prove(ParseRules(kScaledConv).value()[0], axioms).has_value());
}

TEST(CheckRules, TellsWhatWasFound) {
  const std::string path = absl::StrCat(testing::TempDir(), "/some.rules");
  const auto told = [&](absl::string_view text) {
    EXPECT_TRUE(WriteFile(path, text).ok());
    const auto line = CheckRules(path, {.shapes = 6});
    return line.ok() ? *line : std::string(line.status().message());
  };
  constexpr absl::string_view kRule =
      "rule @a (%x: [m,n]) { %y = Relu(%x) %z = Relu(%y) return %z } equals { %y = Relu(%x) return "
      "%y }";
  EXPECT_EQ(told(kRule), "1 rule: equal on 6 shapes each, 0 of them follow from axioms\n");
  EXPECT_EQ(told(absl::StrCat(kRule, " checked on 1 shapes, follows from relu_of_relu")),
            "1 rule: equal on 6 shapes each, 1 of them follows from axioms\n");
  EXPECT_THAT(told(absl::StrCat(kRule, " checked on 9 shapes, follows from mul_associative")),
              HasSubstr("some.rules: rule @a (line 1): does not follow from mul_associative"));
  EXPECT_THAT(told("// Nothing.\n"), HasSubstr("some.rules: has no rules; wanted one at least"));
  EXPECT_THAT(LoadRules(path).status().message(), HasSubstr("has no rules"));
}

TEST(ProveRule, DoesNotProveWhatIsWrong) {
  const Rule wrong = ParseRules(
                         "rule @a (%x: [m,k], %u: [k,k]) { %y = MatMul(%x, %u) return %y } "
                         "equals { %y = MatMul(%x, %u) {transpose_w=1} return %y }")
                         .value()[0];
  EXPECT_FALSE(Prove(wrong, ParseRules(kAxioms).value()).has_value());
}

}  // namespace
}  // namespace check_rule_test_cc
}  // namespace orrery::transforms::substitutions
