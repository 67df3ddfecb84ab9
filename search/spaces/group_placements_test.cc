#include "search/spaces/group_placements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/text/text.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace group_placements_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using transforms::ParallelPlan;

// Two towers, of which the first is the heavier one, and what joins them.
ir::Function Towers() {
  ir::Function step = ir::ParseFunction(R"(
    func @towers (
      %user: f32[64,160] data, %item: f32[64,40] data, %user.w0: f32[160,160] parameter,
      %user.w1: f32[160,80] parameter, %item.w0: f32[40,80] parameter
    ) {
      %user.h0: f32[64,160] = MatMul(%user, %user.w0)
      %user.h1: f32[64,80] = MatMul(%user.h0, %user.w1)
      %item.h0: f32[64,80] = MatMul(%item, %item.w0)
      %match: f32[64,80] = Mul(%user.h1, %item.h0)
      return %match: result
    }
  )")
                          .value();
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "sgd"}).ok());
  return step;
}

TEST(GroupsByName, DivideWhatIsHeaviest) {
  const ir::Function step = Towers();
  const OpGroups two = GroupsByName(step, 2).value();
  EXPECT_TRUE(two.apart);
  EXPECT_FALSE(two.covers_all);
  // What matches both is less than a hundredth of all and goes with the rest.
  EXPECT_THAT(two.patterns, ElementsAre("^item\\.h0([./:_]|$)"));
  EXPECT_THAT(GroupsByName(step, 12)->patterns,
              ElementsAre("^user\\.h1([./:_]|$)", "^item\\.h0([./:_]|$)"));
  EXPECT_THAT(std::string(GroupsByName(step, 1).status().message()), HasSubstr("tell no 2 to 1"));
}

// Products in a row whose results have these names.
ir::Function Chain(const std::vector<std::string>& names) {
  ir::Builder builder("chain");
  const ir::TensorType type = {.dtype = ir::DType::kF32, .dims = {128, 128}, .sharding = {}};
  ir::ValueId x = builder.Data("x", type);
  for (const std::string& name : names) {
    x = builder.MatMul(x, builder.Parameter("w" + name, type), name);
  }
  builder.Return(x);
  ir::Function step = std::move(builder).Finalize().value();
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "sgd"}).ok());
  return step;
}

// As torch exports them; and as a text of a placement could not be read again.
TEST(GroupsByName, DivideNamesOfAnyKind) {
  EXPECT_THAT(GroupsByName(Chain({"/a/x", "/a/y", "/b"}), 8)->patterns,
              ElementsAre("^\\/a\\/x([./:_]|$)", "^\\/a\\/y([./:_]|$)"));
  EXPECT_THAT(GroupsByName(Chain({"a;b", "c;d"}), 8)->patterns, ElementsAre("^c\\x3bd([./:_]|$)"));
  // More ways to begin than groups: the first ones.
  EXPECT_EQ(GroupsByName(Chain({"a", "b", "c", "d", "e"}), 3)->patterns.size(), 2);
}

TEST(GroupsOfPatterns, AreCheckedAgainstTheOps) {
  const ir::Function step = Towers();
  const OpGroups groups = GroupsOfPatterns(step, "^user;^item").value();
  EXPECT_THAT(groups.patterns, ElementsAre("^user", "^item"));
  EXPECT_FALSE(groups.apart);
  EXPECT_FALSE(groups.covers_all);
  EXPECT_TRUE(GroupsOfPatterns(step, "^user;.*").value().covers_all);
  // A loss is an op that some group has, too.
  EXPECT_FALSE(GroupsOfPatterns(step, "^user;^item;^match").value().covers_all);
  for (const char* const wrong : {"", "^user;", "(", "^user=0"}) {
    EXPECT_THAT(std::string(GroupsOfPatterns(step, wrong).status().message()),
                HasSubstr("wanted patterns of names"))
        << wrong;
  }
  EXPECT_THAT(std::string(GroupsOfPatterns(step, "user;user.h0").status().message()),
              HasSubstr("'user.h0' matches no forward op that no pattern before it does"));
}

// Products of one size, one after another.
TEST(OpGroups, HaveTheirShares) {
  const OpGroups groups = GroupsOfPatterns(Chain({"a", "b", "c", "d"}), "^b;^[cd]").value();
  ASSERT_EQ(groups.shares.size(), 2);
  EXPECT_NEAR(groups.shares[1].flops, 2 * groups.shares[0].flops, 0.01);
  EXPECT_NEAR(groups.shares[0].flops, 0.25, 0.01);
  EXPECT_LT(groups.shares[0].place, groups.shares[1].place);
  EXPECT_LT(groups.shares[1].place, 1);
  const GroupPlacements placements(groups, 2);
  EXPECT_THAT(placements.FeaturesOf(1),
              ElementsAre(groups.shares[1].flops, groups.shares[1].place));
}

std::vector<std::string> Placements(const OpGroups& groups, const PlanList& plans) {
  const ChoiceList list(plans, std::make_unique<GroupPlacements>(groups, 3));
  std::vector<std::string> texts;
  for (size_t i = 0; i < list.size(); ++i) {
    const ParallelPlan plan = list[i];
    EXPECT_TRUE(transforms::CheckPlan(plan).ok()) << transforms::ToString(plan, {});
    texts.push_back(ToString(plan.placement));
    if (plan.placement.empty()) continue;
    EXPECT_EQ(transforms::ParsePlacement(texts.back()).value(), plan.placement);
  }
  return texts;
}

TEST(GroupPlacements, AreOnTheDevicesOfStages) {
  PlanList plans;
  plans.Insert({.dp = 4});  // no pipeline
  plans.Insert({.dp = 2, .hp = 1, .pp = 2});
  EXPECT_THAT(Placements({.patterns = {"a", "b"}, .apart = true}, plans),
              ElementsAre("", "", "a=2-3;*=0-1", "b=2-3;*=0-1", "a=2-3;b=2-3;*=0-1"));
  // A pattern that comes later may find what an earlier one has.
  EXPECT_THAT(Placements({.patterns = {"a", "b"}}, plans),
              ElementsAre("", "", "a=2-3;*=0-1", "a=0-1;b=2-3;*=0-1", "a=2-3;b=2-3;*=0-1"));
  EXPECT_THAT(Placements({.patterns = {"a", "b"}, .covers_all = true}, plans),
              ElementsAre("", "", "a=2-3;*=0-1", "a=0-1;b=2-3", "a=2-3;b=2-3"));
}

TEST(GroupPlacements, AreOfPlansThatCanHaveOne) {
  const GroupPlacements choices({.patterns = {"a"}}, 4);
  EXPECT_EQ(choices.ClassOf({.pp = 2}), 2);
  EXPECT_EQ(choices.ClassOf({.dp = 2, .hp = 2, .pp = 4}), 4);
  EXPECT_EQ(choices.ClassOf({.dp = 4}), 0);
  EXPECT_EQ(choices.ClassOf({.pp = 2, .cp = 2}), 0);
  EXPECT_EQ(choices.ClassOf({.pp = 2, .chunks = 2}), 0);
  ParallelPlan other = {.pp = 2};
  EXPECT_TRUE(transforms::FindAxis("schedule")->parse("zb-h1", other).ok());
  EXPECT_EQ(choices.ClassOf(other), 0);
  ParallelPlan placed = {.dp = 2, .hp = 2, .pp = 3};
  const std::vector<int> labels = {2};
  choices.Apply(labels, placed);
  EXPECT_EQ(ToString(placed.placement), "a=2x2@8;*=2x2@0");
  EXPECT_EQ(placed.pp, 2);
  EXPECT_EQ(placed.ranks(), 8);
}

}  // namespace
}  // namespace group_placements_test_cc
}  // namespace orrery::search
