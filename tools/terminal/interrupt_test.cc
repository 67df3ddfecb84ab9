#include "tools/terminal/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace orrery::tools {
namespace interrupt_test_cc {
namespace {

TEST(StopOnSignals, CatchesTheFirst) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const StopOnSignals signals;
    EXPECT_FALSE(signals.stop());
    std::raise(signal);
    EXPECT_TRUE(signals.stop());
    EXPECT_EQ(CaughtSignal(), signal);
  }
}

TEST(StopOnSignals, SaysWhatIsDone) {
  {
    const StopOnSignals signals;
    EXPECT_TRUE(StoppedBefore("rows").ok());
    std::raise(SIGINT);
    EXPECT_EQ(StoppedBefore("rows"),
              absl::CancelledError("stopped before the end: the rows that were done are above"));
  }
  const StopOnSignals signals;
  EXPECT_EQ(CaughtSignal(), 0);
}

TEST(StopOnSignals, TheSecondEndsTheProcess) {
  const auto twice = [] {
    const StopOnSignals signals;
    std::raise(SIGTERM);
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGTERM), "");
}

TEST(StopOnSignals, LeavesThingsAsTheyWere) {
  const auto after = [] {
    { const StopOnSignals signals; }
    std::raise(SIGINT);
  };
  EXPECT_EXIT(after(), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace interrupt_test_cc
}  // namespace orrery::tools
