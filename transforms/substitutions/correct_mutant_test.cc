#include "transforms/substitutions/correct_mutant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/op_kind.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "transforms/substitutions/check_rule.h"
#include "transforms/substitutions/correction.h"
#include "transforms/substitutions/size_algebra.h"
#include "transforms/substitutions/standard_rules.h"

namespace orrery::transforms::substitutions {
namespace correct_mutant_test_cc {
namespace {

using testing::HasSubstr;

constexpr absl::string_view kMiddleRow = R"(mutant @m (%x: [b,c,h,w], %u: [o,c,3,s]) {
  %y = Conv(%x, %u) {dilations=[d,e], pads=[d,p,d,q]}
  return %y
} nearly {
  %t, %v, %z = Split(%u) {axis=2, sizes=[1,1,1]}
  %y = Conv(%x, %v) {dilations=[d,e], pads=[0,p,0,q]}
  return %y
})";

Rule Mutant(absl::string_view text) { return ParseMutants(text).value()[0]; }

TEST(CorrectMutant, FindsBoxesAndCorrectsThem) {
  const CorrectedMutant corrected = CorrectMutant(Mutant(kMiddleRow)).value();
  EXPECT_THAT(corrected.refused, testing::IsEmpty());
  ASSERT_EQ(corrected.rules.size(), 4U);
  EXPECT_EQ(corrected.rules[3].name, "m_2_with_bias");
  EXPECT_EQ(Print(corrected.rules[2]),
            R"(rule @m_2 (%x: [b,c,h,w], %u: [o,c,3,s]) where h+1 at most 2*d, d+1 at most h {
  %1 = Conv(%x, %u) {dilations=[d, e], pads=[d, p, d, q]}
  return %1
} becomes {
  %1, %2, %3 = Split(%u) {axis=2, sizes=[1, 1, 1]}
  %4 = Conv(%x, %u) {dilations=[d, e], pads=[d, p, 0, q]}
  %5, %6, %7 = Split(%x) {axis=2, sizes=[h+-1*d, -1*h+2*d, h+-1*d]}
  %8 = Conv(%6, %2) {dilations=[d, e], pads=[0, p, 0, q]}
  %9 = Conv(%x, %u) {dilations=[d, e], pads=[0, p, d, q]}
  %10 = Concat(%4, %8, %9) {axis=2}
  return %10
} checked on 48 shapes
)");
}

TEST(CorrectMutant, TheFileIsWhatComesOfItsMutants) {
  const std::string mutants =
      ReadFile(absl::StrCat(SourceDir(), "/data/substitutions/nearly.rules")).value();
  EXPECT_EQ(GenerateMutants(mutants).value(), kMutantRules);
}

// At other shapes than those with which they were made.
TEST(CorrectMutant, RulesHoldAtOtherShapes) {
  for (const uint64_t seed : {11U, 12U}) {
    EXPECT_THAT(CheckRules("mutants", {.shapes = 96, .seed = seed}).value(),
                HasSubstr("equal on 96 shapes each, 0 of them follow"));
  }
}

// What of a rule may be wrong, one thing at a time: all are refused with a counterexample.
TEST(CorrectMutant, AWrongCorrectionIsRefused) {
  const CorrectedMutant corrected = CorrectMutant(Mutant(kMiddleRow)).value();
  const std::string right = Print(corrected.rules[2]);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"Concat(%4, %8, %9)", "Concat(%9, %8, %4)"},
           {"pads=[d, p, 0, q]", "pads=[d+-1, p, 1, q]"},
           {"Conv(%6, %2)", "Conv(%6, %3)"},
           {"Conv(%6, %2)", "Conv(%6, %1)"},
           {"[h+-1*d, -1*h+2*d, h+-1*d]", "[h+-1*d+-1, -1*h+2*d, h+-1*d+1]"}}) {
    const std::string wrong = absl::StrReplaceAll(right, {{from, to}});
    ASSERT_NE(wrong, right) << from;
    EXPECT_THAT(std::string(CheckRule(ParseRules(wrong).value()[0]).message()),
                HasSubstr("rule @m_2 (line 1): "))
        << from << " -> " << to;
  }
  EXPECT_EQ(CheckRule(ParseRules(right).value()[0]), absl::OkStatus());
  const std::string wide =
      absl::StrReplaceAll(Print(corrected.rules[0]), {{"h at most d", "h at most d+1"}});
  EXPECT_THAT(std::string(CheckRule(ParseRules(wide).value()[0]).message()),
              HasSubstr("rule @m_1 (line 1): not equal at b="));
}

// A box that is a row too small leaves one that is wrong.
TEST(CorrectMutant, ABoxThatIsTooSmallIsRefused) {
  const Rule mutant = Mutant(R"(mutant @rows (%x: [m,k], %w: [k,n]) where p below m by 128 {
  %y = MatMul(%x, %w)
  return %y
} nearly {
  %a, %b = Split(%x) {axis=-2, sizes=[p, m+-1*p]}
  %c = Scale(%b) {factor=-1.0}
  %d = Concat(%a, %c) {axis=-2}
  %y = MatMul(%d, %w)
  return %y
})");
  const std::vector<std::string>& names = mutant.sizes;
  const auto size = [&](absl::string_view name) {
    const auto at = std::ranges::find(names, name) - names.begin();
    return Expression{.terms = {{.variables = {static_cast<int32_t>(at)}}}};
  };
  Variables draw = NoVariables(mutant);
  draw.sizes = {5, 3, 4, 2};
  for (const int64_t late : {0, 1}) {
    const Expression border = AddTimes(size("p"), 1, Whole(late));
    const SizedBoxes boxes = {
        .axes = {{.axis = -2,
                  .runs = {{.begin = Whole(0), .end = border, .wrong = false},
                           {.begin = border, .end = size("m"), .wrong = true}},
                  .mutant_size = size("m")}},
        .draws = {&draw}};
    Rule rule = Correct(mutant, boxes).value();
    rule.guards.push_back(Guard(AddTimes(border, 1, Whole(1)), size("m")));
    const absl::Status status = CheckRule(rule);
    EXPECT_EQ(status.ok(), late == 0);
    const std::string wanted = late == 0 ? "" : "rule @rows (line 1): not equal at m=";
    EXPECT_THAT(std::string(status.message()), HasSubstr(wanted));
  }
}

TEST(CorrectMutant, WhatIsNowhereRightHasNoRule) {
  const CorrectedMutant corrected = CorrectMutant(Mutant(R"(mutant @a (%x: [m,k], %w: [k,n]) {
  %y = MatMul(%x, %w)
  return %y
} nearly {
  %v = Scale(%w) {factor=2.0}
  %y = MatMul(%x, %v)
  return %y
})"))
                                        .value();
  EXPECT_EQ(corrected.regimes, 0);
  EXPECT_THAT(corrected.rules, testing::IsEmpty());
}

// Every second row is wrong: no box, and no sum of sizes, says which.
TEST(CorrectMutant, SaysWhyARegimeHasNoRule) {
  const CorrectedMutant corrected = CorrectMutant(Mutant(R"(mutant @a (%x: [..,m,k], %w: [k,n]) {
  %y = MatMul(%x, %w)
  return %y
} nearly {
  %v = Slice(%x) {axes=[-2], ends=[m], starts=[0], steps=[2]}
  %y = MatMul(%v, %w)
  return %y
})"))
                                        .value();
  ASSERT_FALSE(corrected.refused.empty());
  EXPECT_THAT(corrected.refused,
              testing::Contains(HasSubstr("[-2:RW] its borders are no sums of sizes")));
}

TEST(CorrectMutant, SaysWhatCannotBeCorrected) {
  const auto error = [](absl::string_view original) {
    const std::string text = absl::StrCat("mutant @a (%x: [b,c,h,w], %u: [o,c,r,s]) { ", original,
                                          " return %y } nearly { %y = Conv(%x, %u) return %y }");
    return std::string(CorrectMutant(Mutant(text)).status().message());
  };
  EXPECT_EQ(error("%y = Relu(%x)"),
            "mutant @a (line 1): its original is Relu; wanted Conv or MatMul, which are linear in "
            "each input");
  EXPECT_EQ(error("%z = Relu(%x) %y = Conv(%z, %u)"),
            "mutant @a (line 1): its original has 2 ops and returns 1 values; wanted one op, whose "
            "result it returns");
  EXPECT_EQ(error("%y = Conv(%x, %u) {strides=$s}"),
            "mutant @a (line 1): its original has any strides; wanted a list of sizes, by which "
            "boxes are cut");
  EXPECT_EQ(error("%y = Conv(%u, %x)"),
            "mutant @a (line 1): its image is not the first input; wanted the image first");
  EXPECT_THAT(std::string(CorrectMutant(Mutant("mutant @a (%x: [m,k], %w: [k,n]) { %y = MatMul(%x, "
                                               "%w) return %y } nearly { %y = Unsqueeze(%x) "
                                               "{axes=[0]} return %y }"))
                              .status()
                              .message()),
              HasSubstr("mutant @a (line 1): no sizes were found"));
  // At once, too, of what nothing can execute.
  EXPECT_THAT(
      std::string(
          CorrectMutant(Mutant("mutant @a (%x: [m,k], %w: [k,n]) { %y = MatMul(%x, %w) return %y } "
                               "nearly { %p = Pad(%x) {axes=[0], before=[100000000], after=[0]} "
                               "%z = MatMul(%p, %w) %a, %y = Split(%z) "
                               "{axis=0, sizes=[100000000,m]} return %y }"))
              .status()
              .message()),
      HasSubstr("are small enough to be executed"));
}

}  // namespace
}  // namespace correct_mutant_test_cc
}  // namespace orrery::transforms::substitutions
