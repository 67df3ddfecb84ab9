#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "search/bounds/bounds.h"
#include "search/search.h"
#include "search/settings/setting_test_util.h"
#include "search/spaces/space_test_util.h"

namespace orrery::search {
namespace budget_test_cc {
namespace {

// A real space, of which a part is played.
class Budget : public testing::Test {
 protected:
  explicit Budget(const Lists& lists = {{"micro-batches", "1,2,4,8"}})
      : plans_(Enumerate(SpaceOf(lists), {.devices = 8, .batch_size = 48}).value()) {}

  SearchRows Search(const SearchOptions& options) const { return Search(plans_, options); }
  SearchRows Search(const PlansView& plans, const SearchOptions& options) const {
    const auto setting_of = [this](const ParallelPlan&) -> const Setting& { return setting_; };
    return SearchThrough(setting_of, plans, options).value();
  }

  // All are rows, of which the first is played.
  void ExpectFirstAlone(const SearchRows& rows) const {
    EXPECT_EQ(rows.size(), plans_.size());
    EXPECT_EQ(rows.played().size(), 1u);
    EXPECT_TRUE(rows.least_left().has_value());
  }

  const Setting setting_ = MlpSetting();
  const PlanList plans_;
};

class Budgeted : public Budget, public testing::WithParamInterface<Method> {
 protected:
  Budgeted() : Budget({{"micro-batches", "1,2,4,8"}, {"zero", "0,1"}}) {}

  SearchRows SearchSome(int64_t candidates, int32_t threads) const {
    return Search({.threads = threads,
                   .top = 1,
                   .method = GetParam(),
                   .budget = {.candidates = candidates},
                   .neighbours = [this](size_t i) { return plans_.Neighbours(i); },
                   .family = [this](size_t i) { return plans_.FamilyOf(i); },
                   .features = [this](size_t i) { return plans_.FeaturesOf(i); }});
  }
};

TEST_P(Budgeted, FindsTheWinnerOfAllInHalf) {
  const SearchRows all = Search(SearchOptions());
  const auto half = static_cast<int64_t>(plans_.size() / 2);
  const SearchRows some = SearchSome(half, 1);
  ASSERT_EQ(some.size(), all.size());
  EXPECT_LE(std::ssize(some.played()), half);
  EXPECT_EQ(Ranked(some).front()->step_time, Ranked(all).front()->step_time);
}

TEST_P(Budgeted, DoesNotDependOnThreads) {
  const std::string one = ResultsCsv(setting_, SearchSome(20, 1));
  EXPECT_EQ(ResultsCsv(setting_, SearchSome(20, 3)), one);
  EXPECT_THAT(one, testing::HasSubstr("left: the budget of the search ended before"));
}

TEST_P(Budgeted, WithEnoughIsTheWholeSearch) {
  const SearchRows some = SearchSome(1000, 2);
  EXPECT_FALSE(some.least_left().has_value());
  EXPECT_EQ(ResultsCsv(setting_, some), ResultsCsv(setting_, Search({.top = 1})));
}

INSTANTIATE_TEST_SUITE_P(Methods, Budgeted,
                         testing::ValuesIn(AllMethods().begin(), AllMethods().end()),
                         [](const auto& method) { return std::string(method.param->name); });

// However little time there is, the first are played, and the others are rows.
TEST_F(Budget, OfTimeEnds) { ExpectFirstAlone(Search({.top = 1, .budget = {.seconds = 1e-9}})); }

// The time ends before the second is begun, and after it was chosen.
TEST_F(Budget, OfTimeLeavesWhatIsPlayedWhenItEnds) {
  const auto neighbours = [this](size_t i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    return plans_.Neighbours(i);
  };
  ExpectFirstAlone(Search(
      {.top = 1, .method = &kBeamMethod, .budget = {.seconds = 0.5}, .neighbours = neighbours}));
}

// With enough of it the rows are those of the whole search, whoever of several threads found them.
TEST_F(Budget, OfMuchTimeIsTheWholeSearch) {
  const std::string all = ResultsCsv(setting_, Search({.top = 1}));
  for (const int32_t threads : {1, 4}) {
    const SearchRows rows = Search({.threads = threads,
                                    .top = 1,
                                    .method = &kBeamMethod,
                                    .budget = {.seconds = 3600},
                                    .neighbours = [this](size_t i) { return plans_.Neighbours(i); },
                                    .family = [this](size_t i) { return plans_.FamilyOf(i); }});
    EXPECT_FALSE(rows.least_left().has_value());
    EXPECT_EQ(ResultsCsv(setting_, rows), all);
  }
}

// Nobody waits for one that takes long: here until a dozen others are done.
TEST_F(Budget, OfTimeGoesOnBesideALongPlay) {
  constexpr size_t kOthers = 12;  // more than are taken at a time where numbers are counted
  std::mutex mutex;
  std::condition_variable changed;
  size_t done = 0;
  bool is_first = true, in_time = false;
  const auto setting_of = [&](const ParallelPlan&) -> const Setting& {
    std::unique_lock<std::mutex> lock(mutex);
    if (std::exchange(is_first, false)) {
      in_time = changed.wait_for(lock, std::chrono::seconds(20), [&] { return done >= kOthers; });
    }
    return setting_;
  };
  const auto progress = [&](size_t count) {
    const std::lock_guard<std::mutex> lock(mutex);
    done = count;
    changed.notify_all();
  };
  ASSERT_TRUE(SearchThrough(setting_of, plans_,
                            {.threads = 2, .progress = progress, .budget = {.seconds = 3600}})
                  .ok());
  EXPECT_TRUE(in_time);
}

// Also of those that are handed out, of which none follows.
TEST_F(Budget, OfTimeEndsWhatIsHandedOut) {
  size_t at = 0;
  const auto next = [&]() -> std::optional<size_t> {
    std::this_thread::sleep_for(std::chrono::milliseconds(at == 1 ? 3100 : 0));
    return at == plans_.size() ? std::nullopt : std::optional(at++);
  };
  ExpectFirstAlone(Search({.top = 1, .next = next, .budget = {.seconds = 3}}));
  EXPECT_EQ(at, 2u);
}

// Of equal degrees of freedom, what is likely to be fast is played first: bounds, which know of no
// communication, say otherwise.
TEST_F(Budget, BeginsWithWhatIsLikelyToBeFast) {
  const std::vector<ParallelPlan> plans = {{.hp = 8}, {.dp = 8}};
  Bounds bounds(setting_);
  ASSERT_LT(bounds.Of(plans[0]).time, bounds.Of(plans[1]).time);
  const SearchRows rows =
      Search(plans, {.top = 1, .method = &kBeamMethod, .budget = {.candidates = 1}});
  ASSERT_EQ(rows.played().size(), 1u);
  EXPECT_EQ(Ranked(rows).front()->plan.dp, 8);
}

// What is played when the time ends is not played to its end, however long it takes.
TEST_F(Budget, OfTimeEndsPlays) {
  PartStore parts(Bytes(1 << 20));
  const auto now = std::chrono::steady_clock::now();
  const auto result = Evaluate(setting_, {.dp = 8}, &parts, {.until = now});
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_TRUE(Evaluate(setting_, {.dp = 8}, &parts, {.until = now + std::chrono::hours(1)}).ok());
}

}  // namespace
}  // namespace budget_test_cc
}  // namespace orrery::search
