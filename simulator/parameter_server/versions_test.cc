#include "simulator/parameter_server/versions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "simulator/parameter_server/star_test_util.h"

namespace orrery::simulator::parameter_server {
namespace versions_test_cc {
namespace {

TEST(Versions, ABulkUpdateIsOfAllGradients) {
  Versions versions({.sync = Sync::kBulk}, 3, 1);
  EXPECT_EQ(versions.Take(0, 0), Taken::kSummed);
  EXPECT_TRUE(versions.first());
  EXPECT_EQ(versions.Take(0, 0), Taken::kSummed);
  EXPECT_FALSE(versions.first());
  EXPECT_FALSE(versions.MayRead(0, 0, 1));
  EXPECT_EQ(versions.Take(0, 0), Taken::kApplied);
  EXPECT_FALSE(versions.MayRead(0, 0, 1)) << "it is not made yet";
  versions.Applied(0, 2);
  EXPECT_TRUE(versions.MayRead(0, 0, 1));
  EXPECT_FALSE(versions.MayRead(0, 0, 2));
  EXPECT_EQ(versions.complete(), 1);
}

TEST(Versions, WithABackupTheLastIsDropped) {
  Versions versions({.sync = Sync::kBulk, .backup = 1}, 3, 1);
  EXPECT_EQ(versions.Take(0, 0), Taken::kSummed);
  EXPECT_EQ(versions.Take(0, 0), Taken::kApplied);
  EXPECT_EQ(versions.Take(0, 0), Taken::kDropped);
  versions.Applied(0, 1);
  EXPECT_EQ(versions.Take(0, 1), Taken::kSummed);
  EXPECT_EQ(versions.Take(0, 0), Taken::kDropped) << "one of the step before";
}

// Beside clocks that are counted one by one.
TEST(Versions, ReadersWaitForTheSlowestClock) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const int32_t workers = Draw(random, 1, 6), bound = Draw(random, 0, 3);
    Versions stale({.sync = Sync::kStale, .bound = bound}, workers, 2);
    Versions async({.sync = Sync::kAsync}, workers, 2);
    std::vector<int32_t> clocks(static_cast<size_t>(workers));
    for (int applied = 0; applied < 60; ++applied) {
      const int32_t worker = Draw(random, 0, workers - 1);
      int32_t& clock = clocks[static_cast<size_t>(worker)];
      EXPECT_EQ(stale.Take(1, clock), Taken::kApplied);
      stale.Applied(1, worker);
      async.Applied(1, worker);
      ++clock;
      const int32_t least = *std::ranges::min_element(clocks);
      for (int32_t step = clock - 1; step <= clock + 1; ++step) {
        EXPECT_EQ(async.MayRead(1, worker, step), step <= clock);
        EXPECT_EQ(stale.MayRead(1, worker, step), step <= clock && step - least <= bound);
        EXPECT_EQ(stale.Lag(1, step), std::max(step - least, 0));
      }
      EXPECT_EQ(stale.updates(1), applied + 1);
      EXPECT_EQ(stale.updates(0), 0);
    }
  }
}

}  // namespace
}  // namespace versions_test_cc
}  // namespace orrery::simulator::parameter_server
