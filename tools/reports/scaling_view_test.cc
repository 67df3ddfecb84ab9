#include "tools/reports/scaling_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/settings/setting_test_util.h"
#include "search/spaces/space.h"
#include "transforms/plan/axis.h"

namespace orrery::tools {
namespace scaling_view_test_cc {
namespace {

using testing::ElementsAre;
using testing::Pair;

// A search of one model, whose points have so many devices each, all by data parallelism.
ScalingLine Line(int64_t dim, int64_t batch, const std::string& cluster,
                 const std::vector<std::pair<int64_t, double>>& points) {
  ScalingLine line{.model = absl::StrCat("mlp:layers=8,dim=", dim),
                   .cluster = cluster,
                   .batch_size = batch,
                   .model_columns = {{"layers", int64_t{8}}, {"dim", dim}}};
  for (const auto& [devices, throughput] : points) {
    line.points.push_back({.devices = devices,
                           .degrees = {devices, 1, 1, 1, 1},
                           .throughput = throughput,
                           .plan = "plan"});
    line.degrees[0].insert(devices);
    for (size_t d = 1; d < kDegreeCount; ++d) line.degrees[d].insert(1);
  }
  return line;
}

const std::vector<Series>& SeriesOf(const ChartView& chart) { return chart.panels.front().series; }

TEST(ScalingLineOf, HasTheFastestOnSoManyDevices) {
  search::Space space;
  for (const char* axis : {"dp", "pp"}) {
    ASSERT_TRUE(space.List(*transforms::FindAxis(axis), "1,2,4").ok());
  }
  ASSERT_TRUE(space.List(*transforms::FindAxis("hp"), "1").ok());
  const search::Setting setting = search::MlpSetting();
  const auto plans = Enumerate(space, {.devices = 8, .batch_size = 48}).value().All();
  search::SearchRows rows = RunSearch(setting, plans).value();
  rows.RankBy(search::Goal::kMemory);  // whatever else was wanted
  const ScalingLine line = ScalingLineOf(setting, rows);
  std::map<int64_t, double> best;
  for (const search::Result* result : FastestFirst(rows)) {
    best.try_emplace(result->plan.ranks(), result->figures.throughput_samples_per_s);
  }
  ASSERT_EQ(line.points.size(), best.size());
  ASSERT_GT(best.size(), 2u);
  for (const ScalingPoint& point : line.points) {
    EXPECT_EQ(point.throughput, best.at(point.devices));
    EXPECT_EQ(point.degrees[0] * point.degrees[2], point.devices);
  }
  const std::vector<ScalingLine> lines = {line};
  EXPECT_EQ(ScalingChart(lines).x.name, "devices") << "two degrees vary";
}

TEST(ScalingChart, IsOverTheDegreeThatVaries) {
  const std::vector<ScalingLine> lines = {Line(64, 512, "uniform:8", {{2, 10}, {4, 15}}),
                                          Line(64, 1024, "uniform:8", {{2, 20}, {4, 40}})};
  const ChartView chart = ScalingChart(lines);
  EXPECT_EQ(chart.title, "Throughput of mlp:layers=8,dim=64, on uniform:8");
  EXPECT_EQ(chart.x.name, "data-parallel degree");
  ASSERT_EQ(SeriesOf(chart).size(), 2u);
  EXPECT_EQ(SeriesOf(chart)[1].name, "batch 1024");
  EXPECT_THAT(SeriesOf(chart)[1].points, ElementsAre(Pair(2, 20), Pair(4, 40)));
}

// Models are told by the keys in which they differ; what is alike is in the title.
TEST(ScalingChart, NamesWhatDiffers) {
  const std::vector<ScalingLine> lines = {Line(64, 512, "uniform:8", {{2, 10}, {4, 15}}),
                                          Line(128, 512, "uniform:8", {{2, 10}, {4, 15}})};
  const ChartView chart = ScalingChart(lines);
  EXPECT_EQ(chart.title, "Throughput of mlp, layers 8, batch 512, on uniform:8");
  EXPECT_THAT(NamesOf(lines), ElementsAre("dim 64", "dim 128"));
  std::vector<ScalingLine> files = lines;
  for (ScalingLine& line : files) line.model_columns.clear();
  files[1].batch_size = 1024;
  EXPECT_THAT(NamesOf(files),
              ElementsAre("mlp:layers=8,dim=64, batch 512", "mlp:layers=8,dim=128, batch 1024"));
}

// Clusters of several sizes make one line a kind of cluster.
TEST(ScalingChart, JoinsSizesOfClusters) {
  const std::vector<ScalingLine> lines = {
      Line(64, 512, "dgx-h100:2", {{16, 40}}), Line(64, 512, "dgx-h100:1", {{8, 20}}),
      Line(64, 512, "dgx-a100:1", {{8, 10}}), Line(64, 512, "dgx-a100:2", {{16, 15}})};
  const ChartView chart = ScalingChart(lines);
  ASSERT_EQ(SeriesOf(chart).size(), 2u);
  EXPECT_EQ(SeriesOf(chart)[0].name, "dgx-h100");
  EXPECT_THAT(SeriesOf(chart)[0].points, ElementsAre(Pair(8, 20), Pair(16, 40)));
  EXPECT_THAT(SeriesOf(chart)[1].points, ElementsAre(Pair(8, 10), Pair(16, 15)));
}

}  // namespace
}  // namespace scaling_view_test_cc
}  // namespace orrery::tools
