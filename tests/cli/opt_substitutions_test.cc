#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// Rules and the pass `substitute` as a user runs them.

namespace orrery::cli {
namespace opt_substitutions_test_cc {
namespace {

using testing::HasSubstr;

constexpr char kCell[] = R"(func @cell (
  %x: f32[3,8] data, %h: f32[3,5] data, %w: f32[8,4] parameter, %u: f32[5,4] parameter
) {
  %a: f32[3,4] = MatMul(%x, %w)
  %b: f32[3,4] = MatMul(%h, %u)
  %s: f32[3,4] = Add(%a, %b)
  return %s: result
})";

constexpr char kRule[] =
    "rule @a (%x: [m,n]) { %y = Relu(%x) %z = Relu(%y) return %z } equals { %y = Relu(%x) return "
    "%y }";

// JSON has no comments: what passes say stands on standard error.
TEST(OptSubstitutions, JsonIsAllOfTheOutput) {
  Clear();
  Write("cell.orr", kCell);
  for (const char* what : {"--summary", "--kernels"}) {
    const Finished finished =
        Execute(absl::StrCat("opt cell.orr --passes substitute --json ", what));
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_FALSE(nlohmann::json::parse(finished.out, nullptr, false).is_discarded())
        << finished.out;
    EXPECT_THAT(finished.err, HasSubstr("substitute: kernels   3 -> 2\n"));
    EXPECT_THAT(Execute(absl::StrCat("opt cell.orr --passes substitute ", what)).out,
                testing::StartsWith("// substitute: kernels   3 -> 2\n"));
  }
}

TEST(OptSubstitutions, SayWhatDoesNotGoTogether) {
  Clear();
  Write("cell.orr", kCell);
  Write("some.rules", kRule);
  for (const auto& [flags, why] : std::vector<std::pair<std::string, std::string>>{
           {"--check-substitutions --generate-substitutions",
            "--generate-substitutions, --check-substitutions: each prints something else; wanted "
            "one of them"},
           {"--check-substitutions --list-passes", "wanted one of them"},
           {"cell.orr --summary --kernels", "--summary, --kernels: each prints something else"},
           {"some.rules --check-substitutions --passes substitute",
            "--check-substitutions: wanted without --passes"},
           {"--list-models --verify-each", "--list-models: wanted without --passes"},
           {"cell.orr --json", "--json: wanted with --summary or --kernels"},
           {"some.rules --check-substitutions --json", "--json: wanted with"},
           {"cell.orr --summary --json --print-after-all --passes simplify",
            "--json, --print-after-all: wanted one of them"},
           {"cell.orr --seed 3", "--seed: wanted with --check-substitutions"},
           {"--check-substitutions --seed -1", "--seed -1: wanted at least 0"},
           {"cell.orr --summary --stages", "--summary: got --stages or a flag of plans"},
           {"cell.orr --passes simplify --step", "--step, --passes: "}}) {
    const Finished finished = Execute("opt " + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "") << flags;
    EXPECT_THAT(finished.err, HasSubstr(why)) << flags;
  }
}

TEST(OptSubstitutions, ChecksRulesOfAFile) {
  Clear();
  const auto checked = [](const std::string& text) {
    Write("some.rules", text);
    return Execute("opt some.rules --check-substitutions --seed 3");
  };
  EXPECT_EQ(checked(kRule).out, "1 rule: equal on 48 shapes each, 0 of them follow from axioms\n");
  EXPECT_THAT(checked(absl::StrCat(kRule, " checked on 48 shapes, follows from mul_over_add")).err,
              HasSubstr("some.rules: rule @a (line 1): does not follow from mul_over_add"));
  EXPECT_THAT(checked(absl::StrCat(kRule, " checked on 48 shapes, follows from faith")).err,
              HasSubstr("some.rules: rule @a (line 1): there is no axiom 'faith'"));
  EXPECT_THAT(checked("").err, HasSubstr("some.rules: has no rules; wanted one at least"));
  EXPECT_THAT(
      checked("rule @a (%x: [b,0*q+4]) { %y = Relu(%x) return %y } equals { return %x }").err,
      HasSubstr("some.rules: 1:17: found 0 times a size"));
}

constexpr char kMutant[] = R"(mutant @rows (%x: [m,k], %w: [k,n]) where p below m by 2 {
  %y = MatMul(%x, %w)
  return %y
} nearly {
  %a, %b = Split(%x) {axis=-2, sizes=[p, m+-1*p]}
  %y = MatMul(%a, %w)
  return %y
})";

// What comes of a mutant is a rule like any other: it is checked, and taken where it pays.
TEST(OptSubstitutions, MakeRulesOfMutants) {
  Clear();
  Write("some.mutants", kMutant);
  const Finished made = Execute("opt some.mutants --generate-substitutions");
  EXPECT_EQ(
      made.out,
      R"(// Mutants with the kernels that correct them, as opt --generate-substitutions makes them of a
// file of mutants, such as nearly.rules.

// @rows: 600 shapes, 1 ways of boxes to stand, 0 of these refused: 1 rule.

rule @rows_1 (%x: [m,k], %w: [k,n]) where p below m by 2 {
  %1 = MatMul(%x, %w)
  return %1
} becomes {
  %1, %2 = Split(%x) {axis=-2, sizes=[p, m+-1*p]}
  %3 = MatMul(%1, %w)
  %4 = MatMul(%2, %w)
  %5 = Concat(%3, %4) {axis=-2}
  return %5
} checked on 48 shapes
)") << made.err;
  Write("some.rules", made.out);
  EXPECT_EQ(Execute("opt some.rules --check-substitutions --seed 9").out,
            "1 rule: equal on 48 shapes each, 0 of them follow from axioms\n");
  EXPECT_THAT(Execute("opt some.mutants --check-substitutions").err,
              HasSubstr("some.mutants: 1:1: found 'mutant', wanted 'rule'"));
  Write("some.mutants", "mutant @a (%x: [m]) { %y = Relu(%x) return %y } nearly { return %x }");
  EXPECT_THAT(Execute("opt some.mutants --generate-substitutions").err,
              HasSubstr("some.mutants: mutant @a (line 1): its original is Relu; wanted Conv or "
                        "MatMul, which are linear in each input"));
  Write("product.orr", R"(func @f (%x: bf16[3457,8192] data, %w: bf16[8192,4096] parameter) {
  %y: bf16[3457,4096] = MatMul(%x, %w)
  return %y: result
})");
  const std::string rules = "opt product.orr --passes substitute{rules=";
  EXPECT_THAT(Execute(rules + "standard}").out, HasSubstr("kernels   1 -> 1\n"));
  EXPECT_THAT(Execute(rules + "standard+mutants}").out,
              HasSubstr("// substitute: rule    1x rows_of_product_1\n"));
}

}  // namespace
}  // namespace opt_substitutions_test_cc
}  // namespace orrery::cli
