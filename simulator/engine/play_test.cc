#include "simulator/engine/play.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/program_test_util.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace play_test_cc {
namespace {

// Whatever the program, the engine that is chosen plays it as the events of the fluid network do.
TEST(Play, IsTheFluidNetworkOfAnyProgram) {
  int with_events = 0, without = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    const Program program = RandomProgram({.seed = seed,
                                           .ordered = seed % 3 != 0,
                                           .flows = seed % 2 == 0,
                                           .one_stream = seed % 5 == 0,
                                           .slow_down = seed % 4 == 1});
    FluidNetwork network(program);
    const absl::StatusOr<Trace> expected = RunEvents(program, network);
    const absl::StatusOr<Trace> trace = Play(program);
    ASSERT_TRUE(expected.ok() && trace.ok()) << trace.status();
    EXPECT_TRUE(*trace == *expected) << Print(program);
    ++(NeedsEvents(program) ? with_events : without);
  }
  EXPECT_GT(with_events, 30);
  EXPECT_GT(without, 20);
}

constexpr absl::string_view kTwo = R"(program
rank0 "r" members 0 stage 0
stream0 rank0 compute
stream1 rank0 data
label0 "op" compute forward stage 0
label1 "send" send forward stage 0
resource0 "link" "port" capacity 1000000000000 bytes/s latency 0 ps
flow0 size 10 bytes rate 1000000000000 bytes/s latency 0 ps loads resource0 1
)";

TEST(Play, TellsTheUseOfLinks) {
  const Program program = Parse(absl::StrCat(kTwo,
                                             "task0 stream0 label0 takes 100 ps\n"
                                             "task1 stream1 label1 takes flow0\n"));
  LinkUse use(program);
  const absl::StatusOr<Trace> trace = Play(program, &use);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(use.Summarize(ResourceId(0), trace->makespan).busy, Duration(10));
}

// By the longest path, and by events.
TEST(Play, WhatNeverEndsIsAnError) {
  const std::string compute =
      "task0 stream0 label0 takes 4000000000000000000 ps\n"
      "task1 stream0 label0 takes 4000000000000000000 ps\n";
  const std::string flow = "task2 stream1 label1 takes flow0\n";
  for (const std::string& tasks : {compute, compute + flow}) {
    const absl::Status status = Play(Parse(absl::StrCat(kTwo, tasks))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("goes on beyond"));
  }
}

}  // namespace
}  // namespace play_test_cc
}  // namespace orrery::simulator
