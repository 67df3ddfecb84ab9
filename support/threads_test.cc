#include "support/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <initializer_list>
#include <new>
#include <vector>

namespace orrery {
namespace threads_test_cc {
namespace {

TEST(Threads, RunTheWorkOnceEach) {
  std::atomic<int> runs = 0;
  RunOnThreads([&] { ++runs; }, 3);
  EXPECT_EQ(runs, 4);
  RunOnThreads([&] { ++runs; }, 0);
  EXPECT_EQ(runs, 5);
}

TEST(Threads, DoEachPieceOnce) {
  for (const size_t count : std::initializer_list<size_t>{0, 1, 2, 100}) {
    for (const size_t threads : std::initializer_list<size_t>{0, 1, 3, 200}) {
      std::vector<std::atomic<int>> done(count);
      ForEachOnThreads(count, threads, [&](size_t i) { ++done[i]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1) << count << " " << threads;
    }
  }
}

// Whichever thread it is that throws: here all do, or all but the first.
TEST(Threads, ThrowWhatTheWorkThrowsOnceAllHaveEnded) {
  for (const int first : {0, 1}) {
    std::atomic<int> begun = 0, ended = 0;
    const auto work = [&] {
      const bool throws = begun++ >= first;
      ++ended;
      if (throws) throw std::bad_alloc();
    };
    EXPECT_THROW(RunOnThreads(work, 3), std::bad_alloc);
    EXPECT_EQ(ended, begun);
    EXPECT_GE(begun, 1);
  }
}

// One that is bound to a processor has no other.
TEST(OwnProcessors, AreThoseThatTheProcessIsBoundTo) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(OwnProcessors(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(OwnProcessors(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace threads_test_cc
}  // namespace orrery
