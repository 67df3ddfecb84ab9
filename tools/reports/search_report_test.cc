#include "tools/reports/search_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "search/settings/setting_test_util.h"
#include "search/spaces/space.h"

namespace orrery::tools {
namespace search_report_test_cc {
namespace {

// What a row of the search says is what its run says.
TEST(AddSearch, RunsAreOfTheirRows) {
  const search::Space space;
  search::Settings settings =
      search::Settings::Make(space,
                             [](const search::ParallelPlan&) -> absl::StatusOr<search::Setting> {
                               return search::MlpSetting();
                             })
          .value();
  const auto plans = Enumerate(space, {.devices = 8, .batch_size = 48}).value().All();
  const search::SearchRows rows = RunSearch(settings.AsFunction(), plans).value();
  Document document;
  ASSERT_TRUE(AddSearch(settings, rows, document).ok());
  ASSERT_EQ(document.searches.size(), 1u);
  const SearchDocument search = document.searches.front();
  EXPECT_EQ(document.title, search.title);
  ASSERT_GE(search.runs.size(), 3u);
  for (const RunDocument& run : search.runs) {
    const search::Result* const result = rows.Played(static_cast<size_t>(run.row));
    ASSERT_NE(result, nullptr);
    EXPECT_EQ(std::get<double>(run.figures.front().value), result->step_time.seconds());
    EXPECT_FALSE(run.sections.empty());
  }
  // Of a second search sections say which they are of.
  const size_t sections = document.sections.size();
  ASSERT_TRUE(AddSearch(settings, rows, document).ok());
  EXPECT_EQ(document.title, "Several searches");
  EXPECT_EQ(document.sections.size(), 2 * sections);
  std::set<std::string> ids;
  for (const Section& section : document.sections) {
    EXPECT_THAT(section.title, testing::EndsWith(search.title));
    EXPECT_TRUE(ids.insert(section.id).second) << section.id;
  }
}

}  // namespace
}  // namespace search_report_test_cc
}  // namespace orrery::tools
