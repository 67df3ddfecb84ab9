#include "tools/goodput/goodput_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "tools/goodput/goodput_views.h"

namespace orrery::tools {
namespace goodput_files_test_cc {
namespace {

using nlohmann::json;
using simulator::goodput::Episode;
using testing::HasSubstr;

GoodputAnswer Answer() {
  GoodputAnswer answer;
  answer.flags.checkpoint = "host:every=2m,pfs:every=1h";
  answer.flags.preemption = "every=72h,away=1h";
  answer.facts = {.name = "a job",
                  .shape = {.hosts = 128, .replicas = 16},
                  .devices = 1'024,
                  .step_s = 10,
                  .slow_step_s = 12,
                  .checkpoint_bytes = 1e12,
                  .host_copy_rate = 20e9,
                  .card_rate = 400e9};
  answer.question = QuestionOf(answer.flags, answer.facts, {}).value();
  answer.results = PlayTrials(answer.question.spec, 30, {});
  answer.summary = Summarize(answer.question.spec, answer.results);
  return answer;
}

std::vector<Episode> FirstRun(const GoodputAnswer& answer) {
  std::vector<Episode> episodes;
  PlayTrial(answer.question.spec, static_cast<uint64_t>(answer.flags.seed), 0, &episodes);
  return episodes;
}

TEST(GoodputFiles, JsonHasSharesThatAddUp) {
  const json parsed = json::parse(GoodputJson(Answer()));
  double sum = parsed["effective_time_fraction"];
  for (const auto& [cause, share] : parsed["lost"].items()) sum += share.get<double>();
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(parsed["lost"].size(), simulator::goodput::kCauseCount);
  EXPECT_GT(parsed["lost"]["preemption"], 0);
  EXPECT_GT(parsed["best_interval_s"], 0);
  EXPECT_EQ(parsed["checkpoints"][0]["tier"], "host");
  EXPECT_EQ(parsed["checkpoints"][0]["every_steps"], 12);
  EXPECT_EQ(parsed["trials"], 30);
  EXPECT_NEAR(parsed["interruptions"], 30 * 86'400 / parsed["mtbf_s"].get<double>(),
              3 * parsed["interruptions_ci95"].get<double>());
}

TEST(GoodputFiles, RowsAddUpToTheLengthOfARun) {
  const GoodputAnswer answer = Answer();
  const std::vector<std::string> lines = absl::StrSplit(GoodputCsv(answer), '\n');
  ASSERT_EQ(lines.size(), 32u);  // and an empty one
  const std::vector<std::string> header = absl::StrSplit(lines[0], ',');
  for (size_t row = 1; row <= 30; ++row) {
    const std::vector<std::string> cells = absl::StrSplit(lines[row], ',');
    ASSERT_EQ(cells.size(), header.size());
    double sum = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (header[i] == "effective_time_fraction") {
        sum += std::stod(cells[i]) * answer.question.spec.length_s;
      }
      if (header[i].ends_with("_s")) sum += std::stod(cells[i]);
    }
    EXPECT_NEAR(sum, answer.question.spec.length_s, 1e-3) << lines[row];
  }
}

TEST(GoodputFiles, TraceIsOneRowWithoutGaps) {
  const std::vector<Episode> episodes = FirstRun(Answer());
  const json parsed = json::parse(EpisodesTrace(episodes));
  double end = 0;
  size_t slices = 0;
  for (const json& event : parsed["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_NEAR(event["ts"], end, 1);
    end = event["ts"].get<double>() + event["dur"].get<double>();
    ++slices;
  }
  EXPECT_EQ(slices, episodes.size());
  EXPECT_NEAR(end, 30 * 86'400e6, 1);
}

TEST(GoodputFiles, TextSaysWhatJsonSays) {
  const GoodputAnswer answer = Answer();
  const std::string text = GoodputText(answer);
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("%.2f %% +-", 100 * answer.summary.effective.mean)));
  EXPECT_THAT(text, HasSubstr("host every 2 min (12 steps)"));
  EXPECT_THAT(text, HasSubstr("preemption"));
  EXPECT_THAT(TimelineText(FirstRun(answer)), HasSubstr("16 of 16 replicas"));
}

TEST(GoodputFiles, ViewsAreThoseThatPlotsName) {
  const GoodputAnswer answer = Answer();
  const std::vector<Section> sections =
      GoodputViews(answer, {{1, 10, 0.9}, {2, 20, 0.95}}, FirstRun(answer));
  for (const PlotView& view : GoodputPlotViews()) {
    EXPECT_TRUE(PictureOf(sections, view.name).ok()) << view.name;
  }
  double runs = 0;
  for (const Section& section : sections) {
    for (const View& view : section.views) {
      const auto* const chart = std::get_if<ChartView>(&view);
      if (chart == nullptr || chart->name != "runs") continue;
      for (const auto& [x, y] : chart->panels[0].series[0].points) runs += y;
    }
  }
  EXPECT_EQ(runs, 30);
}

}  // namespace
}  // namespace goodput_files_test_cc
}  // namespace orrery::tools
