#include "tools/searches/search_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "search/search.h"

namespace orrery::tools {
namespace search_charts_test_cc {
namespace {

using testing::HasSubstr;

const Terminal kPlain = {.is_terminal = true, .columns = 40};

// Of so many milliseconds and MiB; a quarter is exposed, a half bubble.
search::Result Fake(int64_t milliseconds, int64_t mebibytes) {
  search::Result result;
  result.ran = result.fits = true;
  result.step_time = Duration(1'000'000'000) * milliseconds;
  result.exposed_communication_s = result.step_time.seconds() / 4;
  result.bubble_fraction = 0.5;
  result.peak_memory = Bytes(mebibytes << 20);
  return result;
}

TEST(TimeBars, AreOfTheFastest) {
  const std::vector<search::Result> results = {Fake(4, 1), Fake(2, 2), Fake(8, 3)};
  EXPECT_EQ(TimeBars(results, 2, kPlain),
            R"(
a step of each, the best first:
  1 ###====------- 2.00 ms
  2 #######=======------------- 4.00 ms
  # compute  = exposed communication  - bubble
)");
  EXPECT_EQ(TimeBars(results, 1, kPlain), "");
  EXPECT_EQ(TimeBars({}, 10, kPlain), "");
}

TEST(FrontChart, MarksWhatNoneBeats) {
  // The last is as fast as the first, and larger; what does not fit is not there.
  search::Result misfit = Fake(1, 100);
  misfit.fits = false;
  const std::string chart =
      FrontChart({{Fake(2, 30), Fake(4, 10), Fake(6, 40), Fake(2, 50), misfit}}, kPlain);
  EXPECT_THAT(chart, HasSubstr("\n4 feasible candidates that were played:\nstep time; *"));
  // Two of them, and the one that says what they are.
  EXPECT_EQ(std::ranges::count(chart, '*'), 3) << chart;
  EXPECT_THAT(chart, HasSubstr("6.00 ms +"));
  EXPECT_THAT(chart, HasSubstr("2.00 ms +"));
  EXPECT_THAT(chart, HasSubstr(" 10.0 MiB "));
  EXPECT_THAT(chart, HasSubstr("50.0 MiB\n"));
  EXPECT_EQ(FrontChart({{Fake(2, 30)}}, kPlain), "");
}

TEST(FrontChart, IsTheSameWhateverTheGoal) {
  search::SearchRows rows({Fake(2, 30), Fake(4, 10), Fake(6, 40), Fake(2, 50)});
  const std::string chart = FrontChart(rows, kPlain);
  rows.RankBy(search::Goal::kMemory);
  EXPECT_EQ(FrontChart(rows, kPlain), chart);
  // Bars are those of the table, the best by the goal first.
  EXPECT_THAT(TimeBars(rows, 2, kPlain),
              HasSubstr("first:\n  1 #######=======------------- 4.00 ms\n"));
}

}  // namespace
}  // namespace search_charts_test_cc
}  // namespace orrery::tools
