#include "tools/searches/search_progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace orrery::tools {
namespace search_progress_test_cc {
namespace {

TEST(SearchState, TellsWhatIsKnown) {
  EXPECT_EQ(ToString(SearchState{.done = 0, .total = 0}), "0/0 candidates");
  EXPECT_EQ(ToString(SearchState{.done = 0, .total = 10}), "0/10 candidates (0%)");
  EXPECT_EQ(ToString(SearchState{.done = 5, .total = 20, .known = 0, .elapsed_s = 2}),
            "5/20 candidates (25%), 2.5/s, 6 s left");
  // What a journal knew was not found in this time.
  EXPECT_EQ(ToString(SearchState{.done = 15, .total = 20, .known = 10, .elapsed_s = 2}),
            "15/20 candidates (75%), 2.5/s, 2 s left");
  EXPECT_EQ(ToString(SearchState{.done = 1,
                                 .total = 10'001,
                                 .known = 0,
                                 .elapsed_s = 1,
                                 .best = Duration(66'300'000'000)}),
            "1/10001 candidates (0%), 1.0/s, 2.8 h left, best 66.3 ms");
  EXPECT_EQ(ToString(SearchState{.done = 4, .total = 4, .known = 0, .elapsed_s = 0.5}),
            "4/4 candidates (100%), 8.0/s");
  EXPECT_EQ(ToString(SearchState{.done = 1, .total = 601, .known = 0, .elapsed_s = 1}),
            "1/601 candidates (0%), 1.0/s, 10 min left");
  EXPECT_EQ(ToString(SearchState{
                .done = 9, .total = 600, .known = 0, .elapsed_s = 3, .ends_before = true}),
            "9 of 600 candidates, 3.0/s");
}

TEST(SearchProgress, EndsTheLineOfASearchThatEndsBefore) {
  testing::internal::CaptureStderr();
  {
    SearchProgress progress(1000, true, /*ends_before=*/true);
    std::this_thread::sleep_for(std::chrono::milliseconds(110));  // it writes ten times a second
    progress.Done({});
  }
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(line.starts_with("\r1 of 1000 candidates, ")) << line;
  EXPECT_TRUE(line.ends_with("\n")) << line;
}

TEST(SearchProgress, SaysNothingUnlessWanted) {
  testing::internal::CaptureStderr();
  SearchProgress progress(1, false);
  progress.Done({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(SearchProgress, CountsWhatComesToIt) {
  testing::internal::CaptureStderr();
  SearchProgress progress(1, true, /*ends_before=*/true);
  progress.Done({});
  progress.More(1);
  progress.Done({});
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_NE(lines.find("\r1 of 1 candidates"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\r2 of 2 candidates"), std::string::npos) << lines;
}

TEST(SearchProgress, EndsItsLine) {
  testing::internal::CaptureStderr();
  auto progress = std::make_unique<SearchProgress>(2, true);
  search::Result result;
  result.ran = result.fits = true;
  result.step_time = Duration(2'000'000);
  progress->Known({result});
  result.step_time = Duration(3'000'000);
  progress->Done({result});
  progress.reset();
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.substr(0, 23), "\r2/2 candidates (100%),");
  EXPECT_NE(line.find("best 2"), std::string::npos) << line;
  EXPECT_EQ(line.back(), '\n');
}

}  // namespace
}  // namespace search_progress_test_cc
}  // namespace orrery::tools
