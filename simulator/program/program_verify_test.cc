#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "simulator/program/program.h"
#include "simulator/program/time_alone.h"

// Where what verifies ends: the last value on one side, the first on the other.

namespace orrery::simulator {
namespace program_verify_test_cc {
namespace {

using ::testing::HasSubstr;

std::string Trouble(const Program& program) { return std::string(program.Verify().message()); }

// One rank with one stream and a label.
struct OneRank {
  explicit OneRank(RankClass row = {.members = {0}}) : rank(program.AddRank(std::move(row))) {}

  Program program;
  RankClassId rank;
  StreamId stream = program.AddStream(rank, StreamKind::kCompute);
  LabelId label = program.AddLabel({.name = "op"});
};

TEST(ProgramVerify, TasksMayTakeFromNothingToTheEndOfTime) {
  const auto trouble_of = [](Duration duration) {
    OneRank one;
    one.program.AddTask(one.stream, {.duration = duration, .label = one.label});
    return Trouble(one.program);
  };
  EXPECT_EQ(trouble_of(Duration(0)), "");
  EXPECT_EQ(trouble_of(kEndOfTime), "");
  EXPECT_EQ(trouble_of(kEndOfTime + Duration(1)),
            "program: task0: a duration of 4611686018427387904 ps, wanted 0 ps or more and at most "
            "4611686 s; try checking the cost model that made it");
  EXPECT_THAT(trouble_of(Duration(-1)), HasSubstr("task0: a duration of -1 ps"));
}

TEST(ProgramVerify, RanksLoseAPartOfTheirRateButNotAllOfIt) {
  const auto trouble_of = [](double slowdown) {
    return Trouble(OneRank({.members = {0}, .communication_slowdown = slowdown}).program);
  };
  EXPECT_EQ(trouble_of(0), "");
  EXPECT_EQ(trouble_of(0.999), "");
  EXPECT_EQ(trouble_of(1),
            "program: rank0: a communication slow-down of 1, wanted 0 to less than 1; try the part "
            "of its rate that the device loses");
  for (const double slowdown : {-0.001, 1.5, std::nan("")}) {
    EXPECT_THAT(trouble_of(slowdown), HasSubstr("rank0: a communication slow-down of "));
  }
}

TEST(ProgramVerify, TheFirstStreamAndTheFirstResourceAreChecked) {
  Program stream;
  stream.AddStream(RankClassId(0), StreamKind::kCompute);
  EXPECT_EQ(Trouble(stream),
            "program: stream0: names rank0, wanted one of the 0 that there are; try adding it "
            "first");
  Program resource;
  resource.AddResource({.name = "up"});
  EXPECT_THAT(Trouble(resource), HasSubstr("resource0 'up': a capacity of 0 bytes/s"));
}

TEST(ProgramVerify, FlowsMayBeEmptyAndWithoutLatencyButNotWithoutRate) {
  const auto trouble_of = [](const Flow& flow) {
    Program program;
    program.AddFlow(flow);
    return Trouble(program);
  };
  EXPECT_EQ(trouble_of({.rate = Bandwidth(1)}), "");
  EXPECT_EQ(trouble_of({.size = Bytes(-1), .rate = Bandwidth(2), .latency = Duration(3)}),
            "program: flow0: a size of -1 bytes, a rate of 2 bytes/s, a latency of 3 ps, wanted "
            "size >= 0, rate > 0, latency >= 0; try checking the link that it crosses");
  EXPECT_THAT(trouble_of({.rate = Bandwidth(-1)}), HasSubstr("a rate of -1 bytes/s"));
  EXPECT_THAT(trouble_of({.rate = Bandwidth(1), .latency = Duration(-1)}),
              HasSubstr("a latency of -1 ps"));
}

TEST(ProgramVerify, LoadsMayBeTheLeastAndTheMost) {
  const auto trouble_of = [](double load) {
    Program program;
    const std::vector<Load> loads = {
        {program.AddResource({.name = "up", .capacity = Bandwidth(1)}), load}};
    program.AddFlow({.rate = Bandwidth(1), .loads = loads});
    return Trouble(program);
  };
  EXPECT_EQ(trouble_of(kLeastLoad), "");
  EXPECT_EQ(trouble_of(kMostLoad), "");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(trouble_of(std::nextafter(kLeastLoad, 0)),
              HasSubstr("flow0: a load of 1e-09 on resource0, wanted 1e-09 to 1e+12"));
  EXPECT_THAT(trouble_of(std::nextafter(kMostLoad, kInfinity)),
              HasSubstr("flow0: a load of 1e+12 on resource0"));
}

// So that a network can be built before there is anything to do.
TEST(ProgramVerify, TheNetworkIsVerifiedByItself) {
  OneRank nobody({.members = {}});
  nobody.program.AddResource({.name = "up", .capacity = Bandwidth(1)});
  EXPECT_THAT(Trouble(nobody.program), HasSubstr("rank0: no members"));
  EXPECT_TRUE(nobody.program.VerifyNetwork().ok());
  nobody.program.AddFlow({});
  EXPECT_THAT(std::string(nobody.program.VerifyNetwork().message()), HasSubstr("flow0"));
}

TEST(Program, LabelsKeepTheirOwnCommunicationAndLevel) {
  Program program;
  const LabelId plain = program.AddLabel({.name = "MatMul"});
  const LabelId reduce = program.AddLabel({.communication = "all-reduce dp", .level = "nic"});
  const LabelId gather = program.AddLabel({.communication = "all-gather dp", .level = "nic"});
  const LabelId odd = program.AddLabel({.communication = "nic", .level = "all-reduce dp"});
  EXPECT_EQ(program.label(plain).communication, "");
  EXPECT_EQ(program.label(plain).level, "");
  EXPECT_EQ(program.label(plain).collectives, 1);
  EXPECT_EQ(program.label(reduce).communication, "all-reduce dp");
  EXPECT_EQ(program.label(gather).communication, "all-gather dp");
  EXPECT_EQ(program.label(gather).level, "nic");
  EXPECT_EQ(program.label(odd).communication, "nic");
  EXPECT_EQ(program.label(odd).level, "all-reduce dp");
  program.SetCollectives(gather, 4);
  EXPECT_EQ(program.label(gather).collectives, 4);
  EXPECT_EQ(program.label(reduce).collectives, 1);
}

TEST(MemoryEvent, HappensByItsSignUnlessItSaysOtherwise) {
  EXPECT_TRUE(MemoryEvent{.bytes = 1}.at_start());
  EXPECT_FALSE(MemoryEvent{.bytes = 0}.at_start());
  EXPECT_FALSE(MemoryEvent{.bytes = -1}.at_start());
  EXPECT_TRUE((MemoryEvent{.moment = MemoryMoment::kStart, .bytes = -1}).at_start());
  EXPECT_FALSE((MemoryEvent{.moment = MemoryMoment::kFinish, .bytes = 1}).at_start());
}

}  // namespace
}  // namespace program_verify_test_cc
}  // namespace orrery::simulator
