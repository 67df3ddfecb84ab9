#include "search/views/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "search/search.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace difference_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

double SumOf(const DividedStep& step) {
  double sum = 0;
  for (const NamedTime& part : step.parts) sum += part.seconds;
  return sum;
}

double PartOf(const DividedStep& step, const std::string& name) {
  for (const NamedTime& part : step.parts) {
    if (part.name == name) return part.seconds;
  }
  return 0;
}

ParallelPlan WithRecompute(ParallelPlan plan) {
  EXPECT_TRUE(transforms::SetAxis(*transforms::FindAxis("recompute"), "full", plan).ok());
  return plan;
}

TEST(Divide, PartsAddUpToTheStep) {
  const Setting setting = MlpSetting();
  for (const ParallelPlan& plan :
       {ParallelPlan{.dp = 8}, ParallelPlan{.dp = 2, .hp = 2, .pp = 2, .microbatches = 4},
        WithRecompute({.dp = 4, .pp = 2, .microbatches = 2})}) {
    const DividedStep step = Divide(setting, plan).value();
    EXPECT_NEAR(SumOf(step) / step.step_time.seconds(), 1, 1e-9);
    EXPECT_EQ(step.memory.total, Play(setting, plan)->report.peak_memory);
  }
}

TEST(Divide, TellsRecomputationApart) {
  const Setting setting = MlpSetting();
  const ParallelPlan plan = {.dp = 4, .pp = 2, .microbatches = 2};
  const DividedStep none = Divide(setting, plan).value();
  const DividedStep full = Divide(setting, WithRecompute(plan)).value();
  EXPECT_EQ(PartOf(none, "recompute"), 0);
  EXPECT_GT(PartOf(full, "recompute"), 0);
  EXPECT_NEAR(PartOf(full, "compute"), PartOf(none, "compute"), 1e-9 * none.step_time.seconds());
}

std::vector<Result> Rows(const Setting& setting) {
  return RunSearch(setting, {{.dp = 8}, {.hp = 8}, {.dp = 4, .hp = 2}, {.dp = 2, .hp = 4}}).value();
}

TEST(FindCandidate, TakesPlacesAndValues) {
  const Setting setting = MlpSetting();
  const SearchRows rows(Rows(setting));
  const std::vector<const Result*> ranked = Ranked(rows);
  EXPECT_EQ(FindCandidate(rows, "1").value(), ranked[0]);
  EXPECT_EQ(FindCandidate(rows, "4").value(), ranked[3]);
  EXPECT_EQ((*FindCandidate(rows, "dp=2"))->plan.hp, 4);
  EXPECT_EQ((*FindCandidate(rows, "tp=2 dp=4"))->plan.hp, 2);
  SearchRows smallest = rows;
  smallest.RankBy(Goal::kMemory);
  EXPECT_EQ(FindCandidate(smallest, "1").value()->plan, Ranked(smallest)[0]->plan);
  EXPECT_EQ((*FindCandidate(smallest, "pp=1"))->plan, ranked[0]->plan) << "the fastest";
  const auto error = [&](const char* text) {
    return std::string(FindCandidate(rows, text).status().message());
  };
  EXPECT_THAT(error("5"), HasSubstr("got place 5; wanted 1 to 4"));
  EXPECT_THAT(error("0"), HasSubstr("got place 0"));
  EXPECT_THAT(error("dp=16"), HasSubstr("none that was played and fits"));
  EXPECT_THAT(error("best"), HasSubstr("wanted a place"));
  EXPECT_THAT(error("width=2"), HasSubstr("wanted a place"));
  for (const char* text : {"", " ", "best", "dp=two", "width=2"}) {
    EXPECT_FALSE(CheckCandidateName(text).ok()) << text;
  }
  for (const char* text : {"1", "dp=2 pp=4", "schedule=zbv"}) {
    EXPECT_TRUE(CheckCandidateName(text).ok()) << text;
  }
  EXPECT_FALSE(FindCandidate(rows, "dp=two").ok());
}

TEST(DifferenceText, GoesFromOneStepToTheOther) {
  const DividedStep slow = {.plan = {.dp = 8},
                            .step_time = Duration(200'000'000'000),
                            .parts = {{"compute", 0.15}, {"exposed all-reduce dp", 0.05}},
                            .memory = {}};
  const DividedStep fast = {.plan = {.hp = 8},
                            .step_time = Duration(100'000'000'000),
                            .parts = {{"compute", 0.06}, {"bubble", 0.04}},
                            .memory = {}};
  const std::string text = DifferenceText(fast, slow, "1", "2");
  EXPECT_THAT(text, HasSubstr("why 1 is 100.0% faster than 2:\n"
                              "  step of 2                            200 ms  "
                              "========================\n"
                              "  compute                            -90.0 ms  -----------\n"
                              "  exposed all-reduce dp              -50.0 ms  ------\n"
                              "  bubble                             +40.0 ms  +++++\n"
                              "  step of 1                            100 ms  ============\n"));
  EXPECT_THAT(text, HasSubstr("1 has --dp 1 --hp 8, 2 --dp 8 --hp 1"));
  EXPECT_THAT(DifferenceText(slow, fast, "A", "B"), HasSubstr("why A is 100.0% slower than B"));
  EXPECT_THAT(DifferenceText(slow, slow, "A", "B"), HasSubstr("no faster than B"));
}

}  // namespace
}  // namespace difference_test_cc
}  // namespace orrery::search
