#include "simulator/report/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program_test_util.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace memory_test_cc {
namespace {

constexpr absl::string_view kOneRank = R"(program
rank0 "pp0" members 0 stage 0
resident rank0 parameters 100 bytes
stream0 rank0 compute
stream1 rank0 host
label0 "op" compute forward stage 0
)";

MemoryUse PeakOf(absl::string_view tasks) {
  const Program program = Parse(absl::StrCat(kOneRank, tasks));
  return PeakMemory(program, RunLongestPath(program))[RankClassId(0)];
}

// "0:100 5:120": time and total.
std::string TimelineOf(absl::string_view tasks) {
  const Program program = Parse(absl::StrCat(kOneRank, tasks));
  const auto timelines = MemoryTimeline(program, RunLongestPath(program));
  return absl::StrJoin(timelines[RankClassId(0)], " ", [](std::string* out, const MemoryUse& use) {
    absl::StrAppend(out, use.time.picoseconds(), ":", use.total.count());
  });
}

TEST(Memory, AnIdleRankHoldsItsResidents) {
  const MemoryUse peak = PeakOf("");
  EXPECT_EQ(peak.total, Bytes(100));
  EXPECT_EQ(peak.of(MemoryKind::kParameters), Bytes(100));
  EXPECT_EQ(peak.time, Time(0));
  EXPECT_EQ(TimelineOf(""), "0:100");
}

TEST(Memory, TakesAtTheStartAndGivesBackAtTheFinish) {
  constexpr absl::string_view kTasks = R"(
task0 stream0 label0 takes 5 ps
task1 stream0 label0 takes 3 ps
task2 stream0 label0 takes 2 ps
memory task0 rank0 activations +20 bytes
memory task1 rank0 activations +30 bytes
memory task1 rank0 buffers +7 bytes
memory task1 rank0 buffers -7 bytes
memory task2 rank0 gradients +10 bytes
memory task2 rank0 activations -50 bytes
)";
  EXPECT_EQ(TimelineOf(kTasks), "0:100 0:120 5:150 5:157 8:150 8:160 10:110");
  const MemoryUse peak = PeakOf(kTasks);
  EXPECT_EQ(peak.total, Bytes(160));
  EXPECT_EQ(peak.time, Time(8));
  EXPECT_EQ(peak.of(MemoryKind::kParameters), Bytes(100));
  EXPECT_EQ(peak.of(MemoryKind::kActivations), Bytes(50));
  EXPECT_EQ(peak.of(MemoryKind::kGradients), Bytes(10));
  EXPECT_EQ(peak.of(MemoryKind::kBuffers), Bytes(0));
}

TEST(Memory, WhatOneTaskFreesTheNextOneCanTake) {
  EXPECT_EQ(PeakOf(R"(
task0 stream0 label0 takes 5 ps
task1 stream0 label0 takes 5 ps
memory task0 rank0 activations +20 bytes
memory task0 rank0 activations -20 bytes
memory task1 rank0 activations +20 bytes
)")
                .total,
            Bytes(120));
}

TEST(Memory, ATaskOfNoDurationTakesBeforeItGivesBack) {
  EXPECT_EQ(PeakOf(R"(
task0 stream0 label0 takes 0 ps
memory task0 rank0 buffers +20 bytes
memory task0 rank0 buffers -20 bytes
)")
                .total,
            Bytes(120));
}

TEST(Memory, TheFirstMomentOfThePeakCounts) {
  EXPECT_EQ(PeakOf(R"(
task0 stream0 label0 takes 5 ps
task1 stream0 label0 takes 5 ps
memory task0 rank0 activations +20 bytes
memory task0 rank0 activations -20 bytes
memory task1 rank0 buffers +20 bytes
)")
                .time,
            Time(0));
}

TEST(Memory, TheFirstMomentOfThePeakCountsOnOverlappingStreamsToo) {
  EXPECT_EQ(PeakOf(R"(
task0 stream0 label0 takes 10 ps
task1 stream1 label0 takes 4 ps
task2 stream1 label0 takes 4 ps
memory task0 rank0 buffers -5 bytes
memory task1 rank0 activations +20 bytes
memory task1 rank0 activations -20 bytes
memory task2 rank0 activations +20 bytes
)")
                .time,
            Time(0));
}

TEST(Memory, StreamsThatOverlapAreSortedByTime) {
  // In the order of the program task 0 frees at 10, before task 1 takes; in time, after.
  constexpr absl::string_view kTasks = R"(
task0 stream0 label0 takes 10 ps
task1 stream1 label0 takes 4 ps
memory task0 rank0 activations +20 bytes
memory task0 rank0 activations -20 bytes
memory task1 rank0 activations +30 bytes
memory task1 rank0 activations -30 bytes
)";
  EXPECT_EQ(TimelineOf(kTasks), "0:100 0:120 0:150 4:120 10:100");
  EXPECT_EQ(PeakOf(kTasks).total, Bytes(150));
}

// As many runs as it takes, and many events of one moment.
TEST(Memory, EventsInAnyOrderAreSortedStably) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const int tasks = 20;
    std::string text;
    for (int t = 0; t < tasks; ++t)
      absl::StrAppend(&text, "task", t, " stream0 label0 takes 1 ps\n");
    std::vector<std::pair<int, int>> changes;  // when, by how much
    for (int i = 0; i < 60; ++i) {
      const auto task = static_cast<int>(random() % tasks);
      const bool takes = random() % 2 == 0;
      absl::StrAppend(&text, "memory task", task, " rank0 activations ", takes ? "+1" : "-1",
                      " bytes\n");
      changes.emplace_back(takes ? task : task + 1, takes ? 1 : -1);
    }
    std::ranges::stable_sort(changes, {}, &std::pair<int, int>::first);
    std::string timeline = "0:100";
    int total = 100;
    for (const auto& [time, change] : changes) {
      total += change;
      absl::StrAppend(&timeline, " ", time, ":", total);
    }
    EXPECT_EQ(TimelineOf(text), timeline) << seed;
  }
}

// The most of any rank by trying each prefix of its events in time order.
MemoryUse SlowPeak(const Program& program, const Trace& trace, RankClassId rank) {
  std::vector<std::pair<Time, size_t>> order;
  const std::vector<MemoryEvent>& events = program.memory_events();
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].rank != rank) continue;
    const bool takes = events[i].at_start();
    order.emplace_back(takes ? trace.start_of(events[i].task) : trace.finish_of(events[i].task), i);
  }
  std::sort(order.begin(), order.end());
  MemoryUse use;
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    use.by_kind[static_cast<size_t>(kind)] = program.resident(rank, static_cast<MemoryKind>(kind));
    use.total += use.by_kind[static_cast<size_t>(kind)];
  }
  MemoryUse peak = use;
  for (const auto& [time, i] : order) {
    use.time = time;
    use.task = events[i].task;
    use.by_kind[static_cast<size_t>(events[i].kind)] += Bytes(events[i].bytes);
    use.total += Bytes(events[i].bytes);
    if (use.total > peak.total) peak = use;
  }
  return peak;
}

TEST(Memory, AgreesWithASlowOracle) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Program program = RandomProgram({.seed = seed, .one_stream = seed % 2 == 0});
    const Trace trace = RunLongestPath(program);
    const IdTable<RankClassId, MemoryUse> peaks = PeakMemory(program, trace);
    const auto timelines = MemoryTimeline(program, trace);
    for (int32_t i = 0; i < program.rank_count(); ++i) {
      const RankClassId rank(i);
      EXPECT_EQ(peaks[rank], SlowPeak(program, trace, rank));
      const std::vector<MemoryUse>& timeline = timelines[rank];
      const auto less = [](const MemoryUse& a, const MemoryUse& b) { return a.total < b.total; };
      EXPECT_EQ(*std::max_element(timeline.begin(), timeline.end(), less), peaks[rank]);
    }
  }
}

TEST(Memory, TotalIsTheSumOfTheKinds) {
  const Program program = RandomProgram({.seed = 3, .tasks = 200});
  const auto timelines = MemoryTimeline(program, RunLongestPath(program));
  for (const std::vector<MemoryUse>& timeline : timelines.rows()) {
    for (const MemoryUse& use : timeline) {
      Bytes sum;
      for (const Bytes bytes : use.by_kind) sum += bytes;
      EXPECT_EQ(use.total, sum);
    }
  }
}

TEST(MemoryDeathTest, RefusesTheTraceOfAnotherProgram) {
  EXPECT_DEATH(PeakMemory(RandomProgram({}), Trace()), "the trace is of another program");
}

}  // namespace
}  // namespace memory_test_cc
}  // namespace orrery::simulator
