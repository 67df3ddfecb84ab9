#include "search/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "search/bounds/least_work.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace candidates_test_cc {
namespace {

class CandidatesOfMlp : public testing::Test {
 protected:
  const Setting setting_ = MlpSetting();
  const SettingOf setting_of_ = [this](const ParallelPlan&) -> const Setting& { return setting_; };
  const std::vector<ParallelPlan> plans_ = {{.dp = 8}, {.pp = 8, .microbatches = 2}, {.hp = 8}};
  const PlansView view_ = plans_;
  const ReliefOf none_;
};

TEST_F(CandidatesOfMlp, AreUnknownBeforeTheyAreBounded) {
  const Candidates candidates(setting_of_, view_, none_);
  EXPECT_EQ(candidates.size(), 3u);
  EXPECT_FALSE(candidates.NeverFits(0));
  EXPECT_FALSE(candidates.IsBeaten(0, Incumbents(1)));
  EXPECT_EQ(candidates.LeastTime(1), Duration(0));
  EXPECT_EQ(candidates.LeastMemoryOf(1), Bytes(0));
  EXPECT_EQ(candidates.Promising(), (std::vector<uint32_t>{0, 1, 2}));
}

// On any number of threads the same.
TEST_F(CandidatesOfMlp, HaveTheBoundsOfTheirPlans) {
  Bounds bounds(setting_);
  for (const size_t threads : {size_t{1}, size_t{4}}) {
    Candidates candidates(setting_of_, view_, none_);
    candidates.FindBounds(threads);
    for (size_t i = 0; i < plans_.size(); ++i) {
      const PlanBound bound = bounds.Of(plans_[i]);
      EXPECT_GT(bound.time, Duration(0));
      EXPECT_EQ(candidates.LeastTime(i), bound.time);
      EXPECT_EQ(candidates.LeastMemoryOf(i), bound.memory);
    }
    const std::vector<uint32_t> order = candidates.Promising();
    EXPECT_LE(candidates.LeastTime(order[0]), candidates.LeastTime(order[1]));
    EXPECT_LE(candidates.LeastTime(order[1]), candidates.LeastTime(order[2]));
  }
}

TEST_F(CandidatesOfMlp, AreMadeIntoRows) {
  Setting small = MlpSetting();
  small.lowering.memory_limit = Bytes(1000);
  const SettingOf setting_of = [&](const ParallelPlan&) -> const Setting& { return small; };
  Candidates candidates(setting_of, view_, none_);
  candidates.FindBounds(1);
  EXPECT_TRUE(candidates.NeverFits(0));
  EXPECT_TRUE(candidates.IsTooLarge(0, 0));
  const Result too_large = candidates.Row(0, Unplayed::kTooLarge);
  EXPECT_EQ(too_large.infeasible->reason, InfeasibleReason::kMemory);
  EXPECT_EQ(too_large.plan, plans_[0]);
  EXPECT_FALSE(candidates.Row(1, Unplayed::kPruned).pruned.empty());
  const Result left = candidates.Row(2, Unplayed::kLeft);
  EXPECT_TRUE(left.left);
  EXPECT_FALSE(left.infeasible.has_value());
}

std::vector<uint32_t> PlainestOf(const Candidates& candidates,
                                 const std::function<int32_t(size_t)>& changes) {
  return candidates.Plainest(changes,
                             [&](size_t i) { return candidates.LikelySize(Goal::kTime, i); });
}

// Which of them are likely not to fit: those whose bound is nearly what there is.
TEST_F(CandidatesOfMlp, BeginWithThePlainestThatAreLikelyToFit) {
  const std::vector<ParallelPlan> plans = {
      {.dp = 8}, {.hp = 8, .zero = 0}, {.dp = 8, .zero = 3}, {.dp = 2, .hp = 4}};
  const PlansView view = plans;
  Candidates all(setting_of_, view, none_);
  all.FindBounds(1);
  const auto changes = [&](size_t i) { return plans[i].zero == 3 ? 1 : 0; };
  EXPECT_EQ(PlainestOf(all, changes).back(), 2u);
  EXPECT_EQ(PlainestOf(all, {}).size(), plans.size());
  ASSERT_GT(all.LeastMemoryOf(0).count(), 2 * all.LeastMemoryOf(2).count() + 2);
  Setting small = MlpSetting();
  const SettingOf setting_of = [&](const ParallelPlan&) -> const Setting& { return small; };
  const auto plainest = [&](int64_t limit) {
    small.lowering.memory_limit = Bytes(limit);
    Candidates tight(setting_of, view, none_);
    tight.FindBounds(1);
    return PlainestOf(tight, changes);
  };
  const std::vector<uint32_t> tight = plainest(all.LeastMemoryOf(0).count());
  EXPECT_EQ(tight.size(), plans.size());
  EXPECT_EQ(tight.back(), 0u);
  // What cannot fit is not there.
  EXPECT_EQ(std::ranges::count(plainest(all.LeastMemoryOf(0).count() - 1), 0u), 0);
}

// Of stages those whose bound is more than half of it, too: the fullest has more than the average.
TEST_F(CandidatesOfMlp, OfStagesAreMoreOftenLikelyNotToFit) {
  Setting setting = MlpSetting();
  const SettingOf setting_of = [&](const ParallelPlan&) -> const Setting& { return setting; };
  SearchBounds bounds(setting_of);
  const auto is_tight = [&](const ParallelPlan& plan, double part) {
    setting.lowering.memory_limit = Bytes(0);
    const auto least = static_cast<double>(bounds.Of(plan).memory.count());
    setting.lowering.memory_limit = Bytes(static_cast<int64_t>(least / part));
    bounds.Of(plan);
    EXPECT_FALSE(bounds.is_too_large());
    return bounds.is_tight();
  };
  const ParallelPlan whole = {.dp = 2, .microbatches = 2};
  const ParallelPlan stages = {.pp = 2, .microbatches = 2};
  EXPECT_FALSE(is_tight(whole, 0.8));
  EXPECT_TRUE(is_tight(whole, 0.95));
  EXPECT_FALSE(is_tight(stages, 0.45));
  EXPECT_TRUE(is_tight(stages, 0.55));
}

// Of equally plain ones first what is likely to take least, all told: ranks that wait for each
// other at every product are late, though they share the work as well as others.
TEST_F(CandidatesOfMlp, BeginWithWhatIsLikelyToBeFast) {
  const std::vector<ParallelPlan> plans = {{.hp = 8}, {.dp = 8}};
  const PlansView view = plans;
  Candidates all(setting_of_, view, none_);
  all.FindBounds(1);
  EXPECT_EQ(all.LikelySize(Goal::kTime, 0), 0);  // nobody asked
  all.FindBounds(1, /*likely=*/true);
  EXPECT_GT(all.LikelySize(Goal::kTime, 0), all.LikelySize(Goal::kTime, 1));
  EXPECT_GT(all.LikelySize(Goal::kTime, 1), all.LeastTime(1).seconds());
  EXPECT_EQ(PlainestOf(all, {}), (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(all.LikelySize(Goal::kPrice, 0), 8 * all.LikelySize(Goal::kTime, 0));
  EXPECT_EQ(all.LikelySize(Goal::kMemory, 0), static_cast<double>(all.LeastMemoryOf(0).count()));
}

TEST_F(CandidatesOfMlp, HaveWhatRelievesThem) {
  const ReliefOf relief = [](const ParallelPlan& plan) {
    ParallelPlan other = plan;
    other.recompute = transforms::ParseRecomputePolicy("full").value();
    return plan.dp > 1 ? std::vector<ParallelPlan>{other} : std::vector<ParallelPlan>{};
  };
  Candidates candidates(setting_of_, view_, relief);
  candidates.FindBounds(2);
  EXPECT_EQ(candidates.PlansOf(0).size(), 2u);
  EXPECT_EQ(candidates.PlansOf(1).size(), 1u);
  Bounds bounds(setting_);
  EXPECT_EQ(candidates.LeastTime(2), bounds.Of(plans_[2]).time);  // behind those of the first
  const GoalFigures least = candidates.LeastFigures(0);
  EXPECT_EQ(least.time, candidates.LeastTime(0));
  EXPECT_EQ(least.memory, std::min(bounds.Of(candidates.PlansOf(0)[0]).memory,
                                   bounds.Of(candidates.PlansOf(0)[1]).memory));
  EXPECT_EQ(least.ranks, plans_[0].ranks());
}

}  // namespace
}  // namespace candidates_test_cc
}  // namespace orrery::search
