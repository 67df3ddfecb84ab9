#include "simulator/jitter/waits.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "simulator/engine/longest_path.h"
#include "simulator/jitter/replica_test_util.h"

namespace orrery::simulator {
namespace waits_test_cc {
namespace {

using Waits = std::map<std::pair<int32_t, int32_t>, int64_t>;

Waits Find(const Program& program) {
  Waits waits;
  WaitFinder(program).Find(RunLongestPath(program),
                           [&](RankClassId waiting, RankClassId late, Duration time) {
                             waits[{waiting.index(), late.index()}] += time.picoseconds();
                           });
  return waits;
}

struct Ranks {
  Program program;
  std::vector<StreamId> compute, data;
  LabelId kernel, reduce;

  explicit Ranks(int32_t count) {
    for (int32_t r = 0; r < count; ++r) {
      const RankClassId rank = program.AddRank({.members = {r}});
      compute.push_back(program.AddStream(rank, StreamKind::kCompute));
      data.push_back(program.AddStream(rank, StreamKind::kData));
    }
    kernel = program.AddLabel({.name = "kernel"});
    reduce = program.AddLabel({.name = "reduce", .kind = TaskKind::kCollective});
  }
  TaskId Kernel(size_t rank, int64_t time, std::vector<TaskId> after = {}) {
    return program.AddTask(compute[rank], {.duration = Duration(time), .label = kernel}, after);
  }
  TaskId Reduce(const std::vector<StreamId>& streams, std::vector<TaskId> after) {
    return program.AddRendezvous(streams, {.duration = Duration(5), .label = reduce}, after);
  }
};

// rank 0 | kernel 10 .......... reduce 5 kernel
// rank 1 | kernel 30 ---------- reduce 5 kernel
// rank 0 waits 20 for rank 1; the 5 are communication.
TEST(Waits, AreForTheLastThatComes) {
  Ranks of(2);
  const TaskId a = of.Kernel(0, 10), b = of.Kernel(1, 30);
  const TaskId reduced = of.Reduce(of.data, {a, b});
  of.Kernel(0, 1, {reduced});
  of.Kernel(1, 1, {reduced});
  EXPECT_EQ(Find(of.program), (Waits{{{0, 1}, 20}}));
}

// On the stream of kernels, as with --blocking.
TEST(Waits, AreThereWhereNothingOverlaps) {
  Ranks of(3);
  const TaskId a = of.Kernel(0, 10), b = of.Kernel(1, 30), c = of.Kernel(2, 12);
  of.Reduce(of.compute, {a, b, c});
  EXPECT_EQ(Find(of.program), (Waits{{{0, 1}, 20}, {{2, 1}, 18}}));
}

// While it computes, a rank does not wait: of 20 that the other is late 15 are covered.
TEST(Waits, DoNotCountWhatKernelsCover) {
  Ranks of(2);
  const TaskId a = of.Kernel(0, 10), b = of.Kernel(1, 30);
  const TaskId reduced = of.Reduce(of.data, {a, b});
  of.Kernel(0, 15);
  of.Kernel(0, 1, {reduced});
  of.Kernel(1, 1, {reduced});
  EXPECT_EQ(Find(of.program), (Waits{{{0, 1}, 5}}));
}

// Rank 0 has both done at 10 and 11; rank 1 is late for the first, rank 2 for the second, which
// stands behind it: 0 … 11 computes, to 30 for rank 1, 5 reduces, to 50 for rank 2.
TEST(Waits, AddUpAlongALineOfCollectives) {
  Ranks of(3);
  const TaskId a = of.Kernel(0, 10), a2 = of.Kernel(0, 1);
  const TaskId b = of.Kernel(1, 30), b2 = of.Kernel(1, 2);
  const TaskId c = of.Kernel(2, 10), c2 = of.Kernel(2, 40);
  of.Reduce(of.data, {a, b, c});
  const TaskId second = of.Reduce(of.data, {a2, b2, c2});
  of.Kernel(0, 1, {second});
  EXPECT_EQ(Find(of.program), (Waits{{{0, 1}, 19}, {{0, 2}, 15}}));
}

TEST(Waits, OfAPipelineAreItsBubble) {
  const Waits waits = Find(ReplicaProgram({.replicas = 1, .stages = 2}));
  const int64_t first = 4'006'000;  // four kernels
  ASSERT_EQ(waits.size(), 1);
  EXPECT_EQ(waits.begin()->first, std::pair(1, 0));
  EXPECT_EQ(waits.begin()->second, first);
}

}  // namespace
}  // namespace waits_test_cc
}  // namespace orrery::simulator
