#include "transforms/substitutions/match_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/substitutions/dataflow.h"

namespace orrery::transforms::substitutions {
namespace match_rule_test_cc {
namespace {

// What a function becomes at the first place where the left side of a rule stands; "" where none.
std::string Rewritten(absl::string_view rule, absl::string_view text) {
  const std::vector<Rule> rules = ParseRules(rule).value();
  const ir::Function function = ir::ParseFunction(text).value();
  WorkTable works;
  const Dataflow flow = ToDataflow(function, true, works).value();
  const Direction direction = {.rule = &rules[0]};
  for (const Match& match : Matcher(works, flow).Find(direction, 100)) {
    const auto after = Apply(direction, match, flow, works);
    if (!after.has_value()) continue;
    const ir::Function rewritten = ToFunction(works, *after, function);
    EXPECT_EQ(ir::Verify(rewritten), absl::OkStatus());
    return ir::Print(rewritten);
  }
  return "";
}

constexpr absl::string_view kSideBySide = R"(rule @r (%x: [..,m,k], %u: [k,n], %v: [k,p]) {
  %a = MatMul(%x, %u)
  %b = MatMul(%x, %v)
  return %a, %b
} equals {
  %w = Concat(%u, %v) {axis=-1}
  %y = MatMul(%x, %w)
  %a, %b = Split(%y) {axis=-1, sizes=[n, p]}
  return %a, %b
})";

TEST(MatchRule, JoinsProductsThatReadOneValue) {
  EXPECT_EQ(Rewritten(kSideBySide, R"(func @f (
  %x: f32[2,8,16] data,
  %q: f32[16,4] parameter,
  %k: f32[16,6] parameter
) {
  %y: f32[2,8,4] = MatMul(%x, %q)
  %z: f32[2,8,6] = MatMul(%x, %k)
  %a: f32[2,8,6] = Relu(%z)
  return %y: result, %a: result
})"),
            R"(func @f (
  %x: f32[2,8,16] data,
  %q: f32[16,4] parameter,
  %k: f32[16,6] parameter
) {
  %3: f32[16,10] = Concat(%q, %k) {axis=1}
  %4: f32[2,8,10] = MatMul(%x, %3)
  %y: f32[2,8,4], %z: f32[2,8,6] = Split(%4) {axis=2, sizes=[4, 6]}
  %a: f32[2,8,6] = Relu(%z)
  return %y: result, %a: result
}
)");
}

TEST(MatchRule, DoesNotJoinWhatDependsOnEachOther) {
  EXPECT_EQ(Rewritten(kSideBySide, R"(func @f (
  %x: f32[4,4] data,
  %u: f32[4,4] parameter
) {
  %y: f32[4,4] = MatMul(%x, %u)
  %v: f32[4,4] = Relu(%y)
  %z: f32[4,4] = MatMul(%x, %v)
  return %z: result
})"),
            "");
}

TEST(MatchRule, AttributesThatARuleDoesNotNameAreAsByDefault) {
  const std::string flipped = R"(func @f (
  %x: f32[16,16] data,
  %q: f32[16,16] parameter,
  %k: f32[16,16] parameter
) {
  %y: f32[16,16] = MatMul(%x, %q) {transpose_w=1}
  %z: f32[16,16] = MatMul(%x, %k) {transpose_w=1}
  return %y: result, %z: result
})";
  EXPECT_EQ(Rewritten(kSideBySide, flipped), "");
}

TEST(MatchRule, WholeNumbersAndMixedTypesAreLeftAlone) {
  EXPECT_EQ(Rewritten("rule @r (%x: [..]) { %a = Relu(%x) %b = Relu(%a) return %b } equals { %a = "
                      "Relu(%x) return %a }",
                      "func @f (%x: i32[4] data) { %y: i32[4] = Relu(%x) %z: i32[4] = Relu(%y) "
                      "return %z: result }"),
            "");
}

TEST(MatchRule, SumsMatchInBothOrders) {
  const std::string after = Rewritten(
      "rule @r (%x: [..], %y: [..]) { %a = Relu(%x) %b = Add(%a, %y) return %b } equals { %a = "
      "Relu(%x) %b = Add(%y, %a) %c = Scale(%b) {factor=1.0} return %c }",
      "func @f (%x: f32[4] data, %y: f32[4] data) { %r: f32[4] = Relu(%x) %z: f32[4] = Add(%y, %r) "
      "return %z: result }");
  EXPECT_THAT(after, testing::HasSubstr("Scale"));
}

TEST(Dataflow, OneOfTwoThatComputeTheSameIsLeft) {
  const ir::Function function = ir::ParseFunction(R"(func @f (
  %x: f32[4] data,
  %y: f32[4] data
) {
  %a: f32[4] = Add(%x, %y)
  %b: f32[4] = Add(%y, %x)
  %c: f32[4] = Mul(%a, %b)
  return %c: result
})")
                                    .value();
  WorkTable works;
  const Dataflow flow = ToDataflow(function, true, works).value();
  EXPECT_EQ(flow.op_count(), 2);
  EXPECT_EQ(flow.price.picoseconds(), 2);
  EXPECT_EQ(ir::Print(ToFunction(works, flow, function)), R"(func @f (
  %x: f32[4] data,
  %y: f32[4] data
) {
  %a: f32[4] = Add(%x, %y)
  %c: f32[4] = Mul(%a, %a)
  return %c: result
}
)");
}

TEST(Dataflow, WhatIsRandomOrReturnedTwiceStaysTwo) {
  const ir::Function function = ir::ParseFunction(R"(func @f (
  %x: f32[4] data
) {
  %a: f32[4] = Relu(%x)
  %b: f32[4] = Relu(%x)
  return %a: result, %b: result
})")
                                    .value();
  WorkTable works;
  EXPECT_EQ(ToDataflow(function, true, works).value().op_count(), 2);
}

TEST(Dataflow, WeightsAreFixedOrNot) {
  const ir::Function function = ir::ParseFunction(
                                    "func @f (%x: f32[4] data, %w: f32[4] parameter) { %a: f32[4] "
                                    "= Relu(%w) %b: f32[4] = Add(%x, "
                                    "%a) return %b: result }")
                                    .value();
  WorkTable works;
  EXPECT_EQ(ToDataflow(function, true, works).value().price.picoseconds(), 1);
  EXPECT_EQ(ToDataflow(function, false, works).value().price.picoseconds(), 2);
}

// A match for each size that may be chosen; none where a guard does not hold.
TEST(MatchRule, ChoosesFreeSizes) {
  const std::vector<Rule> rules =
      ParseRules(R"(rule @r (%x: [m,n]) where p below m by 2, n at most 3 {
  %y = Relu(%x)
  return %y
} becomes {
  %a, %b = Split(%x) {axis=0, sizes=[p, m+-1*p]}
  %c = Relu(%a)
  %d = Relu(%b)
  %y = Concat(%c, %d) {axis=0}
  return %y
})")
          .value();
  const auto choices = [&](absl::string_view type) {
    const ir::Function function =
        ir::ParseFunction(absl::StrCat("func @f (%x: ", type, " data) { %y: ", type,
                                       " = Relu(%x) return %y: result }"))
            .value();
    WorkTable works;
    const Dataflow flow = ToDataflow(function, true, works).value();
    std::vector<int64_t> found;
    for (const Match& match : Matcher(works, flow).Find({.rule = &rules[0]}, 100)) {
      EXPECT_TRUE(Apply({.rule = &rules[0]}, match, flow, works).has_value());
      found.push_back(*match.variables.sizes[2]);
    }
    return found;
  };
  ASSERT_EQ(rules[0].sizes[2], "p");
  EXPECT_THAT(choices("f32[7,3]"), testing::ElementsAre(6, 4, 2));
  EXPECT_THAT(choices("f32[2,3]"), testing::IsEmpty());
  EXPECT_THAT(choices("f32[7,4]"), testing::IsEmpty());
  EXPECT_EQ(DirectionsOf(rules).size(), 1U);
}

}  // namespace
}  // namespace match_rule_test_cc
}  // namespace orrery::transforms::substitutions
