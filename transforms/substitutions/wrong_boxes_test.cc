#include "transforms/substitutions/wrong_boxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/type.h"
#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/rule.h"

namespace orrery::transforms::substitutions {
namespace wrong_boxes_test_cc {
namespace {

// Boxes of a picture of rows: '.' is right, 'x' wrong, ' ' nothing. "-2: [0,2) x, [2,3)".
std::string BoxesOf(absl::string_view picture) {
  const std::vector<std::string> rows = absl::StrSplit(picture, '|');
  std::vector<Element> elements;
  for (const char each : absl::StrCat(picture)) {
    if (each == '.') elements.push_back(Element::kRight);
    if (each == 'x') elements.push_back(Element::kWrong);
    if (each == ' ') elements.push_back(Element::kNone);
  }
  const auto boxes = FindBoxes(
      elements, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())});
  if (!boxes.has_value()) return "?";
  std::string text;
  for (const AxisRuns& axis : *boxes) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", axis.axis, ":");
    for (const AxisRun& run : axis.runs) {
      absl::StrAppend(&text, " ", run.begin, "-", run.end, run.wrong ? "x" : "");
    }
  }
  return text;
}

TEST(WrongBoxes, StandAlongTheAxisThatKeepsTheMost) {
  EXPECT_EQ(BoxesOf("...|..."), "");
  EXPECT_EQ(BoxesOf("xxx|...|..."), "-2: 0-1x 1-3");
  EXPECT_EQ(BoxesOf("x..x|x..x|x..x"), "-1: 0-1x 1-3 3-4x");
  EXPECT_EQ(BoxesOf("....|...x|...x|...."), "-1: 0-3 3-4x");  // not all of the box is wrong
  EXPECT_EQ(BoxesOf("xx|xx"), "-2: 0-2x");
  EXPECT_EQ(BoxesOf("x.|.x"), "-2: 0-2x");  // nothing can be kept
}

TEST(WrongBoxes, StandAlongSeveralAxes) {
  EXPECT_EQ(BoxesOf("xxxx|xx..|xx..|xx..|xxxx"), "-2: 0-1x 1-4 4-5x; -1: 0-2x 2-4");
}

TEST(WrongBoxes, TakeAGapOfOne) {
  EXPECT_EQ(BoxesOf("x.x...|x.x...|x.x..."), "-1: 0-3x 3-6");
  EXPECT_EQ(BoxesOf("x..x...|x..x..."), "-1: 0-1x 1-3 3-4x 4-7");
}

// Padding alone says nothing: the rows of the picture are wrong, not those of its columns that
// show.
TEST(WrongBoxes, SeeNothingInPadding) {
  EXPECT_EQ(BoxesOf(" xx | .. | .. "), "-2: 0-1x 1-3");
  EXPECT_EQ(BoxesOf("    | xx | .. "), "?");
  EXPECT_EQ(BoxesOf("   |...|..."), "?");
}

// Rows of a product, where the mutant has the first p alone, and one that is wrong in its columns.
TEST(WrongBoxes, AreWhereBothSidesDiffer) {
  const std::vector<Rule> mutants = ParseMutants(R"(
mutant @rows (%x: [m,k], %w: [k,n]) where p below m by 1 {
  %y = MatMul(%x, %w)
  return %y
} nearly {
  %a, %b = Split(%x) {axis=0, sizes=[p, m+-1*p]}
  %y = MatMul(%a, %w)
  return %y
}
mutant @columns (%x: [m,k], %w: [k,n]) where p below n by 1 {
  %y = MatMul(%x, %w)
  return %y
} nearly {
  %a, %b = Split(%w) {axis=1, sizes=[p, n+-1*p]}
  %c = Scale(%b) {factor=2.0}
  %d = Concat(%a, %c) {axis=1}
  %y = MatMul(%x, %d)
  return %y
}
mutant @other (%x: [m,k], %w: [k,n]) {
  %y = MatMul(%x, %w)
  return %y
} nearly {
  %y = MatMul(%w, %x) {transpose_w=1, transpose_x=1}
  return %y
})")
                                        .value();
  RandomBits random(1);
  WorkTable works;
  Variables variables = NoVariables(mutants[0]);
  variables.leading.emplace();
  variables.sizes = {5, 3, 4, 2};  // m, k, n, p
  const auto rows = Sample(mutants[0], variables, random, works);
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->Pattern(), "-2:RW");
  EXPECT_EQ((*rows->boxes)[0].runs,
            (std::vector<AxisRun>{{.begin = 0, .end = 2}, {.begin = 2, .end = 5, .wrong = true}}));
  EXPECT_EQ(rows->mutant_dims, (ir::Dims{2, 4}));
  const auto columns = Sample(mutants[1], variables, random, works);
  EXPECT_EQ(columns->Pattern(), "-1:RW");
  variables.sizes = {5, 3, 4};
  EXPECT_FALSE(Sample(mutants[2], variables, random, works).has_value());  // more columns
}

}  // namespace
}  // namespace wrong_boxes_test_cc
}  // namespace orrery::transforms::substitutions
