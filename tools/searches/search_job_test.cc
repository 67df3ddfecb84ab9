#include "tools/searches/search_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/settings/setting_test_util.h"
#include "search/spaces/space_test_util.h"
#include "tools/terminal/terminal.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace search_job_test_cc {
namespace {

using search::ParallelPlan;

// A space of which some axes are held, as of one that is too large to list.
class HeldSpace : public testing::Test {
 protected:
  HeldSpace() {
    search::Listing listing = search::ListPlans(space_, kSize, kMost).value();
    EXPECT_THAT(listing.held, testing::ElementsAre(transforms::FindAxis("blocking"),
                                                   transforms::FindAxis("bucket-size")));
    job_.setting_of = [this](const ParallelPlan&) -> const search::Setting& { return setting_; };
    job_.plans = std::move(listing.plans);
    job_.top = 5;
    job_.held = listing.held;
    job_.variants = [this, held = listing.held](const ParallelPlan& plan) {
      return search::VariantsOf(space_, kSize, held, plan);
    };
  }

  // Of plans that were played.
  static std::vector<std::string> Texts(const search::SearchRows& rows) {
    std::vector<std::string> texts;
    for (const search::Result& result : rows.played()) {
      texts.push_back(transforms::ToString(result.plan));
    }
    return texts;
  }

  static constexpr search::SpaceSize kSize = {.devices = 8, .batch_size = 48};
  static constexpr size_t kMost = 60;
  const search::Space space_ = search::SpaceOf(
      {{"micro-batches", "1,2,4,8"}, {"blocking", "1,0"}, {"bucket-size", "none,1MiB"}});
  const search::Setting setting_ = search::MlpSetting();
  SearchJob job_;
};

TEST_F(HeldSpace, TriesWhatTheBestStandFor) {
  const size_t listed = job_.plans.size();
  const JobOutcome outcome = RunJob({.threads = 2, .budget = "40"}, job_).value();
  // Three of each of the five best.
  EXPECT_EQ(outcome.candidates, listed + 15);
  EXPECT_EQ(outcome.results.size(), listed + 15);
  EXPECT_FALSE(outcome.stopped);
  EXPECT_LE(outcome.results.played().size(), 40u);
  const std::vector<const search::Result*> ranked = search::Ranked(outcome.results);
  ASSERT_FALSE(ranked.empty());
  EXPECT_FALSE(ranked.front()->plan.blocking) << "the first value blocks";
  const search::PlanList whole = search::Enumerate(space_, kSize).value();
  const auto setting_of = job_.setting_of;
  const auto all = search::SearchThrough(setting_of, whole, {.top = 1}).value();
  EXPECT_EQ(ranked.front()->step_time, search::Ranked(all).front()->step_time);
}

// Others like it are left, whatever was played.
TEST_F(HeldSpace, IsNotSureOfWhatIsNotListed) {
  const JobOutcome outcome = RunJob({.threads = 1, .budget = "1000"}, job_).value();
  ASSERT_TRUE(outcome.results.least_left().has_value());
  EXPECT_LT(*outcome.results.least_left(), search::Ranked(outcome.results).front()->step_time);
  for (size_t i = 0; i < outcome.results.size(); ++i) EXPECT_FALSE(outcome.results.IsLeft(i)) << i;
}

TEST_F(HeldSpace, CountsVariantsToo) {
  const JobOutcome outcome = RunJob({.threads = 1, .budget = "9"}, job_).value();
  EXPECT_LE(outcome.results.played().size(), 9u);
  const std::vector<std::string> texts = Texts(outcome.results);
  EXPECT_TRUE(std::ranges::any_of(texts, [](const std::string& text) {
    return text.find("--bucket-size 1MiB") != std::string::npos;
  })) << "the last ones are variants";
}

TEST_F(HeldSpace, DoesNotDependOnThreads) {
  job_.top = 1;
  for (const char* budget : {"4", "9", "20"}) {
    const JobOutcome one = RunJob({.threads = 1, .budget = budget}, job_).value();
    const JobOutcome three = RunJob({.threads = 3, .budget = budget}, job_).value();
    EXPECT_EQ(search::ResultsCsv(setting_, one.results),
              search::ResultsCsv(setting_, three.results))
        << budget;
  }
}

// Few are listed, and many there may be: it has a budget by itself.
TEST_F(HeldSpace, HasABudgetWithoutOne) {
  const JobOutcome outcome = RunJob({.threads = 2}, job_).value();
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(outcome.results.size(), outcome.candidates);
  EXPECT_TRUE(outcome.results.least_left().has_value());
}

// What is tried in place of a plan that does not fit is no candidate.
TEST_F(HeldSpace, CountsWhatIsTooLargeAsNothing) {
  job_.relief = [](const ParallelPlan& plan) {
    ParallelPlan other = plan;
    other.recompute = *transforms::ParseRecomputePolicy("full");
    return std::vector<ParallelPlan>{other};
  };
  search::Setting small = search::MlpSetting();
  small.lowering.memory_limit = Bytes(60'000);
  job_.setting_of = [&small](const ParallelPlan&) -> const search::Setting& { return small; };
  const size_t listed = job_.plans.size();
  const JobOutcome outcome = RunJob({.threads = 1, .budget = "24"}, job_).value();
  int variants = 0;
  for (size_t i = listed; i < outcome.candidates; ++i) {
    const search::Result* const result = outcome.results.Played(i);
    variants += result != nullptr && result->ran ? 1 : 0;
  }
  EXPECT_GT(variants, 3);
}

// Of the second round variants alone count.
TEST_F(HeldSpace, ShowsHowFarItIs) {
  job_.top = 1;
  testing::internal::CaptureStderr();
  SetManner({.progress = true});
  const JobOutcome outcome = RunJob({.threads = 2, .budget = "1000"}, job_).value();
  SetManner({});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr(absl::StrCat("\r", outcome.candidates, " of ", outcome.candidates,
                                              " candidates")));
}

// Where none fits, of those that need least: a byte less than that there is.
TEST_F(HeldSpace, TriesWhatTheSmallestStandFor) {
  const auto all = search::SearchThrough(job_.setting_of, job_.plans, {}).value();
  Bytes least = all.played().front().peak_memory;
  for (const search::Result& result : all.played()) least = std::min(least, result.peak_memory);
  search::Setting small = search::MlpSetting();
  small.lowering.memory_limit = Bytes(least.count() - 1);
  job_.setting_of = [&small](const ParallelPlan&) -> const search::Setting& { return small; };
  const size_t listed = job_.plans.size();
  const JobOutcome outcome = RunJob({.threads = 1, .budget = "30"}, job_).value();
  EXPECT_EQ(outcome.candidates, listed + 15);
  const search::SearchRows& rows = outcome.results;
  EXPECT_GT(std::ranges::count_if(rows.played(), &search::Result::ran), 5);
}

TEST(PlaysSome, OfOneProcessThatNeedNotPlayAll) {
  EXPECT_TRUE(PlaysSome({}, 10, nullptr));
  EXPECT_TRUE(PlaysSome({.method = "exhaustive", .budget = "60s"}, 10, nullptr));
  EXPECT_FALSE(PlaysSome({.method = "exhaustive"}, 10, nullptr));
  EXPECT_FALSE(PlaysSome({}, 0, nullptr)) << "--no-prune plays all";
  EXPECT_FALSE(PlaysSome({.resume = "j"}, 10, nullptr));
  EXPECT_FALSE(PlaysSome({.part = "1/2"}, 10, nullptr));
  EXPECT_FALSE(PlaysSome({.merge = {"j"}}, 10, nullptr));
}

}  // namespace
}  // namespace search_job_test_cc
}  // namespace orrery::tools
