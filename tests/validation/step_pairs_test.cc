#include "tools/validation/step_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tools/validation/validation_report.h"

namespace orrery::tools {
namespace step_pairs_test_cc {
namespace {

using testing::HasSubstr;

PredictedStep Row(const std::string& id, double seconds, double bytes) {
  PredictedStep row;
  row.step.id = id;
  row.step.source = "paper";
  row.step.split = "holdout";
  row.seconds = seconds;
  row.bytes = bytes;
  return row;
}

PredictedStep Changed(PredictedStep row, const MeasuredStep::Change& change) {
  row.step.change = change;
  return row;
}

std::vector<PredictedStep> Rows() {
  return {
      Row("base", 2.0, 10e9),
      Changed(Row("slower", 2.2, 8e9),
              {.base = "base", .what = "less kept", .time_ratio = 1.05, .memory_bytes = -1e9}),
      Changed(Row("faster", 2.1, 11e9), {.base = "base", .what = "overlap", .time_ratio = 0.9}),
      Changed(Row("same", 2.0, 10e9),
              {.base = "base", .what = "nothing here", .time_ratio = 1.01, .memory_bytes = 1e9}),
      Changed(Row("skipped", 0, 0), {.base = "base", .what = "more", .time_ratio = 2}),
      Changed(Row("alone", 3, 0), {.base = "nobody", .what = "more", .time_ratio = 2})};
}

TEST(StepPairs, OfRowsThatCouldBePredicted) {
  const std::vector<PredictedStep> rows = Rows();
  const std::vector<StepPair> pairs = PairsOf(rows);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_DOUBLE_EQ(pairs[0].predicted_ratio, 1.1);
  EXPECT_DOUBLE_EQ(pairs[0].predicted_bytes, -2e9);
  EXPECT_TRUE(pairs[0].right_sign());
  EXPECT_TRUE(pairs[0].right_memory_sign());
  EXPECT_FALSE(pairs[1].right_sign());
  // A change that is not seen has no sign.
  EXPECT_FALSE(pairs[2].right_sign());
  EXPECT_FALSE(pairs[2].right_memory_sign());
}

TEST(StepPairs, RatiosFollowFromTheRowsWhereNoneIsSaid) {
  PredictedStep base = Row("base", 2, 5e9), other = Row("other", 3, 6e9);
  base.step.seconds = 4;
  other.step.seconds = 5;
  base.step.bytes = 2e9;
  other.step.bytes = 2.5e9;
  const std::vector<PredictedStep> rows = {base, Changed(other, {.base = "base", .what = "more"})};
  const std::vector<StepPair> pairs = PairsOf(rows);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_DOUBLE_EQ(pairs[0].measured_ratio, 1.25);
  EXPECT_DOUBLE_EQ(*pairs[0].measured_bytes, 0.5e9);
}

TEST(StepPairs, AreCounted) {
  const std::vector<PredictedStep> rows = Rows();
  const std::vector<PairFigures> figures = FiguresOf(PairsOf(rows));
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].of, "time");
  EXPECT_EQ(figures[0].count, 3);
  EXPECT_EQ(figures[0].right_signs, 1);
  EXPECT_NEAR(figures[0].mean, ((1.1 / 1.05 - 1) + (1.05 / 0.9 - 1) + (1 - 1 / 1.01)) / 3, 1e-12);
  EXPECT_EQ(figures[1].of, "memory");
  EXPECT_EQ(figures[1].count, 2);
  EXPECT_EQ(figures[1].right_signs, 1);
}

TEST(StepPairs, AsText) {
  const std::vector<PredictedStep> rows = Rows();
  EXPECT_EQ(PairTable(PairsOf(rows)), R"(
what changed  split    of           measured  predicted   sign
less kept     holdout  time, ratio    1.0500     1.1000  right
less kept     holdout  memory, GB     -1.000     -2.000  right
overlap       holdout  time, ratio    0.9000     1.0500  wrong
nothing here  holdout  time, ratio    1.0100     1.0000  wrong
nothing here  holdout  memory, GB     +1.000     +0.000  wrong
pairs of paper, holdout, time: 3, of which 1 have the right sign; mean error of the ratio 7.47%
pairs of paper, holdout, memory: 2, of which 1 have the right sign
)");
  EXPECT_EQ(PairTable({}), "");
  const ValidationReport report = {.steps = rows};
  EXPECT_THAT(ReportCsv(report), HasSubstr("\nslower,,2.2,,,,8000000000,,paper,holdout,base,less "
                                           "kept,1.05,1.1,-1000000000,-2000000000\n"));
  const auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["pairs"].size(), 3u);
  EXPECT_EQ(json["pairs"][0]["right_sign"], true);
  EXPECT_TRUE(json["pairs"][1]["measured_bytes"].is_null());
  EXPECT_EQ(json["pair_figures"][0]["right_signs"], 1);
}

// Ratios of times or of throughput, and changes of memory; rows that have nothing else count.
TEST(StepPairs, AreReadFromRows) {
  const auto steps = ReadMeasuredSteps(SourceDir() + "/tests/data/validation_pairs.json");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 4u);
  EXPECT_FALSE((*steps)[0].change.has_value());
  EXPECT_TRUE((*steps)[0].compared);
  EXPECT_EQ((*steps)[1].change->base, "own-base");
  EXPECT_DOUBLE_EQ((*steps)[1].change->time_ratio, 1.3);
  EXPECT_DOUBLE_EQ(*(*steps)[1].change->memory_bytes, -4e9);
  EXPECT_DOUBLE_EQ((*steps)[2].change->time_ratio, 1 / 0.8);
  EXPECT_FALSE((*steps)[2].change->memory_bytes.has_value());
  EXPECT_FALSE((*steps)[3].compared);
  const std::vector<std::string> files = {SourceDir() + "/tests/data/validation_pairs.json"};
  const auto report = PredictAll(files, "");
  ASSERT_TRUE(report.ok()) << report.status();
  const std::vector<StepPair> pairs = PairsOf(report->steps);
  ASSERT_EQ(pairs.size(), 2u);
  // All is computed again, which keeps less; half of the devices take longer.
  EXPECT_TRUE(pairs[0].right_sign());
  EXPECT_TRUE(pairs[0].right_memory_sign());
  EXPECT_GT(pairs[1].predicted_ratio, 1.5);
  EXPECT_EQ(SkippedOf(report->steps).at("neither a time nor memory was measured"), 1);
}

}  // namespace
}  // namespace step_pairs_test_cc
}  // namespace orrery::tools
