#include "search/spaces/choice_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace choice_list_test_cc {
namespace {

using testing::ElementsAre;
using transforms::ParallelPlan;

// A thing of three labels, of which plans with hp = 4 have two, and one of two: written where the
// pattern of --split-at stands.
class Colours final : public PlanChoices {
 public:
  size_t size() const override { return 2; }
  int LabelsOf(size_t thing) const override { return thing == 0 ? 3 : 2; }
  int64_t ClassOf(const ParallelPlan& plan) const override { return plan.hp > 1 ? plan.hp : 0; }
  std::vector<int> OptionsOf(int64_t plan_class, size_t thing) const override {
    if (thing == 1) return {0, 1};
    return plan_class == 4 ? std::vector{0, 2} : std::vector{0, 1, 2};
  }
  std::vector<double> FeaturesOf(size_t thing) const override {
    return {static_cast<double>(thing)};
  }
  void Apply(std::span<const int> labels, ParallelPlan& plan) const override {
    for (const int label : labels) plan.split_at += std::to_string(label);
  }
};

PlanList Plans() {
  PlanList plans;
  plans.Insert({.dp = 4, .hp = 1});
  plans.Insert({.dp = 2, .hp = 2});
  plans.Insert({.dp = 1, .hp = 4});
  return plans;
}

std::vector<std::string> Texts(const ChoiceList& list) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < list.size(); ++i) {
    texts.push_back(std::to_string(list[i].hp) + ":" + list[i].split_at);
  }
  return texts;
}

TEST(ChoiceList, HasEachCombinationOnce) {
  const PlanList plans = Plans();
  const ChoiceList list(plans, std::make_unique<Colours>());
  EXPECT_EQ(list.things(), 2);
  EXPECT_EQ(list.things_left(), 0);
  EXPECT_THAT(Texts(list), ElementsAre("1:00", "2:00", "2:10", "2:20", "2:01", "2:11", "2:21",
                                       "4:00", "4:20", "4:01", "4:21"));
  EXPECT_EQ(list.PlaceOf(0), 0);
  EXPECT_EQ(list.PlaceOf(1), 1);
  EXPECT_EQ(list.PlaceOf(2), 7);
  for (size_t plan = 0; plan < plans.size(); ++plan) {
    const size_t at = list.PlaceOf(plan);
    EXPECT_EQ(list.ChangesOf(at), plans.ChangesOf(plan));
    EXPECT_EQ(list.FamilyOf(at), plans.FamilyOf(plan));
  }
  EXPECT_EQ(list.ChangesOf(6), plans.ChangesOf(1) + 2);
}

TEST(ChoiceList, NeighboursDifferInOneLabelOrAreOfNeighbours) {
  const PlanList plans = Plans();
  const ChoiceList list(plans, std::make_unique<Colours>());
  const std::vector<std::string> texts = Texts(list);
  const auto neighbours = [&](const std::string& of) {
    std::vector<std::string> found;
    const auto at = std::ranges::find(texts, of) - texts.begin();
    for (const size_t i : list.Neighbours(static_cast<size_t>(at))) found.push_back(texts[i]);
    return found;
  };
  EXPECT_THAT(neighbours("2:10"),
              testing::UnorderedElementsAre("2:00", "2:20", "2:11", "1:00", "4:00"));
  EXPECT_THAT(neighbours("2:21"),
              testing::UnorderedElementsAre("2:01", "2:11", "2:20", "1:00", "4:21"));
  EXPECT_THAT(neighbours("1:00"), testing::UnorderedElementsAre("2:00", "4:00"));
}

// Each place is that of its plan and its labels; what is no option is 0.
TEST(ChoiceList, IsWhereItsLabelsSay) {
  const PlanList plans = Plans();
  const ChoiceList list(plans, std::make_unique<Colours>());
  const std::vector<std::string> texts = Texts(list);
  for (size_t i = 0; i < list.size(); ++i) {
    const std::vector<int> labels = {texts[i][2] - '0', texts[i][3] - '0'};
    for (size_t of = 0; of < list.size(); ++of) {
      const size_t place = list.With(of, labels);
      EXPECT_EQ(texts[place][0], texts[of][0]);
      EXPECT_TRUE(texts[of][0] != texts[i][0] || place == i);
    }
  }
  const auto four = std::ranges::find(texts, "4:21") - texts.begin();
  const std::vector<int> no_option = {1, 1};
  EXPECT_EQ(texts[list.With(static_cast<size_t>(four), no_option)], "4:01");
  EXPECT_EQ(list.label_limit(), 3);
  EXPECT_THAT(list.FeaturesOfThing(1), ElementsAre(1));
}

TEST(ChoiceList, HasFeaturesOfOneLength) {
  const PlanList plans = Plans();
  const ChoiceList list(plans, std::make_unique<Colours>());
  std::set<std::vector<double>> all;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::vector<double> features = list.FeaturesOf(i);
    EXPECT_EQ(features.size(), plans.FeaturesOf(0).size() + 2 + 1);
    all.insert(features);
  }
  EXPECT_EQ(all.size(), list.size());
}

TEST(ChoiceList, TakesAsManyThingsAsFitIn) {
  const PlanList plans = Plans();
  const auto things = [&](size_t most) {
    return ChoiceList(plans, std::make_unique<Colours>(), most).things();
  };
  EXPECT_EQ(things(5), 0);  // with the first 1 + 3 + 2
  EXPECT_EQ(things(6), 1);
  EXPECT_EQ(things(10), 1);
  EXPECT_EQ(things(11), 2);
  const ChoiceList some(plans, std::make_unique<Colours>(), 6);
  EXPECT_EQ(some.things_left(), 1);
  EXPECT_THAT(Texts(some), ElementsAre("1:0", "2:0", "2:1", "2:2", "4:0", "4:2"));
}

}  // namespace
}  // namespace choice_list_test_cc
}  // namespace orrery::search
