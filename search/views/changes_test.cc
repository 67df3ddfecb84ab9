#include "search/views/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "search/settings/setting_test_util.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace changes_test_cc {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;

std::vector<std::string> TextsOf(const Setting& setting, const ParallelPlan& plan) {
  std::vector<std::string> texts;
  for (const ParallelPlan& other : SingleChanges(setting, plan)) {
    texts.push_back(ChangeText(plan, other));
  }
  return texts;
}

constexpr int64_t kAll = int64_t{1} << 50;  // work

const ParallelPlan kPlan = {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4};

TEST(SingleChanges, GoAlongEveryAxis) {
  const std::vector<std::string> texts = TextsOf(MlpSetting(), kPlan);
  EXPECT_THAT(texts, IsSupersetOf<std::string>(
                         {"--micro-batches 8", "--micro-batches 2", "--schedule gpipe", "--zero 1",
                          "--zero 3", "--recompute full", "--sharding megatron", "--blocking",
                          "--dp 4 --pp 1 --micro-batches 2", "--dp 4 --hp 1", "--hp 4 --pp 1",
                          "--dp 1 --hp 4"}));
  EXPECT_THAT(texts, Contains(testing::StartsWith("--bucket-size ")));
  EXPECT_THAT(texts, Not(Contains(testing::HasSubstr("--dtype"))));
  EXPECT_EQ(std::set(texts.begin(), texts.end()).size(), texts.size());
}

TEST(SingleChanges, UseNoMoreDevicesThanThereAre) {
  const Setting setting = MlpSetting();
  for (const ParallelPlan& other : SingleChanges(setting, kPlan)) {
    EXPECT_LE(other.ranks(), setting.cluster.size()) << transforms::ToString(other);
  }
}

TEST(TryChanges, FindsTheBestOfThem) {
  Setting setting = MlpSetting();
  setting.lowering.every_link = true;
  const search::Run run = Play(setting, kPlan).value();
  const TriedChanges tried = TryChanges(setting, kPlan, run, 3, kAll).value();
  EXPECT_TRUE(setting.lowering.every_link);
  EXPECT_EQ(tried.tried + tried.left, SingleChanges(setting, kPlan).size());
  ASSERT_EQ(tried.best.size(), 3u);
  // Beside what searching them one by one finds.
  setting.lowering.every_link = false;
  Duration best = run.report.step_time;
  for (const ParallelPlan& other : SingleChanges(setting, kPlan)) {
    const Result result = Evaluate(setting, other).value();
    if (result.feasible()) best = std::min(best, result.step_time);
  }
  EXPECT_EQ(tried.best[0].step_time, best);
  EXPECT_LE(tried.best[0].step_time, tried.best[1].step_time);
  EXPECT_LE(tried.best[1].step_time, tried.best[2].step_time);
}

TEST(TryChanges, LeavesWhatIsTooMuchWork) {
  Setting setting = MlpSetting();
  const search::Run run = Play(setting, kPlan).value();
  const TriedChanges few = TryChanges(setting, kPlan, run, 3, 1).value();
  EXPECT_GT(few.left, 0u);
  EXPECT_EQ(few.tried + few.left, SingleChanges(setting, kPlan).size());
  // However busy the machine is.
  const TriedChanges again = TryChanges(setting, kPlan, run, 3, 1).value();
  EXPECT_EQ(again.left, few.left);
  ASSERT_EQ(again.best.size(), few.best.size());
  for (size_t i = 0; i < few.best.size(); ++i) EXPECT_EQ(again.best[i].plan, few.best[i].plan);
}

// Whatever the plan, none of its neighbours is an error of the question.
TEST(TryChanges, WorksFromAnyPlan) {
  Setting setting = MlpSetting();
  int plans = 0;
  for (const char* text :
       {"--dp 8", "--pp 4 --micro-batches 8 --schedule zb-h1",
        "--dp 2 --pp 2 --schedule interleaved --chunks 2 --micro-batches 4",
        "--dp 4 --zero 3 --prefetch 2 --recompute full", "--hp 8 --blocking",
        "--pp 4 --micro-batches 8 --schedule pipedream", "--dp 1",
        "--dp 4 --offload optimizer+activations", "--dp 2 --hp 4 --order pp,dp,hp",
        "--pp 2 --micro-batches 8 --schedule dualpipe-v"}) {
    if (++plans > CasesToWalk(10)) break;
    const ParallelPlan plan = transforms::ParsePlan(text).value();
    const absl::StatusOr<search::Run> run = Play(setting, plan);
    ASSERT_TRUE(run.ok()) << text << ": " << run.status();
    const absl::StatusOr<TriedChanges> tried = TryChanges(setting, plan, *run, 1, kAll);
    ASSERT_TRUE(tried.ok()) << text << ": " << tried.status();
    EXPECT_GT(tried->tried, 10u) << text;
  }
}

TEST(ChangeText, IsWhatToType) {
  EXPECT_EQ(ChangeText(kPlan, {.dp = 4, .hp = 1, .pp = 2, .microbatches = 4}), "--dp 4 --hp 1");
  EXPECT_EQ(ChangeText(kPlan, kPlan), "");
}

}  // namespace
}  // namespace changes_test_cc
}  // namespace orrery::search
