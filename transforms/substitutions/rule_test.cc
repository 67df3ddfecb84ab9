#include "transforms/substitutions/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/substitutions/standard_rules.h"

namespace orrery::transforms::substitutions {
namespace rule_test_cc {
namespace {

constexpr absl::string_view kColumns =
    R"(rule @columns (%x: [..,m,k], %u: [k,n], %v: [k,2*p+1]) {
  %1 = MatMul(%x, %u)
  %2 = MatMul(%x, %v) {transpose_x=0}
  return %1, %2
} equals {
  %1 = Concat(%u, %v) {axis=-1}
  %2 = MatMul(%x, %1)
  %3, %4 = Split(%2) {axis=-1, sizes=[n, 2*p+1]}
  return %3, %4
} checked on 48 shapes, follows from one, another
)";

TEST(Rule, PrintsWhatItParses) {
  const std::vector<Rule> rules = ParseRules(kColumns).value();
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(Print(rules[0]), kColumns);
  EXPECT_EQ(rules[0].proof.shapes, 48);
  EXPECT_THAT(rules[0].proof.axioms, testing::ElementsAre("one", "another"));
}

TEST(Rule, AllThatComeWithOrreryRoundTrip) {
  for (const absl::string_view text : {kGeneratedRules, kKernelRules, kMutantRules, kAxioms}) {
    const std::vector<Rule> rules = ParseRules(text).value();
    EXPECT_GT(rules.size(), 10U);
    for (const Rule& rule : rules) {
      const std::string printed = Print(rule);
      EXPECT_EQ(Print(ParseRules(printed).value().front()), printed);
    }
  }
}

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseRules(text).status().message());
}

TEST(Rule, SaysWhereATextIsWrong) {
  EXPECT_EQ(ErrorOf("rul"), "1:1: found 'rul', wanted 'rule'");
  EXPECT_EQ(ErrorOf("rule @a (%x: [n]) { %y = Relu(%z) return %y } equals { return %x }"),
            "1:31: found 'z', wanted a value that stands above");
  EXPECT_EQ(ErrorOf("rule @a (%x: [n]) { %x = Relu(%x) return %x } equals { return %x }"),
            "1:21: there is a %x already; wanted another name");
  EXPECT_EQ(ErrorOf("rule @a (%x: [n]) { return %x } equals { return %x, %x }"),
            "1:40: the sides return 1 and 2 values; wanted as many");
  EXPECT_EQ(ErrorOf("rule @a (%x: [n]) { return %x } is"),
            "1:33: found 'is', wanted 'equals' or "
            "'becomes'");
  EXPECT_THAT(ErrorOf("rule @a (%x: [n]) { %y = Constant() return %y } equals { return %x }"),
              testing::HasSubstr("wanted an op whose types and values follow from its operands"));
  EXPECT_EQ(ErrorOf(absl::StrCat(kColumns, kColumns)),
            "11:1: there are two rules @columns; wanted one");
}

TEST(Rule, UnifiesSizesWithOneUnknown) {
  const Rule rule =
      ParseRules("rule @a (%x: [2*n+1], %y: [n*m]) { return %x } equals { return %x }").value()[0];
  Variables variables = NoVariables(rule);
  EXPECT_FALSE(Unify(rule.inputs[0].dims[0], 8, variables));   // 2n + 1 is odd
  EXPECT_FALSE(Unify(rule.inputs[1].dims[0], 12, variables));  // two unknowns
  EXPECT_TRUE(Unify(rule.inputs[0].dims[0], 7, variables));
  EXPECT_EQ(variables.sizes[0], 3);
  EXPECT_FALSE(Unify(rule.inputs[0].dims[0], 9, variables));
  EXPECT_EQ(Evaluate(rule.inputs[0].dims[0], variables), 7);
}

// Such a size would be divided by.
TEST(Rule, NothingIsZeroTimesASize) {
  const auto rule = [](absl::string_view dim) {
    return absl::StrCat("rule @a (%x: [b,", dim, "]) { return %x } equals { return %x }");
  };
  EXPECT_EQ(ErrorOf(rule("0*q+4")),
            "1:17: found 0 times a size, which says nothing of it; wanted another factor");
  EXPECT_THAT(ErrorOf(rule("3*q*0")), testing::HasSubstr("found 0 times a size"));
  Variables variables;
  variables.sizes.resize(1);
  EXPECT_FALSE(Unify(Expression{.terms = {{.factor = 0, .variables = {0}}}}, 4, variables));
}

TEST(Rule, NumbersHave64Bits) {
  const auto rule = [](absl::string_view dim) {
    return absl::StrCat("rule @a (%x: [", dim, "]) { return %x } equals { return %x }");
  };
  EXPECT_EQ(ErrorOf(rule("n*99999999999999999999")),
            "1:17: found 99999999999999999999, wanted a number of 64 bits");
  EXPECT_EQ(ErrorOf(rule("4000000000*4000000000*n")),
            "1:15: the product of its numbers has more than 64 bits; wanted smaller ones");
  EXPECT_EQ(ErrorOf(rule("3x")), "1:15: found '3x', wanted a size, such as 3 or n");
  const Rule large = ParseRules(rule("4000000000*n*m+n")).value()[0];
  const Expression& dim = large.inputs[0].dims[0];
  Variables variables = NoVariables(large);
  variables.sizes = {4'000'000'000, 4'000'000'000};
  EXPECT_FALSE(Evaluate(dim, variables).has_value());
  EXPECT_FALSE(Unify(dim, 7, variables));
  const Rule least = ParseRules(rule("-1*n")).value()[0];
  variables = NoVariables(least);
  EXPECT_FALSE(Unify(least.inputs[0].dims[0], std::numeric_limits<int64_t>::min(), variables));
  EXPECT_TRUE(Unify(least.inputs[0].dims[0], -7, variables));
  EXPECT_EQ(variables.sizes[0], 7);
}

TEST(Rule, LeadingDimensionsAreTheSameEverywhere) {
  const Rule rule =
      ParseRules("rule @a (%x: [..,n], %y: [..]) { return %x } equals { return %x }").value()[0];
  Variables variables = NoVariables(rule);
  EXPECT_TRUE(UnifyDims(rule.inputs[0], {2, 3, 5}, variables));
  EXPECT_FALSE(UnifyDims(rule.inputs[1], {2, 4}, variables));
  EXPECT_TRUE(UnifyDims(rule.inputs[1], {2, 3}, variables));
}

// To the bit, and as what they were read as.
TEST(Rule, RealNumbersReadBack) {
  for (const char* real : {"1.0e30", "2.5e-07", "0.1234567890123456", "3.0", "1.0e-300"}) {
    const std::string text = absl::StrCat("rule @a (%x: [n]) {\n  %1 = Scale(%x) {factor=", real,
                                          "}\n  return %1\n} becomes {\n  return %x\n}\n");
    const auto rules = ParseRules(text);
    ASSERT_TRUE(rules.ok()) << rules.status();
    EXPECT_EQ(Print(rules->front()), text);
  }
}

TEST(Rule, AProofHasShapes) {
  const auto proof = [](absl::string_view shapes) {
    return ErrorOf(absl::StrCat("rule @a (%x: [n]) { return %x } becomes { return %x } checked on ",
                                shapes, " shapes"));
  };
  for (const char* shapes : {"-3", "0", "4x", "99999999999"}) {
    EXPECT_EQ(proof(shapes),
              absl::StrCat("1:66: found '", shapes, "', wanted a number of shapes of at least 1"));
  }
}

TEST(Rule, SaysWhatSizesHaveToBe) {
  constexpr absl::string_view kParts =
      R"(rule @parts (%x: [m,k]) where p below m+k by 128, k+1 at most 2*m, 3 at most k {
  return %x
} becomes {
  %1, %2 = Split(%x) {axis=0, sizes=[p, m+-1*p]}
  return %x
}
)";
  const Rule rule = ParseRules(kParts).value()[0];
  EXPECT_EQ(Print(rule), kParts);
  ASSERT_EQ(rule.free_sizes.size(), 1U);
  Variables variables = NoVariables(rule);
  const auto allowed = [&](int64_t m, int64_t k, int64_t p) {
    variables.sizes = {m, k, p};
    return AreAllowed(rule, variables);
  };
  EXPECT_TRUE(allowed(4, 3, 6));
  EXPECT_FALSE(allowed(4, 3, 7));  // p is not below m + k
  EXPECT_FALSE(allowed(4, 3, 0));
  EXPECT_FALSE(allowed(4, 8, 6));
  EXPECT_FALSE(allowed(4, 2, 5));
  variables.sizes[1].reset();
  EXPECT_FALSE(AreAllowed(rule, variables));
}

TEST(Rule, FreeSizesAreMultiplesBelowTheirBound) {
  const FreeSize p = {.size = 1, .below = {.terms = {{.variables = {0}}}}, .step = 128};
  const auto choices = [&](int64_t m) {
    return ChoicesFor(p, {.sizes = {m, {}}, .attributes = {}, .leading = {}});
  };
  EXPECT_THAT(choices(128), testing::IsEmpty());
  EXPECT_THAT(choices(129), testing::ElementsAre(128));
  EXPECT_THAT(choices(513), testing::ElementsAre(512, 384, 256, 128));
  EXPECT_EQ(choices(1'000'000).size(), 32U);
  EXPECT_EQ(choices(1'000'000)[0], 999'936);
  EXPECT_THAT(ChoicesFor(p, {.sizes = {{}, {}}, .attributes = {}, .leading = {}}),
              testing::IsEmpty());
}

TEST(Rule, SaysWhereConditionsAreWrong) {
  const auto rule = [](absl::string_view where) {
    return ErrorOf(
        absl::StrCat("rule @a (%x: [m]) where ", where, " { return %x } becomes { return %x }"));
  };
  EXPECT_EQ(rule("m"), "1:27: found '{', wanted 'at most' or 'below'");
  EXPECT_EQ(rule("m at least 3"), "1:30: found 'least', wanted 'most'");
  EXPECT_EQ(rule("p below q by 1, q below m by 1"),
            "1:41: 'q' is in a bound that stands before its own; wanted one bound, by sizes that "
            "stand before it");
  EXPECT_EQ(rule("q below m by 1, p below q by 1, q below 8 by 1"),
            "1:57: 'q' is bounded twice; wanted one bound, by sizes that stand before it");
  EXPECT_EQ(rule("p below p by 1"),
            "1:25: 'p' is in a bound that stands before its own; wanted one bound, by sizes that "
            "stand before it");
  EXPECT_EQ(rule("q below m by 1, p below q by 1"), "");
  EXPECT_EQ(rule("m+p below m by 2"),
            "1:25: found a sum or a product, wanted one size before 'below'");
  EXPECT_EQ(rule("p below m"), "1:35: found '{', wanted 'by'");
  EXPECT_EQ(rule("p below m by 0"), "1:38: found '0', wanted a number of at least 1");
  EXPECT_EQ(ErrorOf("rule @a (%x: [m]) { return %x } nearly { return %x }"),
            "1:33: found 'nearly', wanted 'equals' or 'becomes'");
  EXPECT_EQ(ParseMutants("mutant @a (%x: [m]) { return %x } becomes").status().message(),
            "1:35: found 'becomes', wanted 'nearly'");
}

TEST(Rule, ReadsAlphabets) {
  const std::vector<Alphabet> alphabets =
      ParseAlphabets("alphabet @a (%x: [n]) { Add(_, _) Scale(_) {factor=$f} } up to 3 ops")
          .value();
  ASSERT_EQ(alphabets.size(), 1U);
  EXPECT_EQ(alphabets[0].most_ops, 3);
  EXPECT_EQ(alphabets[0].frame.left.ops.size(), 2U);
  EXPECT_EQ(alphabets[0].frame.left.ops[0].operands.size(), 2U);
  EXPECT_EQ(ParseAlphabets("alphabet @a (%x: [n]) { Add(_, _) } up to ops").status().message(),
            "1:43: found 'ops', wanted a number of ops of at least 1");
}

}  // namespace
}  // namespace rule_test_cc
}  // namespace orrery::transforms::substitutions
