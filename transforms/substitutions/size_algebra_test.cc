#include "transforms/substitutions/size_algebra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/rule.h"

namespace orrery::transforms::substitutions {
namespace size_algebra_test_cc {
namespace {

// A rule with sizes h, d and n.
Rule Sizes() {
  return ParseRules("rule @a (%x: [h,d,n]) { return %x } equals { return %x }").value()[0];
}

Expression Size(int32_t variable, int64_t factor = 1) {
  return {.terms = {{.factor = factor, .variables = {variable}}}};
}

TEST(SizeAlgebra, AddsAndMultiplies) {
  const Rule rule = Sizes();
  const Expression sum = AddTimes(AddTimes(Size(0), 2, Size(1)), 1, Whole(-3));
  EXPECT_EQ(Print(rule, sum), "h+2*d+-3");
  EXPECT_EQ(Print(rule, AddTimes(sum, -1, Size(0))), "2*d+-3");
  EXPECT_EQ(Print(rule, Product(sum, AddTimes(Size(0), 1, Whole(1)))), "-2*h+h*h+2*h*d+2*d+-3");
  EXPECT_TRUE(IsZero(AddTimes(sum, -1, sum)));
  EXPECT_FALSE(IsZero(Size(2)));
  EXPECT_EQ(Print(rule, AddTimes(Size(1), -1, Size(1))), "0");
}

TEST(SizeAlgebra, GuardsHaveNothingBelowZero) {
  const Rule rule = Sizes();
  const AtMost guard = Guard(AddTimes(Size(0), -1, Size(1)), AddTimes(Size(1), 1, Whole(-1)));
  EXPECT_EQ(Print(rule, guard.less), "h+1");
  EXPECT_EQ(Print(rule, guard.more), "2*d");
}

// Any sum is found again, and a number that is none is not.
TEST(SizeAlgebra, FitsSumsOfSizes) {
  const Rule rule = Sizes();
  RandomBits random(5);
  for (int attempt = 0; attempt < 50; ++attempt) {
    Expression sum = Whole(random.Between(-3, 3));
    for (int32_t v = 0; v < 3; ++v) sum = AddTimes(sum, random.Between(-2, 2), Size(v));
    std::vector<Variables> draws(12, NoVariables(rule));
    std::vector<const Variables*> all;
    std::vector<int64_t> values, squares;
    for (Variables& draw : draws) {
      for (auto& size : draw.sizes) size = random.Between(1, 9);
      all.push_back(&draw);
      values.push_back(Evaluate(sum, draw).value());
      squares.push_back(*draw.sizes[0] * *draw.sizes[0] + values.back());
    }
    EXPECT_EQ(FitSizes(all, values), sum) << Print(rule, sum);
    EXPECT_EQ(FitSizes(all, squares), std::nullopt) << Print(rule, sum);
  }
  EXPECT_EQ(FitSizes({}, {}), std::nullopt);
}

// Where two sizes are always the same, the first says it.
TEST(SizeAlgebra, FitsWithTheFewestSizes) {
  const Rule rule = Sizes();
  std::vector<Variables> draws(6, NoVariables(rule));
  std::vector<const Variables*> all;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 6; ++i) {
    Variables& draw = draws[static_cast<size_t>(i)];
    draw.sizes = {i + 2, i + 2, 7};
    all.push_back(&draw);
    values.push_back(2 * i + 4);
  }
  EXPECT_EQ(Print(rule, FitSizes(all, values).value()), "2*h");
}

}  // namespace
}  // namespace size_algebra_test_cc
}  // namespace orrery::transforms::substitutions
