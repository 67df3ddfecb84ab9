#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "search/search.h"
#include "search/settings/setting_test_util.h"

// Rows of the table of results, from figures that are made up; the whole of it is in
// search_test.cc.

namespace orrery::search {
namespace tables_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// A result of a millisecond, times `milliseconds`.
Result Fake(int64_t milliseconds) {
  Result result;
  result.ran = result.fits = true;
  result.step_time = Duration(1'000'000'000) * milliseconds;
  return result;
}

// The rows of the table, best first.
std::vector<std::string> Rows(const std::vector<Result>& results, int64_t top = 10) {
  std::vector<std::string> rows;
  for (const absl::string_view line :
       absl::StrSplit(ResultsTable(MlpSetting(), results, top), '\n')) {
    if (absl::StrContains(line, "1f1b")) rows.emplace_back(line);
  }
  return rows;
}

// Of 4 ms 1 is exposed communication and 1.2 bubble: 45 % are left.
TEST(ResultsTable, SaysWhereTheTimeGoes) {
  Result result = Fake(4);
  result.exposed_communication_s = 0.001;
  result.bubble_fraction = 0.3;
  result.figures.throughput_samples_per_s = 12.345;
  result.peak_memory = Bytes(3 << 20);
  EXPECT_THAT(Rows({result}),
              ElementsAre("    1     1     1      1  1f1b            4.00 ms      12.35    45.0% "
                          "   25.0%    30.0%   3.00 MiB"));
}

// Both may count a moment: no less than nothing is computed. A step of no time exposes nothing.
TEST(ResultsTable, SharesAreOfTheStepAndNotNegative) {
  Result full = Fake(1);
  full.exposed_communication_s = 0.0007;
  full.bubble_fraction = 0.4;
  EXPECT_THAT(Rows({full}), ElementsAre(HasSubstr("     0.0%    70.0%    40.0% ")));
  Result none = Fake(0);
  none.exposed_communication_s = 1;
  EXPECT_THAT(Rows({none}), ElementsAre(HasSubstr("   100.0%     0.0%     0.0% ")));
}

// What says least is left out first, until it fits; step and memory stay.
TEST(ResultsTable, LeavesColumnsOutWhereThereIsLittleRoom) {
  Result result = Fake(1);
  result.plan.zero = 3;
  const auto head = [&](size_t columns) {
    const std::vector<std::string> lines =
        absl::StrSplit(ResultsTable(MlpSetting(), {result}, 10, columns), '\n');
    EXPECT_TRUE(lines[3].size() <= columns || columns < 70) << lines[3];
    return lines[2].substr(36);
  };
  EXPECT_EQ(head(1000), "         step  samples/s  compute  exposed   bubble     memory");
  EXPECT_EQ(head(98), "         step  samples/s  exposed   bubble     memory");
  EXPECT_EQ(head(90), "         step  samples/s  exposed     memory");
  EXPECT_EQ(head(80), "         step  samples/s     memory");
  EXPECT_EQ(head(70), "         step     memory");
  EXPECT_EQ(head(20), "         step     memory");
}

TEST(ResultsTable, HasSoManyRowsAtMost) {
  const std::vector<Result> results = {Fake(3), Fake(1), Fake(2)};
  EXPECT_THAT(Rows(results, 2), ElementsAre(HasSubstr("1.00 ms"), HasSubstr("2.00 ms")));
  EXPECT_EQ(Rows(results, 3).size(), 3u);
  EXPECT_EQ(Rows(results, 4).size(), 3u);
  EXPECT_EQ(Rows(results, 0).size(), 0u);
}

// Behind the columns stands what differs from the default, of each axis that has no column.
TEST(ResultsTable, TellsWhatItsColumnsLeaveOut) {
  Result plain = Fake(1), sharded = Fake(2);
  sharded.plan.cp = 2;
  sharded.plan.zero = 3;
  sharded.plan.prefetch = 4;
  EXPECT_THAT(Rows({plain, sharded}),
              ElementsAre(EndsWith("0 B"), EndsWith("0 B  cp 2  zero 3  prefetch 4")));
}

// What all results have in common of what makes another step is not told.
TEST(ResultsTable, TellsTypesWhereTheyDiffer) {
  Result first = Fake(1), second = Fake(2);
  first.plan.dtype = second.plan.dtype = transforms::StepDType::kBF16;
  EXPECT_THAT(Rows({first, second}), ElementsAre(EndsWith("0 B"), EndsWith("0 B")));
  second.plan.dtype = transforms::StepDType::kModel;
  EXPECT_THAT(Rows({first, second}), ElementsAre(EndsWith("0 B  dtype bf16"), EndsWith("0 B")));
}

TEST(ResultsTable, OfOneThatIsInfeasibleSaysWhy) {
  Result result;
  result.infeasible = {.reason = InfeasibleReason::kDivisibility, .detail = "no"};
  EXPECT_EQ(ResultsTable(MlpSetting(), {result}, 1),
            "mlp:layers=4,dim=64, batch 48, on uniform:8@200Gbps: 1 candidates, 0 feasible\n\n"
            "\n1 of 1 candidates are infeasible:\n"
            "     1  divisibility, for example --dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule "
            "1f1b: no\n");
}

// Choices between backticks are flags; other words stay.
TEST(ResultsTable, OfOneThatIsInfeasibleNamesFlags) {
  Result result;
  result.infeasible = {.reason = InfeasibleReason::kDivisibility,
                       .detail = "fewer of `pp` or `bucket-size`, not `of these`"};
  EXPECT_THAT(ResultsTable(MlpSetting(), {result}, 1),
              HasSubstr(": fewer of --pp or --bucket-size, not `of these`\n"));
  EXPECT_THAT(ResultsJson(MlpSetting(), {result}),
              HasSubstr("fewer of --pp or --bucket-size, not `of these`"));
}

// As millions of rows are written: in pieces that threads make, in the order of the rows.
TEST(WriteResults, HasTheWholeTextInPieces) {
  const Setting setting = MlpSetting();
  std::vector<Result> results;
  for (int64_t i = 0; i < 9'000; ++i) results.push_back(Fake(i + 1));
  const SearchRows rows(results);
  const std::string csv = ResultsCsv(setting, rows), json = ResultsJson(setting, rows);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 9'001);
  EXPECT_EQ(nlohmann::json::parse(json).size(), 9'000u);
  for (const size_t threads : {size_t{1}, size_t{2}, size_t{5}, size_t{1} << 40}) {
    SCOPED_TRACE(threads);
    std::string text, list;
    int pieces = 0;
    const auto append_to = [&](std::string& all) {
      return [&](absl::string_view piece) {
        absl::StrAppend(&all, piece);
        ++pieces;
        return absl::OkStatus();
      };
    };
    ASSERT_TRUE(WriteResultsCsv(setting, rows, {.threads = threads}, append_to(text)).ok());
    EXPECT_EQ(text, csv);
    EXPECT_GE(pieces, 4) << "the header, and 4,096 rows a piece";
    ASSERT_TRUE(WriteResultsJson(setting, rows, {.threads = threads}, append_to(list)).ok());
    EXPECT_EQ(list + std::string(kEndOfJson), json);
  }
}

TEST(WriteResults, EndsWithTheFirstError) {
  const std::vector<Result> results(10'000, Fake(1));
  int pieces = 0;
  const absl::Status status =
      WriteResultsCsv(MlpSetting(), results, {.threads = 2}, [&](absl::string_view) {
        return ++pieces == 2 ? absl::DataLossError("full") : absl::OkStatus();
      });
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(pieces, 2);
}

// A blank for each level, as people read it.
TEST(ResultsJson, IsIndented) {
  EXPECT_THAT(ResultsJson(MlpSetting(), {Fake(1)}),
              HasSubstr("[\n {\n  \"model\": \"mlp:layers=4,dim=64\",\n  \"world_size\": 1,\n"));
}

}  // namespace
}  // namespace tables_test_cc
}  // namespace orrery::search
