#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "search/bounds/bounds.h"
#include "search/search.h"
#include "search/settings/setting_test_util.h"
#include "search/spaces/space_test_util.h"

namespace orrery::search {
namespace budget_test_cc {
namespace {

// A real space, of which a part is played.
class Budgeted : public testing::TestWithParam<Method> {
 protected:
  Budgeted() {
    plans_ = Enumerate(SpaceOf({{"micro-batches", "1,2,4,8"}, {"zero", "0,1"}}),
                       {.devices = 8, .batch_size = 48})
                 .value();
  }

  SearchRows Search(int64_t candidates, int32_t threads) const {
    return SearchThrough([this](const ParallelPlan&) -> const Setting& { return setting_; }, plans_,
                         {.threads = threads,
                          .top = 1,
                          .method = GetParam(),
                          .budget = {.candidates = candidates},
                          .neighbours = [this](size_t i) { return plans_.Neighbours(i); },
                          .family = [this](size_t i) { return plans_.FamilyOf(i); }})
        .value();
  }

  const Setting setting_ = MlpSetting();
  PlanList plans_;
};

TEST_P(Budgeted, FindsTheWinnerOfAllInHalf) {
  const SearchRows all =
      SearchThrough([this](const ParallelPlan&) -> const Setting& { return setting_; }, plans_, {})
          .value();
  const auto half = static_cast<int64_t>(plans_.size() / 2);
  const SearchRows some = Search(half, 1);
  ASSERT_EQ(some.size(), all.size());
  EXPECT_LE(std::ssize(some.played()), half);
  EXPECT_EQ(Ranked(some).front()->step_time, Ranked(all).front()->step_time);
}

TEST_P(Budgeted, DoesNotDependOnThreads) {
  const std::string one = ResultsCsv(setting_, Search(20, 1));
  EXPECT_EQ(ResultsCsv(setting_, Search(20, 3)), one);
  EXPECT_THAT(one, testing::HasSubstr("left: the budget of the search ended before"));
}

TEST_P(Budgeted, WithEnoughIsTheWholeSearch) {
  const SearchRows some = Search(1000, 2);
  EXPECT_FALSE(some.least_left().has_value());
  const SearchRows all =
      SearchThrough([this](const ParallelPlan&) -> const Setting& { return setting_; }, plans_,
                    {.top = 1})
          .value();
  EXPECT_EQ(ResultsCsv(setting_, some), ResultsCsv(setting_, all));
}

INSTANTIATE_TEST_SUITE_P(Methods, Budgeted,
                         testing::Values(Method::kExhaustive, Method::kBeam, Method::kAnnealing),
                         [](const auto& method) { return ToString(method.param); });

// However little time there is, the first are played, and the others are rows.
TEST(Budget, OfTimeEnds) {
  const Setting setting = MlpSetting();
  const PlanList plans =
      Enumerate(SpaceOf({{"micro-batches", "1,2,4,8"}}), {.devices = 8, .batch_size = 48}).value();
  const SearchRows rows =
      SearchThrough([&](const ParallelPlan&) -> const Setting& { return setting; }, plans,
                    {.top = 1, .budget = {.seconds = 1e-9}})
          .value();
  EXPECT_EQ(rows.size(), plans.size());
  EXPECT_EQ(rows.played().size(), 1u);
  EXPECT_TRUE(rows.least_left().has_value());
}

// The time ends before the second is begun, and after it was chosen.
TEST(Budget, OfTimeLeavesWhatIsPlayedWhenItEnds) {
  const Setting setting = MlpSetting();
  const PlanList plans =
      Enumerate(SpaceOf({{"micro-batches", "1,2,4,8"}}), {.devices = 8, .batch_size = 48}).value();
  const SearchRows rows =
      SearchThrough([&](const ParallelPlan&) -> const Setting& { return setting; }, plans,
                    {.top = 1,
                     .method = Method::kBeam,
                     .budget = {.seconds = 0.5},
                     .neighbours =
                         [&](size_t i) {
                           std::this_thread::sleep_for(std::chrono::milliseconds(600));
                           return plans.Neighbours(i);
                         }})
          .value();
  EXPECT_EQ(rows.size(), plans.size());
  EXPECT_EQ(rows.played().size(), 1u);
}

// Of equal degrees of freedom, what is likely to be fast is played first: bounds, which know of no
// communication, say otherwise.
TEST(Budget, BeginsWithWhatIsLikelyToBeFast) {
  const Setting setting = MlpSetting();
  const std::vector<ParallelPlan> plans = {{.hp = 8}, {.dp = 8}};
  Bounds bounds(setting);
  ASSERT_LT(bounds.Of(plans[0]).time, bounds.Of(plans[1]).time);
  const SearchRows rows =
      SearchThrough([&](const ParallelPlan&) -> const Setting& { return setting; }, plans,
                    {.top = 1, .method = Method::kBeam, .budget = {.candidates = 1}})
          .value();
  ASSERT_EQ(rows.played().size(), 1u);
  EXPECT_EQ(Ranked(rows).front()->plan.dp, 8);
}

// What is played when the time ends is not played to its end, however long it takes.
TEST(Budget, OfTimeEndsPlays) {
  const Setting setting = MlpSetting();
  PartStore parts(Bytes(1 << 20));
  const auto now = std::chrono::steady_clock::now();
  const auto result = Evaluate(setting, {.dp = 8}, &parts, {.until = now});
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_TRUE(Evaluate(setting, {.dp = 8}, &parts, {.until = now + std::chrono::hours(1)}).ok());
}

// Also of those that are handed out.
TEST(Budget, OfTimeEndsWhatIsHandedOut) {
  const Setting setting = MlpSetting();
  const PlanList plans =
      Enumerate(SpaceOf({{"micro-batches", "1,2,4,8"}}), {.devices = 8, .batch_size = 48}).value();
  size_t at = 0;
  const auto next = [&]() -> std::optional<size_t> {
    std::this_thread::sleep_for(std::chrono::milliseconds(at == 1 ? 700 : 0));
    return at == plans.size() ? std::nullopt : std::optional(at++);
  };
  const SearchRows rows =
      SearchThrough([&](const ParallelPlan&) -> const Setting& { return setting; }, plans,
                    {.top = 1, .next = next, .budget = {.seconds = 0.5}})
          .value();
  EXPECT_EQ(rows.size(), plans.size());
  EXPECT_EQ(rows.played().size(), 1u);
  EXPECT_TRUE(rows.least_left().has_value());
}

}  // namespace
}  // namespace budget_test_cc
}  // namespace orrery::search
