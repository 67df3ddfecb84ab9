#include "lowering/blocks/launch_floor.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::lowering {
namespace launch_floor_test_cc {
namespace {

constexpr Duration Microseconds(int64_t count) { return Duration(count * 1'000'000); }

std::vector<Duration> Kept(std::vector<Duration> durations, const std::vector<double>& launches,
                           const OtherLaunches& others = {}) {
  std::vector<TemplateTask> tasks(durations.size());
  for (size_t i = 0; i < tasks.size(); ++i) tasks[i].duration = durations[i];
  KeepToLaunches(launches, others, Microseconds(10), tasks);
  for (size_t i = 0; i < tasks.size(); ++i) durations[i] = tasks[i].duration;
  return durations;
}

// Long kernels hide the launches of short ones.
TEST(KeepToLaunches, ChangesNothingWhereTheDeviceIsBusy) {
  const std::vector<Duration> durations = {Microseconds(100), Microseconds(1), Microseconds(1)};
  EXPECT_EQ(Kept(durations, {1, 1, 1}), durations);
  EXPECT_EQ(Kept({}, {}), std::vector<Duration>());
}

TEST(KeepToLaunches, TakesAllLaunchesWhereTheHostIsSlower) {
  EXPECT_EQ(Kept({Microseconds(2), Microseconds(6)}, {1, 1}),
            (std::vector<Duration>{Microseconds(10), Microseconds(10)}));
  // 12 us of a long kernel hide 2 of 30 us of launches.
  EXPECT_EQ(Kept({Microseconds(12), Microseconds(2), Microseconds(4)}, {1, 1, 1}),
            (std::vector<Duration>{Microseconds(12), Microseconds(2) + Duration(6'857'142),
                                   Microseconds(4) + Duration(5'142'857)}));
}

TEST(KeepToLaunches, CountsLaunchesOfOthers) {
  const std::vector<Duration> kept =
      Kept({Microseconds(2), Microseconds(6)}, {1, 1}, {.count = 3, .duration = {}});
  EXPECT_NEAR((kept[0] + kept[1]).microseconds(), 50, 1e-3);
  EXPECT_GT(kept[0] - Microseconds(2), kept[1] - Microseconds(6));
}

// While ranks communicate the host launches what comes next.
TEST(KeepToLaunches, HidesLaunchesUnderCollectives) {
  const std::vector<Duration> durations = {Microseconds(2), Microseconds(6)};
  const std::vector<Duration> kept =
      Kept(durations, {1, 1}, {.count = 3, .duration = Microseconds(30)});
  EXPECT_NEAR((kept[0] + kept[1]).microseconds(), 20, 1e-3);
  EXPECT_EQ(Kept(durations, {1, 1}, {.count = 3, .duration = Microseconds(42)}), durations);
}

TEST(WaitForLaunches, AddsEachToWhatIsLaunched) {
  std::vector<TemplateTask> tasks(3);
  tasks[1].duration = Microseconds(100);
  tasks[2].duration = Microseconds(1);
  WaitForLaunches(std::vector<double>{0, 1, 2}, {.count = 3, .duration = Microseconds(1000)},
                  Microseconds(10), tasks);
  EXPECT_EQ(tasks[0].duration, Duration(0));
  EXPECT_EQ(tasks[1].duration, Microseconds(140));
  EXPECT_EQ(tasks[2].duration, Microseconds(21));
}

// What is no kernel stays as long as it is.
TEST(KeepToLaunches, LeavesWhatIsNotLaunched) {
  const std::vector<Duration> kept = Kept({Duration(0), Microseconds(1)}, {0, 2});
  EXPECT_EQ(kept[0], Duration(0));
  EXPECT_EQ(kept[1], Microseconds(20));
}

}  // namespace
}  // namespace launch_floor_test_cc
}  // namespace orrery::lowering
