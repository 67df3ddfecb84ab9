// Flow events per second of the fluid network, a start and a finish being an event each, through
// the whole event queue. Flows in step are what collectives and all-to-alls look like: one solution
// of the rates serves all that begin and end at a moment. Random traffic is the worst case: each
// arrival solves for all.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/program.h"
#include "simulator/testing/independent_flows.h"

namespace orrery::simulator {
namespace {

constexpr Bandwidth kPort(50'000'000'000);
constexpr Duration kLatency(500'000);

std::vector<StreamId> AddStreams(Program& program, int32_t count) {
  std::vector<StreamId> streams;
  const RankClassId rank = program.AddRank({.name = "all", .members = {0}});
  for (int32_t i = 0; i < count; ++i) {
    streams.push_back(program.AddStream(rank, StreamKind::kSendNext));
  }
  program.AddLabel({.name = "Send", .kind = TaskKind::kSend});
  return streams;
}

std::vector<ResourceId> AddPorts(Program& program, int32_t count, Bandwidth rate = kPort) {
  std::vector<ResourceId> ports;
  for (int32_t i = 0; i < count; ++i) {
    ports.push_back(program.AddResource({.name = "port", .capacity = rate}));
  }
  return ports;
}

// `rounds` tasks of a flow on each stream, one after the other.
void AddRounds(Program& program, const std::vector<StreamId>& streams,
               const std::vector<FlowId>& flows, int rounds) {
  program.Reserve(rounds * static_cast<int32_t>(streams.size()));
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < streams.size(); ++i) {
      program.AddTask(streams[i], {.flow = flows[i], .label = LabelId(0)});
    }
  }
}

// 1,024 neighbours that talk around a ring, each over `hops` links that others use too.
Program Ring(int32_t hops) {
  constexpr int32_t kRanks = 1024;
  Program program;
  const std::vector<StreamId> streams = AddStreams(program, kRanks);
  const std::vector<ResourceId> links = AddPorts(program, kRanks);
  std::vector<FlowId> flows;
  for (int32_t i = 0; i < kRanks; ++i) {
    std::vector<Load> loads;
    for (int32_t hop = 0; hop < hops; ++hop) {
      loads.push_back({links[static_cast<size_t>((i + hop) % kRanks)]});
    }
    flows.push_back(program.AddFlow(
        {.size = Bytes(65'536), .rate = kPort, .latency = kLatency * hops, .loads = loads}));
  }
  AddRounds(program, streams, flows, 100);
  return program;
}

// 1,024 senders behind an uplink with an eighth of their bandwidth.
Program Uplink() {
  constexpr int32_t kRanks = 1024;
  Program program;
  const std::vector<StreamId> streams = AddStreams(program, kRanks);
  const std::vector<ResourceId> out = AddPorts(program, kRanks);
  const std::vector<ResourceId> in = AddPorts(program, kRanks);
  const ResourceId uplink =
      program.AddResource({.capacity = Bandwidth(kPort.bytes_per_second() * kRanks / 8)});
  std::vector<FlowId> flows;
  for (size_t i = 0; i < kRanks; ++i) {
    const std::vector<Load> loads = {{out[i]}, {uplink}, {in[kRanks - 1 - i]}};
    flows.push_back(program.AddFlow(
        {.size = Bytes(65'536), .rate = kPort, .latency = kLatency, .loads = loads}));
  }
  AddRounds(program, streams, flows, 100);
  return program;
}

// 256 senders of messages of any size between 64 devices in 4 groups with an uplink each; two in
// three leave their group. No two begin together.
Program RandomTraffic() {
  constexpr int32_t kStreams = 256;
  constexpr size_t kDevices = 64;
  constexpr size_t kGroup = 16;
  Program program;
  const std::vector<StreamId> streams = AddStreams(program, kStreams);
  const std::vector<ResourceId> out = AddPorts(program, kDevices);
  const std::vector<ResourceId> in = AddPorts(program, kDevices);
  const std::vector<ResourceId> up = AddPorts(program, 4, Bandwidth(200'000'000'000));
  const std::vector<ResourceId> down = AddPorts(program, 4, Bandwidth(200'000'000'000));
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    for (const StreamId stream : streams) {
      const size_t from = random() % kDevices;
      const size_t to = random() % kDevices;
      std::vector<Load> loads = {{out[from]}};
      if (from / kGroup != to / kGroup) {
        loads.push_back({up[from / kGroup]});
        loads.push_back({down[to / kGroup]});
      }
      loads.push_back({in[to]});
      const FlowId flow = program.AddFlow({.size = Bytes(1000 + random() % 1'000'000),
                                           .rate = kPort,
                                           .latency = kLatency,
                                           .loads = loads});
      program.AddTask(stream, {.flow = flow, .label = LabelId(0)});
    }
  }
  return program;
}

// Pairs that share nothing with other pairs, as in a large cluster: a change must not cost more
// than its neighbourhood.
Program ManyPairs() {
  constexpr int32_t kPairs = 8192;
  Program program;
  const std::vector<StreamId> streams = AddStreams(program, 2 * kPairs);
  const std::vector<ResourceId> links = AddPorts(program, kPairs);
  std::mt19937 random(1);
  std::vector<FlowId> flows;
  for (size_t i = 0; i < streams.size(); ++i) {
    const std::vector<Load> loads = {{links[i / 2]}};
    flows.push_back(program.AddFlow({.size = Bytes(1000 + random() % 1'000'000),
                                     .rate = kPort,
                                     .latency = kLatency,
                                     .loads = loads}));
  }
  AddRounds(program, streams, flows, 10);
  return program;
}

void Play(benchmark::State& state, const Program& program) {
  for (auto _ : state) {
    FluidNetwork network(program);
    benchmark::DoNotOptimize(RunEvents(program, network)->makespan);
  }
  state.SetItemsProcessed(2 * state.iterations() * program.task_count());
}

void BM_FluidRing(benchmark::State& state) {
  Play(state, Ring(static_cast<int32_t>(state.range(0))));
}
BENCHMARK(BM_FluidRing)->ArgName("hops")->Arg(1)->Arg(2)->Arg(6)->Unit(benchmark::kMillisecond);

void BM_FluidUplink(benchmark::State& state) { Play(state, Uplink()); }
BENCHMARK(BM_FluidUplink)->Unit(benchmark::kMillisecond);

void BM_FluidRandomTraffic(benchmark::State& state) { Play(state, RandomTraffic()); }
BENCHMARK(BM_FluidRandomTraffic)->Unit(benchmark::kMillisecond);

void BM_FluidManyPairs(benchmark::State& state) { Play(state, ManyPairs()); }
BENCHMARK(BM_FluidManyPairs)->Unit(benchmark::kMillisecond);

// With what the event queue costs by itself.
void BM_IndependentRing(benchmark::State& state) {
  const Program program = Ring(2);
  for (auto _ : state) {
    IndependentFlows network;
    benchmark::DoNotOptimize(RunEvents(program, network)->makespan);
  }
  state.SetItemsProcessed(2 * state.iterations() * program.task_count());
}
BENCHMARK(BM_IndependentRing)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::simulator
