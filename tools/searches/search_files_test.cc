#include "tools/searches/search_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
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

// Both are open until the last search is there; one that has no rows leaves nothing.
TEST_F(SearchFilesTest, HoldAllSearchesInOneList) {
  std::filesystem::remove(Path("rows.json"));
  SearchFiles files({.csv = Path("rows.csv"), .json = Path("rows.json"), .threads = 3}, {});
  files.Add(settings_, {}, /*is_part=*/false);
  files.Add(settings_, rows_, /*is_part=*/false);
  files.Add(settings_, {}, /*is_part=*/false);
  files.Add(settings_, rows_, /*is_part=*/false);
  EXPECT_FALSE(ReadFile(Path("rows.json")).ok()) << "half written";
  ASSERT_TRUE(files.Write().ok());
  const std::string csv = ResultsCsv(settings_.front(), rows_);
  EXPECT_EQ(ReadFile(Path("rows.csv")).value(), csv + csv.substr(csv.find('\n') + 1));
  const std::string json = ResultsJson(settings_.front(), rows_);
  const std::string list = json.substr(1, json.size() - 4);  // without "[" and "\n]\n"
  EXPECT_EQ(ReadFile(Path("rows.json")).value(), absl::StrCat("[", list, ",", list, "\n]\n"));
}

// On a stream tables come behind what is told meanwhile, not between.
TEST_F(SearchFilesTest, ComeToAStreamAtTheEnd) {
  const int stream = open(Path("stream").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(stream, 0);
  const std::string path = absl::StrCat("/dev/fd/", stream);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no /dev/fd here";
  SearchFiles files({.csv = path}, {});
  std::string told;
  for (const char* search : {"one\n", "two\n"}) {
    told += search;
    ASSERT_EQ(write(stream, search, 4), 4);
    files.Add(settings_, rows_, /*is_part=*/false);
  }
  EXPECT_EQ(ReadFile(Path("stream")).value(), told);
  ASSERT_TRUE(files.Write().ok());
  close(stream);
  const std::string csv = ResultsCsv(settings_.front(), rows_);
  EXPECT_EQ(ReadFile(Path("stream")).value(),
            absl::StrCat(told, csv, csv.substr(csv.find('\n') + 1)));
}

TEST_F(SearchFilesTest, HoldNoRowsWhereThereAreNone) {
  SearchFiles none({.csv = Path("none.csv"), .json = Path("none.json")}, {});
  ASSERT_TRUE(none.Write().ok());
  EXPECT_EQ(ReadFile(Path("none.csv")).value(), "");
  EXPECT_EQ(ReadFile(Path("none.json")).value(), "[]\n");
  SearchFiles empty({.csv = Path("empty.csv"), .json = Path("empty.json")}, {});
  empty.Add(settings_, {}, /*is_part=*/false);
  ASSERT_TRUE(empty.Write().ok());
  EXPECT_EQ(ReadFile(Path("empty.csv")).value(), ResultsCsv(settings_.front(), {}));
  EXPECT_EQ(ReadFile(Path("empty.json")).value(), "[]\n");
}

// What was begun and not written is not there, nor is anything beside it.
TEST_F(SearchFilesTest, LeaveNothingUnlessWritten) {
  const std::string folder = Path("unwritten");
  {
    SearchFiles files({.csv = folder + "/a.csv", .json = folder + "/a.json"}, {});
    files.Add(settings_, rows_, /*is_part=*/false);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  SearchFiles files({.csv = "/dev/full"}, {});
  files.Add(settings_, rows_, /*is_part=*/false);
  EXPECT_FALSE(files.Write().ok());
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
