#include "transforms/substitutions/generate_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/sanitized_test_util.h"
#include "transforms/substitutions/standard_rules.h"

namespace orrery::transforms::substitutions {
namespace generate_rules_test_cc {
namespace {

TEST(GenerateRules, ASmallAlphabet) {
  EXPECT_EQ(GenerateText(R"(alphabet @transposes (%x: [..,m,n]) {
  Transpose(_) {perm=[.., -1, -2]}
  Relu(_)
} up to 2 ops)",
                         kAxioms)
                .value(),
            R"(// Rules that enumeration found: opt --generate-substitutions writes this file.

// @transposes: 7 graphs, 3 equal to another one, 0 of these at some sizes alone, 0 not proven: 3 rules.

rule @transposes_1 (%x: [..,m,n]) {
  %1 = Transpose(%x) {perm=[.., -1, -2]}
  %2 = Transpose(%1) {perm=[.., -1, -2]}
  return %2
} equals {
  return %x
} checked on 48 shapes, follows from transpose_of_transpose

rule @transposes_2 (%x: [..,m,n]) {
  %1 = Relu(%x)
  %2 = Transpose(%1) {perm=[.., -1, -2]}
  return %2
} equals {
  %1 = Transpose(%x) {perm=[.., -1, -2]}
  %2 = Relu(%1)
  return %2
} checked on 48 shapes, follows from transpose_of_relu

rule @transposes_3 (%x: [..,m,n]) {
  %1 = Relu(%x)
  %2 = Relu(%1)
  return %2
} equals {
  %1 = Relu(%x)
  return %1
} checked on 48 shapes, follows from relu_of_relu
)");
}

// Those that take a second and more, maps half a minute.
constexpr absl::string_view kSlow[] = {"concat_channels", "elementwise", "blocks",
                                       "linear",          "maps",        "conv_sum",
                                       "channels",        "groups",      "conv_relu"};

// Whose turn it is: one slow alphabet a day, or that of ORRERY_TURN.
absl::string_view SlowOfThisTurn() {
  const char* const turn = std::getenv("ORRERY_TURN");
  const auto day = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const auto number = turn == nullptr ? static_cast<size_t>(day.time_since_epoch().count())
                                      : static_cast<size_t>(std::strtoull(turn, nullptr, 10));
  std::cout << "slow alphabet: ORRERY_TURN=" << number << "\n";
  return kSlow[number % std::size(kSlow)];
}

// The file is what comes of its alphabets: each by itself, with the rules of those before it.
TEST(GenerateRules, TheFileIsWhatComesOfItsAlphabets) {
  const std::vector<Alphabet> alphabets = ParseAlphabets(kAlphabets).value();
  const std::vector<Rule> axioms = ParseRules(kAxioms).value();
  const absl::string_view slow = SlowOfThisTurn();
  EXPECT_EQ(alphabets.size(), 24U);
  std::vector<size_t> places(alphabets.size());
  std::iota(places.begin(), places.end(), size_t{0});
  for (const size_t i : CasesToWalk(places)) {
    const auto start_of = [&](size_t of) {
      return of == alphabets.size()
                 ? kGeneratedRules.size()
                 : kGeneratedRules.find(absl::StrCat("\n// @", alphabets[of].frame.name, ":"));
    };
    const size_t start = start_of(i), end = start_of(i + 1);
    const std::string& name = alphabets[i].frame.name;
    ASSERT_LT(start, end) << name;
    if (std::ranges::count(kSlow, name) > 0 && name != slow) continue;
    const std::vector<Rule> known = ParseRules(kGeneratedRules.substr(0, start)).value();
    const Generated generated = GenerateRules(alphabets[i], known, axioms).value();
    EXPECT_EQ(SectionOf(alphabets[i], generated), kGeneratedRules.substr(start, end - start));
  }
}

TEST(GenerateRules, FindsProductsSideBySide) {
  const std::string text = GenerateText(R"(alphabet @a (%x: [..,m,k], %u: [k,n], %v: [k,p]) {
  MatMul(_, _)
  Concat(_, _) {axis=-1}
  Split(_) {axis=-1, sizes=[n, p]}
} up to 3 ops)",
                                        kAxioms)
                               .value();
  EXPECT_THAT(text, testing::HasSubstr(R"(  %1 = Concat(%u, %v) {axis=-1}
  %2 = MatMul(%x, %1)
  %3, %4 = Split(%2) {axis=-1, sizes=[n, p]}
)"));
}

TEST(GenerateRules, SaysWhenItIsTooMuch) {
  const std::vector<Alphabet> alphabets =
      ParseAlphabets("alphabet @a (%x: [..], %y: [..]) { Add(_, _) Mul(_, _) } up to 9 ops")
          .value();
  EXPECT_THAT(GenerateRules(alphabets[0], {}, {}, {.most_graphs = 100}).status().message(),
              testing::HasSubstr("alphabet @a: more than 100 graphs"));
}

TEST(GenerateRules, SaysWhenNothingIsTaken) {
  EXPECT_EQ(
      GenerateText("alphabet @a (%x: [n]) { MatMul(_, _) } up to 2 ops", "").status().message(),
      "alphabet @a: no op takes any of the inputs");
  EXPECT_THAT(GenerateText("alphabet @a (%x: [n]) { Softmax(_) {axis=$q} } up to 2 ops", "")
                  .status()
                  .message(),
              testing::HasSubstr("an attribute is a variable whose values are not known"));
  EXPECT_EQ(GenerateText("// Nothing.\n", "").status().message(),
            "has no alphabets and no mutants; wanted one at least");
}

}  // namespace
}  // namespace generate_rules_test_cc
}  // namespace orrery::transforms::substitutions
