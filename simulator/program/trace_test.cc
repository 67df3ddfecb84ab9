#include "simulator/program/trace.h"

#include <gtest/gtest.h>

namespace orrery::simulator {
namespace trace_test_cc {
namespace {

const Trace kTrace = {.start = {Time(0), Time(5), Time(7)},
                      .finish = {Time(5), Time(7), Time(30)},
                      .makespan = Time(30)};

TEST(Trace, IsReadByTask) {
  EXPECT_EQ(kTrace.start_of(TaskId(0)), Time(0));
  EXPECT_EQ(kTrace.finish_of(TaskId(0)), Time(5));
  EXPECT_EQ(kTrace.start_of(TaskId(2)), Time(7));
  EXPECT_EQ(kTrace.finish_of(TaskId(2)), Time(30));
}

TEST(Trace, OfNothingTakesNoTime) {
  EXPECT_EQ(Trace().makespan, Time(0));
  EXPECT_TRUE(Trace().start.empty());
  EXPECT_EQ(Trace(), Trace());
}

// All of it counts: engines are held to each other by this.
TEST(Trace, AreEqualWhereEachTimeIs) {
  EXPECT_EQ(kTrace, Trace(kTrace));
  Trace other = kTrace;
  other.start[1] = Time(6);
  EXPECT_NE(other, kTrace);
  other = kTrace;
  other.finish[2] = Time(29);
  EXPECT_NE(other, kTrace);
  other = kTrace;
  other.makespan = Time(31);
  EXPECT_NE(other, kTrace);
  other = kTrace;
  other.start.pop_back();
  EXPECT_NE(other, kTrace);
}

}  // namespace
}  // namespace trace_test_cc
}  // namespace orrery::simulator
