#include "tools/reports/search_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "search/settings/setting_test_util.h"
#include "search/spaces/space.h"
#include "tools/reports/search_report.h"
#include "transforms/plan/axis.h"

namespace orrery::tools {
namespace search_views_test_cc {
namespace {

class SearchViewsTest : public testing::Test {
 protected:
  SearchViewsTest() {
    search::Space space;
    EXPECT_TRUE(space.List(*transforms::FindAxis("micro-batches"), "1,2,5").ok());
    plans_ = Enumerate(space, {.devices = 8, .batch_size = 48}).value().All();
    setting_.lowering.memory_limit = Bytes(400'000);
    rows_ = RunSearch(setting_, plans_).value();
  }

  search::Setting setting_ = search::MlpSetting();
  std::vector<search::ParallelPlan> plans_;
  search::SearchRows rows_;
};

Cell ValueOf(const CandidateColumn& column, size_t row) { return column.words[column.places[row]]; }

// Cell by cell what the JSON of the search says.
TEST_F(SearchViewsTest, TheTableIsTheJson) {
  const SearchDocument document = SearchTable(setting_, rows_);
  const auto json = nlohmann::ordered_json::parse(ResultsJson(setting_, rows_));
  ASSERT_EQ(document.row_count, json.size());
  EXPECT_EQ(document.all_rows, json.size());
  size_t figures = 0;
  for (size_t row = 0; row < json.size(); ++row) {
    ASSERT_EQ(document.columns.size(), json[row].size());
    for (const CandidateColumn& column : document.columns) {
      const nlohmann::ordered_json& expected = json[row][column.name];
      const Cell value = ValueOf(column, row);
      if (const auto* number = std::get_if<double>(&value)) {
        EXPECT_EQ(expected, *number);
        ++figures;
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        EXPECT_EQ(expected, *text);
      } else if (const auto* whole = std::get_if<int64_t>(&value)) {
        EXPECT_EQ(expected, *whole);
      } else if (const auto* flag = std::get_if<bool>(&value)) {
        EXPECT_EQ(expected, *flag);
      } else {
        EXPECT_TRUE(expected.is_null());
      }
    }
  }
  EXPECT_GT(figures, json.size());
}

TEST_F(SearchViewsTest, RanksWhatFits) {
  const SearchDocument document = SearchTable(setting_, rows_);
  const auto ranked = Ranked(rows_);
  ASSERT_EQ(document.ranked.size(), ranked.size());
  for (size_t i = 0; i < ranked.size(); ++i) {
    EXPECT_EQ(rows_.Played(static_cast<size_t>(document.ranked[i])), ranked[i]);
  }
  EXPECT_FALSE(document.front.empty());
}

// Of more rows than a page holds those that fit come first.
TEST_F(SearchViewsTest, HasTheBestOfTooMany) {
  const auto ranked = Ranked(rows_);
  ASSERT_LT(ranked.size() + 1, rows_.size());
  const SearchDocument document = SearchTable(setting_, rows_, ranked.size() + 1);
  EXPECT_EQ(document.row_count, ranked.size() + 1);
  EXPECT_EQ(document.all_rows, rows_.size());
  for (size_t i = 0; i < ranked.size(); ++i) {
    EXPECT_EQ(document.ranked[i], static_cast<int64_t>(i));
    for (const CandidateColumn& column : document.columns) {
      if (column.name != "step_time_s") continue;
      EXPECT_EQ(std::get<double>(ValueOf(column, i)), ranked[i]->step_time.seconds());
    }
  }
}

// A point is the best of all that have its degrees.
TEST_F(SearchViewsTest, DegreesHaveTheBest) {
  const auto chart = std::get<ChartView>(DegreesSection(setting_, rows_).views.front());
  size_t points = 0;
  for (const Panel& panel : chart.panels) {
    for (const Series& line : panel.series) {
      for (const auto& [hp, throughput] : line.points) {
        ++points;
        double best = 0;
        for (const search::Result* result : Ranked(rows_)) {
          const std::string name = result->plan.microbatches == 1
                                       ? "1 microbatch"
                                       : absl::StrCat(result->plan.microbatches, " microbatches");
          if (panel.title != absl::StrCat("dp ", result->plan.dp) || line.name != name) continue;
          if (static_cast<double>(result->plan.hp) != hp) continue;
          best = std::max(best, result->figures.throughput_samples_per_s);
        }
        EXPECT_EQ(throughput, best);
      }
    }
  }
  EXPECT_GT(points, 5u);
}

TEST_F(SearchViewsTest, EachValueOfAnAxisHasItsBest) {
  search::SearchRows rows = rows_;
  rows.RankBy(search::Goal::kMemory);  // worth is throughput, whatever else was wanted
  const auto table = std::get<TableView>(WorthSection(setting_, rows).views.front());
  const auto ranked = FastestFirst(rows);
  for (const std::vector<Cell>& row : table.rows) {
    const transforms::AxisInfo* axis = transforms::FindAxis(std::get<std::string>(row[0]));
    ASSERT_NE(axis, nullptr);
    const auto best = std::ranges::find_if(ranked, [&](const search::Result* result) {
      return axis->print(result->plan) == std::get<std::string>(row[1]);
    });
    EXPECT_EQ(std::get<double>(row[3]), (*best)->step_time.seconds());
    EXPECT_LE(std::get<double>(row[4]), 1.0);
  }
}

TEST_F(SearchViewsTest, CountsAreOfAllCandidates) {
  const auto table = std::get<TableView>(CountsSection(setting_, rows_).views.front());
  int64_t sum = 0;
  for (const std::vector<Cell>& row : table.rows) sum += std::get<int64_t>(row[1]);
  EXPECT_EQ(sum, static_cast<int64_t>(rows_.size()));
  EXPECT_GT(table.rows.size(), 1u);
}

TEST_F(SearchViewsTest, OfNothingFeasibleHaveNoCharts) {
  const search::SearchRows none;
  EXPECT_TRUE(DegreesSection(setting_, none).views.empty());
  EXPECT_TRUE(FrontSection(setting_, none).views.empty());
  EXPECT_TRUE(WorthSection(setting_, none).views.empty());
  EXPECT_EQ(SearchTable(setting_, none).row_count, 0u);
  EXPECT_TRUE(CandidatesToShow(none).empty());
}

TEST_F(SearchViewsTest, ShowsTheFastestAndTheSmallest) {
  const auto shown = CandidatesToShow(rows_, 2);
  const auto ranked = Ranked(rows_);
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[0], ranked[0]);
  EXPECT_EQ(shown[1], ranked[1]);
  for (const search::Result* result : ranked) {
    EXPECT_LE(shown[2]->peak_memory, result->peak_memory);
  }
}

}  // namespace
}  // namespace search_views_test_cc
}  // namespace orrery::tools
