#include "tools/jitter/steps_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "simulator/jitter/distribution.h"

namespace orrery::tools {
namespace steps_report_test_cc {
namespace {

search::StepsQuestion Question() {
  search::StepsQuestion question{.disturbances = {}, .steps = 2};
  question.disturbances.rank =
      simulator::Spread{simulator::FindJitterDistribution("lognormal"), 0.01};
  question.disturbances.pauses =
      simulator::Pauses{.length = Duration(20'000'000'000), .every = Duration(30'000'000'000'000)};
  question.disturbances.slow = {{5, 1.3}};
  question.disturbances.seed = 9;
  question.links = {{.name = "nic", .links = {}, .share = 0.5}};
  return question;
}

search::StepsAnswer Answer() {
  search::StepsAnswer answer;
  answer.folding = search::StepsFolding::kFromBothSides;
  answer.undisturbed = Duration(1'000'000'000'000);
  answer.own_stragglers = true;
  answer.times = {Duration(1'100'000'000'000), Duration(1'300'000'000'000)};
  answer.figures = simulator::FiguresOf(answer.times);
  answer.at_least = simulator::StepFigures{.mean_s = 1.15, .p50_s = 1.14};
  answer.waits = {{.rank = 0, .ranks = 8, .waits_s = 0.3, .undisturbed_s = 0.1},
                  {.rank = 8, .ranks = 8, .waits_s = 0.1, .mostly_for = 5, .for_it_s = 0.05}};
  answer.late = {{.rank = 5, .share = 0.75}, {.rank = 9, .share = 0.25}};
  answer.without = {{"slow rank=5", {.mean_s = 1.08, .p95_s = 1.09}}};
  return answer;
}

TEST(StepsText, IsALineAFigure) {
  EXPECT_EQ(
      StepsText(Question(), Answer()),
      "2 steps, seed 9: rank lognormal 1 %, gc 20.0 ms every 30.0 s, slow rank 5 x 1.3, nic links "
      "at 50 % of their rate\n"
      "  step                     1.200 s mean; p5 1.110 s, p50 1.200 s, p95 1.290 s, p99 1.298 s\n"
      "  undisturbed              1.000 s; the mean is +20.0 %; without the cost model's own "
      "stragglers, as ranks draw here\n"
      "  simulated                16 ranks as 2 classes at the pace of their slowest: times "
      "are bounds from above\n"
      "  at least                 1.150 s mean; p50 1.140 s, of ranks that wait for none of "
      "other replicas; each rank by itself: --most-unfolded-tasks\n"
      "  waits for others         200.0 ms a rank and step, 50.00 ms undisturbed\n"
      "  waited for most          rank 5 75.0 %, rank 9 25.0 %\n"
      "  waits most               rank 8 and 7 alike for rank 5: 50.00 ms a step\n"
      "  without slow rank=5      1.080 s mean, 10.0 % faster; p95 1.090 s\n");
}

TEST(StepsJson, HasAllFigures) {
  const nlohmann::json json = nlohmann::json::parse(StepsJson(Question(), Answer()));
  EXPECT_EQ(json["count"], 2);
  EXPECT_EQ(json["seed"], 9);
  EXPECT_DOUBLE_EQ(json["mean_s"], 1.2);
  EXPECT_DOUBLE_EQ(json["p5_s"], 1.11);
  EXPECT_DOUBLE_EQ(json["p99_s"], 1.298);
  EXPECT_DOUBLE_EQ(json["undisturbed_s"], 1);
  EXPECT_EQ(json["simulated"], "folded, bounds");
  EXPECT_DOUBLE_EQ(json["at_least"]["mean_s"], 1.15);
  ASSERT_EQ(json["waiting"].size(), 2);
  EXPECT_TRUE(json["waiting"][0]["mostly_for"].is_null());
  EXPECT_EQ(json["waiting"][1]["mostly_for"], 5);
  EXPECT_DOUBLE_EQ(json["waited_for"][0]["share"], 0.75);
  EXPECT_EQ(json["what_if"][0]["without"], "slow rank=5");
  EXPECT_NEAR(json["what_if"][0]["faster"].get<double>(), 0.1, 1e-12);
  ASSERT_EQ(json["times_s"].size(), 2);
  EXPECT_DOUBLE_EQ(json["times_s"][1], 1.3);
}

TEST(DisturbancesText, SaysWhereThereAreNone) {
  EXPECT_EQ(DisturbancesText({}), "nothing disturbs them");
}

}  // namespace
}  // namespace steps_report_test_cc
}  // namespace orrery::tools
