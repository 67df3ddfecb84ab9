#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/distir/play.h"

// Every case that DistIR has printed, played by Orrery: time, bytes and memory of every rank.

namespace orrery::distir {
namespace golden_test_cc {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;

// Doubles of DistIR against picoseconds, each rounded up once: far less than a millionth.
void ExpectNear(double ours, double golden) {
  EXPECT_LE(std::abs(ours - golden), 1e-6 * std::abs(golden)) << ours << " for " << golden;
}

void ExpectSameTimes(const search::Run& run, const Golden& golden) {
  ExpectNear(run.report.step_time.seconds(), golden.figures.makespan_s);
  ExpectNear(run.report.communication_overhead, golden.figures.communication_overhead);
  const RankFigures ours = ByRank(run);
  ASSERT_EQ(ours.finish_s.size(), golden.figures.finish_s.size());
  for (size_t rank = 0; rank < ours.finish_s.size(); ++rank) {
    SCOPED_TRACE(rank);
    ExpectNear(ours.finish_s[rank], golden.figures.finish_s[rank]);
  }
}

// DistIR passes the size of the batch around as a value of four bytes; it is at the peak or not.
void ExpectSameMemory(const search::Run& run, const Golden& golden) {
  const RankFigures ours = ByRank(run);
  ASSERT_EQ(ours.peak_memory_bytes.size(), golden.peak_memory_bytes.size());
  for (size_t rank = 0; rank < ours.peak_memory_bytes.size(); ++rank) {
    const int64_t expected = golden.peak_memory_bytes[rank];
    EXPECT_THAT(ours.peak_memory_bytes[rank], AnyOf(Eq(expected), Eq(expected - 4))) << rank;
  }
}

void ExpectSame(const Golden& golden) {
  SCOPED_TRACE(golden.config.ToString());
  const absl::StatusOr<search::Run> run = Play(golden.config);
  ASSERT_TRUE(run.ok()) << run.status();
  ExpectSameTimes(*run, golden);
  ExpectSameMemory(*run, golden);
  EXPECT_EQ(run->report.bytes_sent.count(), golden.figures.send_bytes);
  EXPECT_EQ(run->report.bytes_reduced.count(), golden.figures.allreduce_tensor_bytes);
}

void ExpectInfeasible(const Case& c) {
  SCOPED_TRACE(c.ToString());
  const auto infeasible = AsInfeasible(Play(c).status());
  ASSERT_TRUE(infeasible.has_value());
  EXPECT_EQ(infeasible->reason, InfeasibleReason::kDivisibility);
}

// How many rows of a file ran, and how many DistIR could not run.
struct Count {
  int ran = 0;
  int skipped = 0;
};
Count CheckAll(const std::string& name) {
  Count count;
  for (const Golden& golden : ReadGolden(name)) {
    ++(golden.skipped ? count.skipped : count.ran);
    if (golden.skipped) {
      ExpectInfeasible(golden.config);
    } else {
      ExpectSame(golden);
    }
  }
  return count;
}

TEST(DistirGolden, GridOfSixteenDevices) { EXPECT_EQ(CheckAll("grid.json").ran, 53); }

TEST(DistirGolden, OneDegreeAtATime) { EXPECT_EQ(CheckAll("isolated.json").ran, 52); }

TEST(DistirGolden, SmallShapes) {
  const Count count = CheckAll("small.json");
  EXPECT_EQ(count.ran, 153);
  EXPECT_EQ(count.skipped, 27);
}

}  // namespace
}  // namespace golden_test_cc
}  // namespace orrery::distir
