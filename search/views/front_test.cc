#include "search/views/front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"

namespace orrery::search {
namespace front_test_cc {
namespace {

Result Found(ParallelPlan plan, int64_t milliseconds, int64_t gib) {
  Result result;
  result.plan = std::move(plan);
  result.ran = result.fits = true;
  result.step_time = Duration(milliseconds * 1'000'000'000);
  result.peak_memory = Bytes(gib << 30);
  return result;
}

std::vector<Result> Three() {
  std::vector<Result> results = {Found({.dp = 4, .hp = 2}, 110, 2), Found({.dp = 8}, 100, 4),
                                 Found({.dp = 4, .pp = 2, .microbatches = 4}, 121, 3)};
  results[0].exposed_communication_s = 0.02;
  results[2].bubble_fraction = 0.25;
  return results;
}

TEST(TradesText, SaysWhatEachHasOtherwise) {
  EXPECT_EQ(TradesText(Three(), 10),
            "\nhow each differs from the one before:\n"
            "   2  10.00% slower; compute -10.0 ms, exposed +20.0 ms, 2.00 GiB less a rank: --dp 4 "
            "instead of 8, --hp 2 instead of 1\n"
            "   3  10.00% slower; compute +750 us, exposed -20.0 ms, bubble +30.3 ms, 1.00 GiB "
            "more a rank: --hp 1 instead of 2, --pp 2 instead of 1, --micro-batches 4 instead of "
            "1\n");
  EXPECT_THAT(TradesText(Three(), 2), testing::Not(testing::HasSubstr("   3  ")));
  EXPECT_EQ(TradesText(Three(), 1), "");
  EXPECT_EQ(TradesText({}, 10), "");
}

// The third is slower and larger than the first.
TEST(FrontText, HasWhatNothingBeats) {
  EXPECT_EQ(FrontText(MlpSetting(), Three(), 10),
            "\nPareto front of time, memory and devices, 2 plans:\n"
            "        step     memory  devices\n"
            "      100 ms   4.00 GiB        8  --dp 8 --hp 1 --pp 1 --micro-batches 1 --schedule "
            "1f1b\n"
            "      110 ms   2.00 GiB        8  --dp 4 --hp 2 --pp 1 --micro-batches 1 --schedule "
            "1f1b\n");
  EXPECT_EQ(FrontText(MlpSetting(), {Three()[1]}, 10), "");
}

// 8 devices at 3.6 an hour for a tenth of a second, and 48 samples.
TEST(FrontText, HasThePriceOfASample) {
  Setting setting = MlpSetting();
  setting.device_hour = 3.6;
  EXPECT_NEAR(PriceOfSample(setting, Three()[1]), 8 * 3.6 * 0.1 / 3600 / 48, 1e-15);
  EXPECT_THAT(FrontText(setting, Three(), 10), testing::HasSubstr("1.667e-05  --dp 8"));
  EXPECT_EQ(PriceOfSample(setting, Result()), 0);
}

TEST(FrontText, HasSoManyRowsAtMost) {
  std::vector<Result> results;
  for (int64_t i = 0; i < 30; ++i) results.push_back(Found({.dp = 8}, 100 + i, 40 - i));
  const std::string text = FrontText(MlpSetting(), results, 4);
  EXPECT_THAT(text, testing::HasSubstr("30 plans, 4 of them:"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 + 4);
  EXPECT_THAT(text, testing::HasSubstr("      100 ms   40.0 GiB"));  // both ends
  EXPECT_THAT(text, testing::HasSubstr("      129 ms   11.0 GiB"));
}

TEST(GapText, SaysHowSureTheBestIs) {
  SearchRows rows = Three();
  EXPECT_EQ(GapText(rows), "");
  rows.NoteLeft({Duration(100'000'000'000)});
  EXPECT_EQ(GapText(rows),
            "\nsure: nothing that is left takes less than 100 ms a step: none is faster than the "
            "best\n");
  rows.NoteLeft({Duration(80'000'000'000)});
  EXPECT_EQ(GapText(rows),
            "\nnot sure: what is left takes 80.0 ms a step at least, so the best may be 25.0% "
            "slower than the fastest of all\n");
  rows.NoteLeft({Duration(0)});
  EXPECT_EQ(GapText(rows), "\nnot sure: of what is left no bound of time is known\n");
  SearchRows none;
  none.NoteLeft({Duration(1)});
  EXPECT_EQ(GapText(none), "");
}

}  // namespace
}  // namespace front_test_cc
}  // namespace orrery::search
