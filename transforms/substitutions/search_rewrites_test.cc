#include "transforms/substitutions/search_rewrites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/standard_rules.h"

namespace orrery::transforms::substitutions {
namespace search_rewrites_test_cc {
namespace {

// Costs may go up on the way: without backtracking a rewrite that pays later is not found.
TEST(SearchRewrites, AlphaTakesWhatPaysLater) {
  const std::vector<Rule> rules =
      ParseRules(
          R"(rule @up (%x: [n]) { %a = Relu(%x) return %a } becomes { %a = Relu(%x) %b = Relu(%a)
        return %b }
        rule @down (%x: [n]) { %a = Tanh(%x) %b = Relu(%a) %c = Relu(%b) return %c } becomes {
        %a = Sigmoid(%x) return %a })")
          .value();
  const ir::Function function = ir::ParseFunction(
                                    "func @f (%x: f32[4] data) { %y: f32[4] = Tanh(%x) %z: f32[4] "
                                    "= Relu(%y) return %z: result }")
                                    .value();
  WorkTable works;
  const Dataflow flow = ToDataflow(function, true, works).value();
  EXPECT_EQ(SearchRewrites(flow, rules, {.alpha = 1}, works).best.op_count(), 2);
  const Rewriting found = SearchRewrites(flow, rules, {.alpha = 1.5}, works);
  EXPECT_EQ(found.best.op_count(), 1);
  ASSERT_EQ(found.steps.size(), 2U);
  EXPECT_EQ(found.steps[0].direction.rule->name, "up");
  EXPECT_TRUE(found.all);
}

// One graph of thousands of ops takes seconds: a limit is looked at between rewrites of one graph.
TEST(SearchRewrites, StopsBeforeAGraphIsDone) {
  std::string text = "func @f (%x: f32[8,8] data";
  std::string ops, returns;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&text, ", %w", i, ": f32[8,8] data");
    absl::StrAppend(&ops, "%y", i, ": f32[8,8] = MatMul(%x, %w", i, ") ");
    absl::StrAppend(&returns, i == 0 ? "" : ", ", "%y", i, ": result");
  }
  const ir::Function function =
      ir::ParseFunction(absl::StrCat(text, ") { ", ops, "return ", returns, " }")).value();
  const std::vector<Rule> rules = LoadRules("standard").value();
  WorkTable works;
  const Dataflow flow = ToDataflow(function, true, works).value();
  double now = 0;
  RewriteLimits limits = {.alpha = 2, .steps = 1};
  limits.clock = [&now] { return now += 1; };  // a second each time that it is asked
  const Rewriting whole = SearchRewrites(flow, rules, limits, works);
  EXPECT_GT(whole.graphs, 100);
  now = 0;
  limits.seconds = 5;
  const Rewriting part = SearchRewrites(flow, rules, limits, works);
  EXPECT_LT(part.graphs, 10);
  EXPECT_LT(now, 10);
  EXPECT_FALSE(part.all);
}

}  // namespace
}  // namespace search_rewrites_test_cc
}  // namespace orrery::transforms::substitutions
