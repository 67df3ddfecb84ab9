#include "tools/reports/run_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/models/model_test_util.h"
#include "search/details.h"
#include "search/settings/setting_test_util.h"
#include "tools/reports/run_plots.h"
#include "tools/reports/run_sections.h"

namespace orrery::tools {
namespace run_views_test_cc {
namespace {

using testing::ElementsAre;

// A step of an MLP with all that can be shown of it.
class RunViewsTest : public testing::Test {
 protected:
  explicit RunViewsTest(search::ParallelPlan plan = {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4})
      : plan_(std::move(plan)) {
    setting_.lowering.every_link = true;
    run_ = search::Play(setting_, plan_).value();
    details_ = search::DetailsOf(setting_, plan_, run_).value();
  }
  PlayedPlan Played() const { return {setting_, plan_, run_, details_}; }
  double StepSeconds() const { return run_.report.step_time.seconds(); }

  search::Setting setting_ = search::MlpSetting("uniform:8@200Gbps,device=a100-80gb");
  const search::ParallelPlan plan_;
  search::Run run_;
  simulator::ReportDetails details_;
};

// The numbers of a column, by its place.
double SumOf(const TableView& table, size_t column) {
  double sum = 0;
  for (const std::vector<Cell>& row : table.rows) sum += std::get<double>(row[column]);
  return sum;
}

TEST_F(RunViewsTest, HaveASectionOfEachKind) {
  const RunDocument document = RunViews(Played(), "1");
  std::vector<std::string> ids;
  for (const Section& section : document.sections) {
    ids.push_back(section.id);
    EXPECT_FALSE(section.title.empty());
  }
  EXPECT_THAT(ids, ElementsAre("timeline", "breakdown", "critical-path", "memory", "communication",
                               "links", "roofline", "stages"));
  EXPECT_EQ(document.name, "1");
  EXPECT_EQ(document.flags, "--dp 2 --hp 2 --pp 2 --micro-batches 4 --schedule 1f1b");
}

// Each picture of the page is a plot, by its name.
TEST_F(RunViewsTest, ArePlotsToo) {
  size_t pictures = 0;
  for (const Section& section : RunViews(Played(), "1").sections) {
    for (const View& view : section.views)
      pictures += std::holds_alternative<TableView>(view) ? 0 : 1;
  }
  ASSERT_EQ(RunPlotViews().size(), pictures);
  for (size_t view = 0; view < pictures; ++view) {
    const auto plot = RunPlot(Played(), view);
    ASSERT_TRUE(plot.ok()) << RunPlotViews()[view].name << ": " << plot.status();
    const auto svg = DrawPlot(*plot, PlotFormat::kSvg);
    EXPECT_TRUE(svg.ok()) << RunPlotViews()[view].name << ": " << svg.status();
  }
}

TEST_F(RunViewsTest, FiguresAreThoseOfTheReport) {
  for (const Figure& figure : RunViews(Played(), "1").figures) {
    if (figure.name == "step_time_s") {
      EXPECT_EQ(std::get<double>(figure.value), StepSeconds());
    }
    if (figure.name == "peak_memory_bytes") {
      EXPECT_EQ(std::get<int64_t>(figure.value), run_.report.peak_memory.count());
    }
  }
}

// A slice of each step of the schedule on the rank that runs it, none beside another.
TEST_F(RunViewsTest, TimelineHasEachStepOnce) {
  const auto view = std::get<TimelineView>(TimelineSection(Played()).views.front());
  ASSERT_EQ(view.rows.size(), 2u);
  std::vector<int> forwards(2), backwards(2), updates(2);
  std::vector<double> until(2, 0);
  for (const Slice& slice : view.slices) {
    const auto row = static_cast<size_t>(slice.row);
    EXPECT_LE(until[row], slice.start_s);
    EXPECT_LT(slice.start_s, slice.end_s);
    until[row] = slice.end_s;
    const std::string& kind = view.kinds[static_cast<size_t>(slice.kind)];
    ++(kind == "forward" ? forwards : kind == "backward" ? backwards : updates)[row];
  }
  EXPECT_THAT(forwards, ElementsAre(4, 4));
  EXPECT_THAT(backwards, ElementsAre(4, 4));
  EXPECT_THAT(updates, ElementsAre(1, 1));
  EXPECT_LE(std::max(until[0], until[1]), view.end_s);
}

TEST_F(RunViewsTest, PartsOfTheStepAddUpToIt) {
  const Section section = BreakdownSection(Played());
  EXPECT_NEAR(SumOf(std::get<TableView>(section.views[0]), 1), StepSeconds(), 1e-5 * StepSeconds());
  const auto chart = std::get<ChartView>(section.views[1]);
  for (size_t rank = 0; rank < chart.categories.size(); ++rank) {
    double sum = 0;
    for (const Series& series : chart.panels.front().series) sum += series.points[rank].second;
    EXPECT_NEAR(sum, StepSeconds(), 1e-9 * StepSeconds());
  }
}

TEST_F(RunViewsTest, TheCriticalPathIsTheStep) {
  const Section section = CriticalPathSection(Played());
  EXPECT_NEAR(SumOf(std::get<TableView>(section.views[0]), 1), StepSeconds(), 1e-9 * StepSeconds());
  const auto picture = std::get<TimelineView>(section.views[1]);
  EXPECT_DOUBLE_EQ(picture.slices.back().end_s, StepSeconds());
}

TEST_F(RunViewsTest, MemoryIsThatOfThePeak) {
  const Section section = MemorySection(Played());
  const auto chart = std::get<ChartView>(section.views[1]);
  double most = 0;
  for (size_t rank = 0; rank < chart.categories.size(); ++rank) {
    double sum = 0;
    for (const Series& series : chart.panels.front().series) sum += series.points[rank].second;
    most = std::max(most, sum);
  }
  EXPECT_EQ(most, static_cast<double>(run_.report.peak_memory.count()));
}

// No link carries more than it can, and the line of a link is what it carried.
TEST_F(RunViewsTest, LinksAreNotOverfull) {
  const Section section = LinksSection(Played());
  const auto table = std::get<TableView>(section.views[0]);
  for (const std::vector<Cell>& row : table.rows) {
    for (const size_t share : {3u, 4u, 5u}) EXPECT_LE(std::get<double>(row[share]), 1 + 1e-9);
  }
  for (const Series& line : std::get<ChartView>(section.views[1]).panels.front().series) {
    double sum = 0;
    for (const auto& [time, share] : line.points) {
      EXPECT_LE(share, 1 + 1e-9);
      sum += share;
    }
    EXPECT_NEAR(sum / static_cast<double>(line.points.size()),
                std::get<double>(table.rows.front()[3]), 1e-6);
  }
}

TEST_F(RunViewsTest, KernelsAreBelowTheRoof) {
  const auto chart = std::get<ChartView>(RooflineSection(Played()).views.front());
  double peak = 0;
  for (const Series& series : chart.panels.front().series) {
    if (!series.style.has_value()) continue;
    for (const auto& [intensity, rate] : series.points) peak = std::max(peak, rate);
  }
  for (const Series& series : chart.panels.front().series) {
    EXPECT_TRUE(series.texts.empty() || series.texts.size() == series.points.size());
    for (const auto& [intensity, rate] : series.points) EXPECT_LE(rate, peak * (1 + 1e-9));
  }
}

TEST(Evenly, HasTheFirstAndTheLast) {
  EXPECT_THAT(Evenly(3, 5), ElementsAre(0, 1, 2));
  EXPECT_THAT(Evenly(9, 3), ElementsAre(0, 4, 8));
  EXPECT_THAT(Evenly(9, 1), ElementsAre(0));
  EXPECT_THAT(Evenly(0, 3), ElementsAre());
}

// A schedule that never drains shows the batches that were played.
class AsynchronousRunViewsTest : public RunViewsTest {
 protected:
  AsynchronousRunViewsTest()
      : RunViewsTest({.pp = 4, .microbatches = 4, .schedule = "pipedream"}) {}
};

TEST_F(AsynchronousRunViewsTest, SayHowManyBatchesThereAre) {
  const RunDocument document = RunViews(Played(), "1");
  EXPECT_THAT(document.sections.front().text, ElementsAre(testing::HasSubstr("never drains")));
}

// Nobody tells kernels of a steady state apart: they are one row.
TEST_F(AsynchronousRunViewsTest, PartsOfTheStepAddUpToIt) {
  const auto table = std::get<TableView>(BreakdownSection(Played()).views[0]);
  EXPECT_NEAR(SumOf(table, 1), StepSeconds(), 1e-5 * StepSeconds());
}

// What covers several batches says so.
TEST_F(AsynchronousRunViewsTest, SayWhatIsOfSeveralBatches) {
  for (const MakeSection make : {CriticalPathSection, MemorySection, LinksSection}) {
    const Section section = make(Played());
    EXPECT_THAT(section.text, testing::Contains(testing::HasSubstr("never drains"))) << section.id;
  }
}

// The host updates while the device goes on.
TEST(TimelineSection, HasARowOfTheHost) {
  search::Setting setting = search::MlpSetting("dgx-a100:1");
  setting.step =
      ir::BuildModel("gpt", "layers=6,hidden=1024,heads=8,seq=256,vocab=512", /*batch=*/8);
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.batch_size = 8;
  setting.cost_model = cost_models::MakeCostModel("kernels").value();
  setting.lowering.every_link = true;
  const search::ParallelPlan plan = {
      .dp = 2, .offload = transforms::ParseOffloadPolicy("optimizer").value()};
  const search::Run run = search::Play(setting, plan).value();
  const simulator::ReportDetails details = search::DetailsOf(setting, plan, run).value();
  const auto view =
      std::get<TimelineView>(TimelineSection({setting, plan, run, details}).views.front());
  EXPECT_THAT(view.rows, testing::Contains(testing::EndsWith(", host")));
  std::vector<double> until(view.rows.size(), 0);
  for (const Slice& slice : view.slices) {
    double& row = until[static_cast<size_t>(slice.row)];
    EXPECT_LE(row, slice.start_s);
    row = slice.end_s;
  }
}

}  // namespace
}  // namespace run_views_test_cc
}  // namespace orrery::tools
