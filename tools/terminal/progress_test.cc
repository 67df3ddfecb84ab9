#include "tools/terminal/progress.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tools/terminal/terminal.h"

namespace orrery::tools {
namespace progress_test_cc {
namespace {

TEST(ProgressState, TellsWhatIsKnown) {
  EXPECT_EQ(ToString(ProgressState{.things = "rows"}), "0/0 rows");
  EXPECT_EQ(ToString(ProgressState{.things = "rows", .total = 10}), "0/10 rows (0%)");
  EXPECT_EQ(ToString(ProgressState{.things = "rows", .done = 5, .total = 20, .elapsed_s = 2}),
            "5/20 rows (25%), 2.5/s, 6 s left");
  EXPECT_EQ(ToString(ProgressState{
                .things = "rows", .done = 15, .total = 20, .known = 10, .elapsed_s = 2}),
            "15/20 rows (75%), 2.5/s, 2 s left");
  EXPECT_EQ(ToString(ProgressState{
                .things = "rows", .done = 9, .total = 600, .elapsed_s = 3, .to_the_end = false}),
            "9 of 600 rows, 3.0/s");
}

TEST(Progress, CountsFromAllThreads) {
  SetManner({.progress = true});
  testing::internal::CaptureStderr();
  {
    Progress progress("rows", 4000);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.Done();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  SetManner({});
  const std::string line = testing::internal::GetCapturedStderr();
  // The last text stays in a file.
  const std::string last = line.substr(line.rfind('\r'));
  EXPECT_TRUE(last.starts_with("\r4000/4000 rows (100%), ")) << line;
  EXPECT_TRUE(last.ends_with("\n")) << line;
}

TEST(Progress, SaysNothingUnlessWanted) {
  SetManner({.quiet = true, .progress = true});
  testing::internal::CaptureStderr();
  {
    Progress progress("rows", 1);
    progress.Done();
  }
  SetManner({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ProgressLine, CoversWhatWasLonger) {
  testing::internal::CaptureStderr();
  {
    ProgressLine line(true);
    line.Write("ten of ten");
    line.Write("ten");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "\rten of ten\rten       \n");
}

TEST(Waiting, SaysNothingOfWhatIsQuick) {
  SetManner({.progress = true});
  testing::internal::CaptureStderr();
  { const Waiting waiting("simulating"); }
  SetManner({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Waiting, CountsSeconds) {
  SetManner({.progress = true});
  testing::internal::CaptureStderr();
  {
    const Waiting waiting("simulating");
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  }
  SetManner({});
  EXPECT_TRUE(testing::internal::GetCapturedStderr().starts_with("\rsimulating, 1 s"));
}

}  // namespace
}  // namespace progress_test_cc
}  // namespace orrery::tools
