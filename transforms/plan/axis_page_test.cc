#include "transforms/plan/axis_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/file.h"
#include "support/paths_test_util.h"

namespace orrery::transforms {
namespace axis_page_test_cc {
namespace {

// The section of docs/command_line.md that this table is. ORRERY_BLESS=1 rewrites it.
TEST(AxisTable, IsThatOfTheCommandLinePage) {
  const std::string path = SourceDir() + "/docs/command_line.md";
  const std::string begin = "<!-- opt --list-axes -->\n", end = "<!-- end -->\n";
  const std::string page = ReadFile(path).value();
  const size_t from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const size_t first = from + begin.size();
  const char* bless = std::getenv("ORRERY_BLESS");
  if (bless != nullptr && std::string(bless) == "1") {
    ASSERT_TRUE(
        WriteFile(path, absl::StrCat(page.substr(0, first), AxisTable(), page.substr(to))).ok());
    return;
  }
  EXPECT_EQ(page.substr(first, to - first), AxisTable());
}

TEST(AxisRow, SaysWhatIsTakenAndWhere) {
  EXPECT_EQ(AxisRow(*FindAxis("prefetch")),
            "| `--prefetch` | layers whose weights `--zero 3` gathers ahead of the one that "
            "computes | 1 | a list | yes | `prefetch` |\n");
  EXPECT_THAT(AxisRow(*FindAxis("dp")),
              testing::EndsWith(" | 1 | a list; left open: all that divide | yes | `dp` |\n"));
  EXPECT_THAT(
      AxisRow(*FindAxis("ep")),
      testing::EndsWith(" | 1 | a list; left open, with experts: all that divide | no | `ep` |\n"));
  EXPECT_THAT(AxisRow(*FindAxis("blocking")),
              testing::EndsWith(" | off | a list | no | `blocking` |\n"));
  EXPECT_THAT(AxisRow(*FindAxis("split-at")),
              testing::EndsWith(" | none | one | yes | `split_at` |\n"));
  EXPECT_THAT(AxisRow(*FindAxis("schedule")),
              testing::EndsWith(" | `1f1b` | a list | no | `schedule` |\n"));
  EXPECT_THAT(AxisRow(*FindAxis("schedule-file")),
              testing::EndsWith(" | none | no | no | `schedule_file` |\n"));
  EXPECT_THAT(AxisRow(*FindAxis("zero-group")), testing::HasSubstr(" | 0: all | "));
}

// Of a record without words for the page those of --help, and no bar that ends a cell.
TEST(AxisRow, FallsBackOnTheSummary) {
  AxisInfo axis = *FindAxis("prefetch");
  axis.page = axis.page_default = "";
  axis.summary = "what";
  axis.values = "a|b";
  EXPECT_EQ(AxisRow(axis), "| `--prefetch` | what: a\\|b | 1 | a list | yes | `prefetch` |\n");
}

}  // namespace
}  // namespace axis_page_test_cc
}  // namespace orrery::transforms
