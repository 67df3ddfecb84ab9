#include "simulator/report/host_memory.h"

#include <gtest/gtest.h>

#include "simulator/engine/longest_path.h"
#include "simulator/program/program_test_util.h"
#include "simulator/report/memory.h"
#include "simulator/report/report.h"

namespace orrery::simulator {
namespace host_memory_test_cc {
namespace {

// Two copies out, then one back: the host holds both from 4 to 9; the device never holds what is
// there.
constexpr absl::string_view kCopies = R"(program
rank0 "pp0" members 0 stage 0
rank1 "pp1" members 1 stage 1
resident rank0 parameters 100 bytes
resident rank0 host 7 bytes
stream0 rank0 host
stream1 rank0 from-host
stream2 rank0 host-compute
stream3 rank1 compute
label0 "CopyToHost" compute forward stage 0
label1 "CopyFromHost" compute backward stage 0
label2 "Adam" compute update stage 0
task0 stream0 label0 takes 4 ps
task1 stream0 label0 takes 4 ps
task2 stream1 label1 takes 5 ps after task0
task3 stream2 label2 takes 1 ps after task1
memory task0 rank0 host +20 bytes
memory task0 rank0 activations -20 bytes
memory task1 rank0 host +30 bytes
memory task1 rank0 activations -30 bytes
memory task2 rank0 activations +20 bytes
memory task2 rank0 host -20 bytes
)";

TEST(HostMemory, IsTheMostAtATime) {
  const Program program = Parse(kCopies);
  const Trace trace = RunLongestPath(program);
  const auto peaks = PeakHostMemory(program, trace);
  EXPECT_EQ(peaks[RankClassId(0)], Bytes(7 + 20 + 30));
  EXPECT_EQ(peaks[RankClassId(1)], Bytes(0));
  const Report report = Summarize(program, trace);
  EXPECT_EQ(report.ranks[RankClassId(0)].host_memory, Bytes(57));
}

TEST(HostMemory, IsNoMemoryOfTheDevice) {
  const Program program = Parse(kCopies);
  const auto peaks = PeakMemory(program, RunLongestPath(program));
  const MemoryUse& peak = peaks[RankClassId(0)];
  EXPECT_EQ(peak.total, Bytes(100));
  const auto timelines = MemoryTimeline(program, RunLongestPath(program));
  for (const MemoryUse& use : timelines[RankClassId(0)]) {
    EXPECT_LE(use.total, Bytes(100));
  }
}

}  // namespace
}  // namespace host_memory_test_cc
}  // namespace orrery::simulator
