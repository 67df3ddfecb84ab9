#include "simulator/network/flow_chains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"
#include "simulator/network/link_use.h"
#include "simulator/program/program_text.h"
#include "simulator/program/time_alone.h"

// A task of a chain is what its flows are, one task each: to the picosecond, whatever else goes on.

namespace orrery::simulator {
namespace flow_chains_test_cc {
namespace {

// Streams of chains, twice: each chain as one task, and its legs as tasks of their own.
struct Twice {
  Program chained, apart;
  std::vector<TaskId> chains;              // of `chained`
  std::vector<std::vector<TaskId>> parts;  // of `apart`, by chain: of each leg its wait, its flow,
                                           // and its end
};

class Drawing {
 public:
  explicit Drawing(uint32_t seed) : random_(seed) {}

  int64_t Number(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }

  // Round times and sizes, so that much happens at one moment.
  Twice Programs() {
    Twice twice;
    const int links = static_cast<int>(Number(1, 4));
    for (Program* program : {&twice.chained, &twice.apart}) {
      const RankClassId rank = program->AddRank({.members = {0}});
      for (int s = 0; s < 2 * kStreams; ++s) program->AddStream(rank, StreamKind::kCompute);
      program->AddLabel({.name = "op"});
    }
    for (int i = 0; i < links; ++i) {
      const Resource link = {.capacity = Bandwidth(Number(1, 4) * 1'000'000'000'000)};
      twice.chained.AddResource(link);
      twice.apart.AddResource(link);
    }
    std::vector<FlowId> flows;
    for (int64_t i = Number(1, 6); i > 0; --i) flows.push_back(AddFlow(links, twice));
    for (int64_t i = Number(4, 24); i > 0; --i) AddChain(flows, twice);
    return twice;
  }

 private:
  static constexpr int kStreams = 4;

  FlowId AddFlow(int links, Twice& twice) {
    std::vector<Load> loads;
    for (int i = 0; i < links; ++i) {
      if (Number(0, 1) == 1) loads.push_back({ResourceId(i), static_cast<double>(Number(1, 2))});
    }
    const Flow flow = {.size = Bytes(10 * Number(0, 5)),
                       .rate = Bandwidth(Number(1, 4) * 1'000'000'000'000),
                       .latency = Duration(10 * Number(0, 2)),
                       .loads = loads};
    twice.apart.AddFlow(flow);
    return twice.chained.AddFlow(flow);
  }

  void AddChain(const std::vector<FlowId>& flows, Twice& twice) {
    const StreamId stream(static_cast<int32_t>(Number(0, kStreams - 1)));
    const StreamId other(stream.index() + kStreams);
    std::vector<Leg> legs;
    std::vector<TaskId>& parts = twice.parts.emplace_back();
    for (int64_t i = Number(1, 5); i > 0; --i) {
      Leg leg = {.before = Duration(10 * Number(0, 4)),
                 .flow = flows[static_cast<size_t>(Number(0, std::ssize(flows) - 1))],
                 .beside = Duration(10 * Number(0, 4) * Number(0, 4))};
      if (i == 1 && Number(0, 1) == 0) leg = {.before = leg.before};
      const auto add = [&](StreamId on, const Task& task, std::vector<TaskId> after) {
        return twice.apart.AddTask(on, task, after);
      };
      parts.push_back(add(stream, {.duration = leg.before, .label = LabelId(0)}, {}));
      if (leg.flow.valid()) {
        const TaskId beside =
            add(other, {.duration = leg.beside, .label = LabelId(0)}, {parts.back()});
        parts.push_back(add(stream, {.flow = leg.flow, .label = LabelId(0)}, {}));
        parts.push_back(add(stream, {.label = LabelId(0)}, {beside}));
      }
      legs.push_back(leg);
    }
    twice.chains.push_back(
        twice.chained.AddTask(stream, {.flow = twice.chained.AddChain(legs), .label = LabelId(0)}));
  }

  std::mt19937 random_;
};

Trace Play(const Program& program, LinkUse* use = nullptr) {
  EXPECT_TRUE(program.Verify().ok()) << program.Verify();
  FluidNetwork network(program, use);
  absl::StatusOr<Trace> trace = RunEvents(program, network);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *std::move(trace);
}

// What the flows of `apart` took longer than alone.
std::vector<LegDelay> DelaysOf(const Twice& twice, const Trace& apart) {
  std::vector<LegDelay> delays;
  for (size_t c = 0; c < twice.chains.size(); ++c) {
    int32_t leg = -1;
    for (const TaskId part : twice.parts[c]) {
      const FlowId flow = twice.apart.flow_of(part);
      if (!flow.valid()) continue;
      ++leg;
      const Duration took = apart.finish_of(part) - apart.start_of(part);
      const Duration late = took - TimeAlone(twice.apart.flow(flow), twice.apart);
      if (late > Duration(0)) delays.push_back({twice.chains[c], leg, late});
    }
  }
  return delays;
}

TEST(FlowChains, AreTheirFlowsOneByOne) {
  int64_t delayed = 0, fewer = 0;
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(seed);
    const Twice twice = Drawing(seed).Programs();
    const Trace apart = Play(twice.apart), chained = Play(twice.chained);
    ASSERT_EQ(chained.makespan, apart.makespan);
    for (size_t c = 0; c < twice.chains.size(); ++c) {
      ASSERT_EQ(chained.start_of(twice.chains[c]), apart.start_of(twice.parts[c].front()));
      ASSERT_EQ(chained.finish_of(twice.chains[c]), apart.finish_of(twice.parts[c].back()));
    }
    ASSERT_EQ(chained.delays, DelaysOf(twice, apart));
    delayed += std::ssize(chained.delays);
    fewer += twice.apart.task_count() - twice.chained.task_count();
  }
  EXPECT_GT(delayed, 4000);
  EXPECT_GT(fewer, 4000);
}

// Who looks at links sees each flow, and the same times.
TEST(FlowChains, AreSeenOnLinks) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const Twice twice = Drawing(seed).Programs();
    LinkUse of_apart(twice.apart), of_chained(twice.chained);
    const Trace apart = Play(twice.apart, &of_apart), chained = Play(twice.chained, &of_chained);
    ASSERT_EQ(chained.makespan, apart.makespan);
    for (int32_t r = 0; r < twice.apart.resource_count(); ++r) {
      const ResourceUse a = of_apart.Summarize(ResourceId(r), apart.makespan);
      const ResourceUse b = of_chained.Summarize(ResourceId(r), chained.makespan);
      ASSERT_EQ(a.bytes, b.bytes);
      ASSERT_EQ(a.busy, b.busy);
      ASSERT_EQ(a.full, b.full);
    }
  }
}

constexpr absl::string_view kProgram = R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
stream1 rank0 data
label0 "op" compute forward stage 0
resource0 "up" "port" capacity 1000000000000 bytes/s latency 0 ps
flow0 size 100 bytes rate 1000000000000 bytes/s latency 7 ps loads resource0 1
flow1 chain 10 ps flow0 beside 30 ps part 0 20 ps flow0 part 0 5 ps
task0 stream0 label0 takes flow1
task1 stream1 label0 takes 50 ps
task2 stream1 label0 takes flow0 after task1
)";

// Until 50 ps 40 bytes alone, then 60 at half the rate until 170, when the other has 40 left; 27 of
// them alone, as the chain goes on at 197, after 7 of latency and 20; 13 at half the rate until
// 223; then the chain's other 87 bytes, 7 and 5 ps.
TEST(FlowChains, AreOpenedWhereAnotherFlowComes) {
  const absl::StatusOr<Program> program = ParseProgram(kProgram);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(TimeAlone(program->flow(FlowId(1)), *program), Duration(10 + 107 + 20 + 107 + 5));
  const Trace trace = Play(*program);
  EXPECT_EQ(trace.finish_of(TaskId(2)), Time(230));
  EXPECT_EQ(trace.finish_of(TaskId(0)), Time(322));
  const std::vector<LegDelay> delays = {{TaskId(0), 0, Duration(60)}, {TaskId(0), 1, Duration(13)}};
  EXPECT_EQ(trace.delays, delays);
}

TEST(FlowChains, ArePrintedAndParsed) {
  const absl::StatusOr<Program> program = ParseProgram(kProgram);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Print(*ParseProgram(Print(*program))), Print(*program));
  EXPECT_NE(
      Print(*program).find("flow1 chain 10 ps flow0 beside 30 ps part 0 20 ps flow0 part 0 5 ps\n"),
      std::string::npos);
}

// Its kernels would not be slowed down, without a word.
TEST(FlowChains, AreRefusedWhereCommunicationSlowsRanksDown) {
  Program program = *ParseProgram(kProgram);
  RankClass slow = {.members = {1}, .communication_slowdown = 0.1};
  const RankClassId rank = program.AddRank(slow);
  for (const StreamKind kind : {StreamKind::kCompute, StreamKind::kData}) {
    program.AddStream(rank, kind);
  }
  FluidNetwork network(program);
  EXPECT_EQ(RunEvents(program, network).status().message(),
            "simulation: flow1 is a chain, where communication slows ranks down; wanted a task for "
            "each of its flows and kernels");
}

TEST(FlowChains, StandInNoChain) {
  Program program = *ParseProgram(kProgram);
  const Leg leg = {.before = Duration(1), .flow = FlowId(1)};
  program.AddChain(std::span(&leg, 1));
  EXPECT_EQ(
      program.Verify().message(),
      "program: flow2: flow1, a chain, in a chain, wanted flows; try putting its flows there");
}

}  // namespace
}  // namespace flow_chains_test_cc
}  // namespace orrery::simulator
