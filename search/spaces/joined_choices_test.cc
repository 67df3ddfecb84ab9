#include "search/spaces/joined_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "search/spaces/choice_list.h"
#include "search/spaces/plan_list.h"

namespace orrery::search {
namespace joined_choices_test_cc {
namespace {

using testing::ElementsAre;
using transforms::ParallelPlan;

// So many things, each of which is a letter from `first` on or nothing: as many letters as the
// degree that plans have of an axis.
class Letters final : public PlanChoices {
 public:
  Letters(size_t things, int64_t ParallelPlan::*degree, char first)
      : things_(things), degree_(degree), first_(first) {}

  size_t size() const override { return things_; }
  int LabelsOf(size_t /*thing*/) const override { return 10; }
  int64_t ClassOf(const ParallelPlan& plan) const override {
    return plan.*degree_ > 1 ? plan.*degree_ : 0;
  }
  std::vector<int> OptionsOf(int64_t plan_class, size_t /*thing*/) const override {
    std::vector<int> options(static_cast<size_t>(plan_class));
    std::iota(options.begin(), options.end(), 0);
    return options;
  }
  std::vector<double> FeaturesOf(size_t thing) const override {
    return {static_cast<double>(first_), static_cast<double>(thing)};
  }
  void Apply(std::span<const int> labels, ParallelPlan& plan) const override {
    for (const int label : labels) {
      plan.split_at += label == 0 ? '-' : static_cast<char>(first_ + label - 1);
    }
    plan.split_at += '.';
  }

 private:
  const size_t things_;
  int64_t ParallelPlan::*const degree_;
  const char first_;
};

std::unique_ptr<JoinedChoices> Joined() {
  std::vector<std::unique_ptr<const PlanChoices>> kinds;
  kinds.push_back(std::make_unique<Letters>(1, &ParallelPlan::hp, 'a'));
  kinds.push_back(std::make_unique<Letters>(3, &ParallelPlan::pp, 'p'));
  return std::make_unique<JoinedChoices>(std::move(kinds));
}

TEST(JoinedChoices, TakesThingsInTurn) {
  const auto joined = Joined();
  ASSERT_EQ(joined->size(), 4);
  const int64_t of_both = joined->ClassOf({.hp = 3, .pp = 2});
  EXPECT_THAT(joined->OptionsOf(of_both, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(joined->OptionsOf(of_both, 1), ElementsAre(0, 1));
  EXPECT_THAT(joined->OptionsOf(of_both, 3), ElementsAre(0, 1));
  ParallelPlan plan;
  const std::vector<int> labels = {2, 1, 0, 1};
  joined->Apply(labels, plan);
  EXPECT_EQ(plan.split_at, "b.p-p.");
  plan.split_at.clear();
  joined->Apply(std::span(labels).first(2), plan);
  EXPECT_EQ(plan.split_at, "b.p.");
}

// Each kind's features have places of their own.
TEST(JoinedChoices, HasFeaturesOfEachKind) {
  const auto joined = Joined();
  EXPECT_THAT(joined->FeaturesOf(0), ElementsAre('a', 0, 0, 0));
  EXPECT_THAT(joined->FeaturesOf(1), ElementsAre(0, 0, 'p', 0));
  EXPECT_THAT(joined->FeaturesOf(3), ElementsAre(0, 0, 'p', 2));
}

TEST(JoinedChoices, HasWhatOneKindHas) {
  const auto joined = Joined();
  EXPECT_EQ(joined->ClassOf({.hp = 1, .pp = 1}), 0);
  const int64_t of_hp = joined->ClassOf({.hp = 2, .pp = 1});
  const int64_t of_pp = joined->ClassOf({.hp = 1, .pp = 2});
  EXPECT_NE(of_hp, of_pp);
  EXPECT_THAT(joined->OptionsOf(of_hp, 0), ElementsAre(0, 1));
  EXPECT_THAT(joined->OptionsOf(of_hp, 1), ElementsAre(0));
  EXPECT_THAT(joined->OptionsOf(of_pp, 0), ElementsAre(0));
  EXPECT_THAT(joined->OptionsOf(of_pp, 2), ElementsAre(0, 1));
}

TEST(JoinedChoices, MakesAllCombinations) {
  PlanList plans;
  plans.Insert({.hp = 1, .pp = 1});
  plans.Insert({.hp = 2, .pp = 1});
  plans.Insert({.hp = 1, .pp = 2});
  plans.Insert({.hp = 2, .pp = 3});
  const ChoiceList list(plans, Joined());
  EXPECT_EQ(list.size(), 1 + 2 + 8 + 2 * 27);
  std::set<std::string> texts;
  for (size_t i = 0; i < list.size(); ++i) {
    const ParallelPlan plan = list[i];
    texts.insert(std::to_string(plan.hp) + std::to_string(plan.pp) + plan.split_at);
  }
  EXPECT_EQ(texts.size(), list.size());
  EXPECT_EQ(texts.count("23a.qp-."), 1);
}

}  // namespace
}  // namespace joined_choices_test_cc
}  // namespace orrery::search
