#include "tools/searches/search_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "search/settings/setting_test_util.h"
#include "search/spaces/space.h"
#include "support/file.h"

namespace orrery::tools {
namespace search_files_test_cc {
namespace {

using testing::HasSubstr;

class SearchFilesTest : public testing::Test {
 protected:
  SearchFilesTest() {
    const auto plans = Enumerate(space_, {.devices = 4, .batch_size = 48}).value().All();
    rows_ = RunSearch(settings_.AsFunction(), plans).value();
  }
  static std::string Path(const char* name) { return absl::StrCat(testing::TempDir(), "/", name); }

  const search::Space space_;
  search::Settings settings_ =
      search::Settings::Make(space_,
                             [](const search::ParallelPlan&) -> absl::StatusOr<search::Setting> {
                               return search::MlpSetting();
                             })
          .value();
  search::SearchRows rows_;
};

TEST_F(SearchFilesTest, HoldAllSearchesUnderOneHeader) {
  SearchFiles files({.csv = Path("two.csv"), .json = "", .report = ""}, {});
  files.Add(settings_, rows_, /*is_part=*/false);
  files.Add(settings_, rows_, /*is_part=*/false);
  ASSERT_TRUE(files.Write().ok());
  const std::string once = ResultsCsv(settings_.front(), rows_);
  EXPECT_EQ(ReadFile(Path("two.csv")).value(), once + once.substr(once.find('\n') + 1));
}

// A search is not lost with its report.
TEST_F(SearchFilesTest, TablesAreWrittenWhereTheReportIsNot) {
  SearchFiles files({.csv = Path("kept.csv"), .json = "", .report = "/dev/null/no.html"}, {});
  files.Add(settings_, rows_, /*is_part=*/false);
  const absl::Status status = files.Write();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/null/no.html"));
  EXPECT_EQ(ReadFile(Path("kept.csv")).value(), ResultsCsv(settings_.front(), rows_));
}

// What is played afterwards is played as it would have been.
TEST_F(SearchFilesTest, LeavesTheSettingAsItIs) {
  SearchFiles files({.csv = "", .json = "", .report = Path("left.html")}, {});
  files.Add(settings_, rows_, /*is_part=*/false);
  EXPECT_FALSE(settings_.front().lowering.every_link);
  EXPECT_TRUE(files.Write().ok());
}

// Each search has its columns in the table; of those that are not played plots say so.
TEST_F(SearchFilesTest, DrawSearchesTogether) {
  SearchFiles files({}, {{.view = 1, .path = Path("together.svg")}});
  files.Add(settings_, rows_, /*is_part=*/false);
  files.Add(settings_, rows_, /*is_part=*/false);
  ASSERT_TRUE(files.Write().ok());
  EXPECT_THAT(ReadFile(Path("together.svg")).value(), HasSubstr("devices"));
}

}  // namespace
}  // namespace search_files_test_cc
}  // namespace orrery::tools
