#include "search/views/step_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/details.h"
#include "search/settings/setting_test_util.h"
#include "search/views/changes.h"

namespace orrery::search {
namespace step_summary_test_cc {
namespace {

using testing::HasSubstr;

double SumOf(const std::vector<NamedTime>& parts) {
  double sum = 0;
  for (const NamedTime& part : parts) sum += part.seconds;
  return sum;
}

const std::vector<ParallelPlan>& Plans() {
  static const auto& plans =
      *new std::vector<ParallelPlan>{{.dp = 2, .hp = 2, .pp = 2, .microbatches = 4},
                                     {.dp = 8},
                                     {.hp = 8},
                                     {.pp = 4, .microbatches = 8},
                                     {.dp = 4, .pp = 2, .microbatches = 2, .zero = 3}};
  return plans;
}

Setting Linked() {
  Setting setting = MlpSetting();
  setting.lowering.every_link = true;
  return setting;
}

TEST(StepSummary, PartsAddUpToTheStep) {
  const Setting setting = Linked();
  for (const ParallelPlan& plan : Plans()) {
    const search::Run run = Play(setting, plan).value();
    const double step = run.report.step_time.seconds();
    // Kernels of each kind are told in whole nanoseconds.
    EXPECT_NEAR(SumOf(PartsOf(run, DetailsOf(setting, plan, run).value())), step, 4e-9);
    EXPECT_NEAR(SumOf(PathParts(run)) / run.trace.makespan.seconds(), 1, 1e-9);
  }
}

TEST(StepSummary, LimitsAreNoLongerThanTheStep) {
  const Setting setting = Linked();
  for (const ParallelPlan& plan : Plans()) {
    const search::Run run = Play(setting, plan).value();
    const std::vector<NamedTime> limits = LimitsOf(setting, run);
    EXPECT_GE(limits.size(), 2u);
    for (const NamedTime& limit : limits) {
      EXPECT_GT(limit.seconds, 0) << limit.name;
      EXPECT_LE(limit.seconds, run.report.step_time.seconds() * (1 + 1e-9)) << limit.name;
    }
  }
}

TEST(StepSummary, IsTenLines) {
  Setting setting = Linked();
  const ParallelPlan plan = Plans()[0];
  const search::Run run = Play(setting, plan).value();
  const auto details = DetailsOf(setting, plan, run).value();
  const TriedChanges tried = TryChanges(setting, plan, run, 4, int64_t{1} << 40).value();
  const std::string text = SummaryText(setting, plan, run, details, tried);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 10);
  for (const char* part : {"where the time goes", "products ", "critical path", "alone would take",
                           "kernels of rank", "single changes of the plan"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, HasSubstr(ChangeText(plan, tried.best[0].plan)));
  EXPECT_THAT(SummaryText(setting, plan, run, details, {.tried = 3, .left = 2, .best = {}}),
              HasSubstr("none of 3 single changes of the plan (2 more not reached) fits"));
}

// What the device waits for is time of kernels elsewhere: here it has a line of its own.
TEST(StepSummary, NamesTheHost) {
  Setting setting = Linked();
  const ParallelPlan plan = {.dp = 8};
  const auto text = [&] {
    const search::Run run = Play(setting, plan).value();
    const auto details = DetailsOf(setting, plan, run).value();
    const TriedChanges tried = TryChanges(setting, plan, run, 4, 0).value();
    EXPECT_EQ(tried.without_launches.has_value(), setting.lowering.kernels.launch > Duration(0));
    return SummaryText(setting, plan, run, details, tried);
  };
  const Duration ideal = Play(setting, plan).value().report.step_time;
  EXPECT_THAT(text(), testing::Not(HasSubstr("waits for its host")));
  setting.lowering.kernels.launch = Duration(1'000'000'000);  // a millisecond
  EXPECT_THAT(text(), HasSubstr("waits for its host "));
  EXPECT_THAT(text(), HasSubstr("more slowly than they run: "));
  EXPECT_EQ(TryChanges(setting, plan, Play(setting, plan).value(), 4, 0).value().without_launches,
            ideal);
  EXPECT_EQ(setting.lowering.kernels.launch, Duration(1'000'000'000));  // put back
}

}  // namespace
}  // namespace step_summary_test_cc
}  // namespace orrery::search
