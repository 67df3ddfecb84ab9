// Tasks per second of the two engines and of the report, on graphs shaped like a pipeline: chains
// of compute on every rank, a rendezvous with the next rank now and then, and dependencies across
// streams. See docs/ARCHITECTURE.md for the rates that these are held against.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "simulator/engine/event_queue.h"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program.h"
#include "simulator/report/report.h"
#include "simulator/testing/independent_flows.h"

namespace orrery::simulator {
namespace {

constexpr int32_t kTasks = 1 << 20;
constexpr int32_t kCandidateTasks = 10'000;  // of one candidate of a search, folded

struct Rank {
  RankClassId id;
  StreamId compute;
  StreamId communication;
  TaskId last;  // on the compute stream
};

struct Shape {
  int32_t ranks = 8;
  int32_t tasks = kTasks;
  bool with_memory = false;
  bool blocking = false;  // the all-reduce on the compute stream too
  double slowdown = 0;    // of compute while the all-reduce runs
};

std::vector<Rank> AddRanks(Program& program, const Shape& shape) {
  std::vector<Rank> ranks;
  for (int32_t i = 0; i < shape.ranks; ++i) {
    const RankClassId id = program.AddRank(
        {.name = "rank", .members = {i}, .stage = i, .communication_slowdown = shape.slowdown});
    ranks.push_back({.id = id,
                     .compute = program.AddStream(id, StreamKind::kCompute),
                     .communication = program.AddStream(id, StreamKind::kSendNext),
                     .last = {}});
  }
  return ranks;
}

// Rounds in which each rank computes 14 times and all-reduces, on its other stream, and then each
// even rank sends to the odd one after it or before it, in turn. All ranks are at work all the
// time, so the event queue holds as many events as there are ranks.
Program Pipeline(const Shape& shape) {
  Program program;
  program.Reserve(shape.tasks);
  std::vector<Rank> ranks = AddRanks(program, shape);
  const LabelId compute = program.AddLabel({.name = "MatMul", .flops = Flops(1e9)});
  const LabelId reduce = program.AddLabel({.name = "AllReduce", .kind = TaskKind::kCollective});
  const LabelId send = program.AddLabel({.name = "Send", .kind = TaskKind::kSend});
  std::mt19937 random(1);
  const auto duration = [&random] { return Duration(1'000'000 + random() % 1'000'000); };
  for (size_t round = 0; program.task_count() < shape.tasks; ++round) {
    for (Rank& rank : ranks) {
      for (int step = 0; step < 14; ++step) {
        rank.last = program.AddTask(rank.compute, {.duration = duration(), .label = compute});
        if (!shape.with_memory) continue;
        program.AddMemoryEvent(
            {.task = rank.last, .rank = rank.id, .kind = MemoryKind::kActivations, .bytes = 4096});
        program.AddMemoryEvent(
            {.task = rank.last, .rank = rank.id, .kind = MemoryKind::kActivations, .bytes = -4096});
      }
      program.AddTask(shape.blocking ? rank.compute : rank.communication,
                      {.duration = duration(), .label = reduce}, std::array{rank.last});
    }
    for (size_t i = round % 2; i < ranks.size(); i += 2) {
      program.AddRendezvous(std::array{ranks[i].compute, ranks[(i + 1) % ranks.size()].compute},
                            {.duration = duration(), .label = send});
    }
  }
  return program;
}

Shape ShapeOf(const benchmark::State& state) {
  return {.ranks = static_cast<int32_t>(state.range(0))};
}

void SetItems(benchmark::State& state, const Program& program) {
  state.SetItemsProcessed(state.iterations() * program.task_count());
}

void BM_LongestPath(benchmark::State& state) {
  const Program program = Pipeline(ShapeOf(state));
  Trace trace;
  for (auto _ : state) {
    RunLongestPath(program, trace);
    benchmark::DoNotOptimize(trace.makespan);
  }
  SetItems(state, program);
}
BENCHMARK(BM_LongestPath)->ArgName("ranks")->Arg(8)->Arg(1024)->Unit(benchmark::kMillisecond);

void BM_LongestPathNewTrace(benchmark::State& state) {
  const Program program = Pipeline(ShapeOf(state));
  for (auto _ : state) benchmark::DoNotOptimize(RunLongestPath(program).makespan);
  SetItems(state, program);
}
BENCHMARK(BM_LongestPathNewTrace)
    ->ArgName("ranks")
    ->Arg(8)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);

void BM_EventQueue(benchmark::State& state) {
  const Program program = Pipeline(ShapeOf(state));
  for (auto _ : state) {
    IndependentFlows network;
    benchmark::DoNotOptimize(RunEvents(program, network)->makespan);
  }
  SetItems(state, program);
}
BENCHMARK(BM_EventQueue)->ArgName("ranks")->Arg(8)->Arg(1024)->Unit(benchmark::kMillisecond);

// The same, and every all-reduce moves the finishes of what computes beside it, twice.
void BM_EventQueueWithSlowDown(benchmark::State& state) {
  Shape shape = ShapeOf(state);
  shape.slowdown = 0.1;
  const Program program = Pipeline(shape);
  for (auto _ : state) {
    IndependentFlows network;
    benchmark::DoNotOptimize(RunEvents(program, network)->makespan);
  }
  SetItems(state, program);
}
BENCHMARK(BM_EventQueueWithSlowDown)
    ->ArgName("ranks")
    ->Arg(8)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);

// What a search pays for each candidate once it is lowered.
void BM_PlayAndSummarize(benchmark::State& state) {
  const Program program = Pipeline(
      {.ranks = 8, .tasks = kCandidateTasks, .with_memory = true, .blocking = state.range(0) != 0});
  Trace trace;
  for (auto _ : state) {
    RunLongestPath(program, trace);
    benchmark::DoNotOptimize(Summarize(program, trace).step_time);
  }
  SetItems(state, program);
}
BENCHMARK(BM_PlayAndSummarize)->ArgName("blocking")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void BM_Summarize(benchmark::State& state) {
  Shape shape = ShapeOf(state);
  shape.with_memory = true;
  const Program program = Pipeline(shape);
  const Trace trace = RunLongestPath(program);
  for (auto _ : state) benchmark::DoNotOptimize(Summarize(program, trace).step_time);
  SetItems(state, program);
}
BENCHMARK(BM_Summarize)->ArgName("ranks")->Arg(8)->Arg(1024)->Unit(benchmark::kMillisecond);

void BM_PeakMemory(benchmark::State& state) {
  Shape shape = ShapeOf(state);
  shape.with_memory = true;
  const Program program = Pipeline(shape);
  const Trace trace = RunLongestPath(program);
  for (auto _ : state) benchmark::DoNotOptimize(PeakMemory(program, trace).size());
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(program.memory_events().size()));
}
BENCHMARK(BM_PeakMemory)->ArgName("ranks")->Arg(8)->Arg(1024)->Unit(benchmark::kMillisecond);

void BM_BuildProgram(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Pipeline(ShapeOf(state)).task_count());
  }
  state.SetItemsProcessed(state.iterations() * kTasks);
}
BENCHMARK(BM_BuildProgram)->ArgName("ranks")->Arg(8)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::simulator
