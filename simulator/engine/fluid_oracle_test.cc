// The fluid network against water filling that is too plain to be wrong: everything again at each
// moment, in loops over everything, in long double.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/program_text.h"
#include "simulator/testing/independent_flows.h"

namespace orrery::simulator {
namespace fluid_oracle_test_cc {
namespace {

constexpr long double kSlack = 1.0L / 1024;

// A program of chains: each stream waits or sends, one after the other.
struct Chains {
  Program program;
  std::vector<std::vector<TaskId>> tasks;  // by stream
};

class Oracle {
 public:
  explicit Oracle(const Chains& chains) : chains_(chains), program_(chains.program) {
    finish_.resize(static_cast<size_t>(program_.task_count()));
    runs_.resize(chains.tasks.size());
    for (Run& run : runs_) Begin(run, 0);
  }

  // When each task finishes.
  std::vector<Time> Play() {
    while (true) {
      while (EndWhatIsDue()) {
      }
      Fill();
      int64_t next = std::numeric_limits<int64_t>::max();
      for (const Run& run : runs_) {
        if (run.phase != kOver) next = std::min(next, DueOf(run));
      }
      if (next == std::numeric_limits<int64_t>::max()) return finish_;
      for (Run& run : runs_) {
        if (run.phase == kSending) run.left -= run.rate * static_cast<long double>(next - now_);
      }
      now_ = next;
    }
  }

 private:
  enum Phase { kWaiting, kSending, kTravelling, kOver };
  struct Run {
    size_t position = 0;
    Phase phase = kOver;
    int64_t due = 0;        // when waiting or travelling ends
    long double left = 0;   // bytes × picoseconds a second
    long double rate = 0;   // bytes a second
    int64_t least_due = 0;  // of the last byte: when a flow alone has sent it
    Flow flow;
  };

  size_t StreamOf(const Run& run) const { return static_cast<size_t>(&run - runs_.data()); }

  void Begin(Run& run, size_t position) {
    const std::vector<TaskId>& tasks = chains_.tasks[StreamOf(run)];
    run.position = position;
    run.phase = kOver;
    if (position >= tasks.size()) return;
    const FlowId flow = program_.flow_of(tasks[position]);
    if (!flow.valid()) {
      run.phase = kWaiting;
      run.due = now_ + program_.duration(tasks[position]).picoseconds();
      return;
    }
    run.flow = program_.flow(flow);
    run.left = static_cast<long double>(run.flow.size.count()) * 1e12L;
    run.least_due = now_ + SendAlone(run.flow);
    run.phase = kSending;
    run.rate = 0;
  }

  // Exact, for loads that are a multiple of a quarter.
  int64_t SendAlone(const Flow& flow) const {
    using Wide = __int128;
    const Wide work = static_cast<Wide>(flow.size.count()) * 1'000'000'000'000;
    Wide longest = -(-work / flow.rate.bytes_per_second());
    if (work % flow.rate.bytes_per_second() != 0) ++longest;
    for (const Load& load : flow.loads) {
      const Wide quarters = static_cast<Wide>(load.load * 4);
      const Wide capacity =
          static_cast<Wide>(4) * program_.resource(load.resource).capacity.bytes_per_second();
      const Wide time = (work * quarters + capacity - 1) / capacity;
      longest = std::max(longest, time);
    }
    return static_cast<int64_t>(longest);
  }

  int64_t DueOf(const Run& run) const {
    if (run.phase != kSending) return run.due;
    if (run.left <= run.rate * kSlack) return std::max(now_, run.least_due);
    const long double time = std::ceil(run.left / run.rate - kSlack);
    return std::max(now_ + static_cast<int64_t>(time), run.least_due);
  }

  bool EndWhatIsDue() {
    bool ended = false;
    for (Run& run : runs_) {
      if (run.phase == kOver) continue;
      const bool empty = run.phase == kSending && run.flow.size == Bytes(0);
      if (run.phase == kSending && !empty && (run.rate == 0 || DueOf(run) > now_)) continue;
      if (run.phase != kSending && run.due > now_) continue;
      ended = true;
      if (run.phase == kSending) {
        run.phase = kTravelling;
        run.due = now_ + run.flow.latency.picoseconds();
        continue;
      }
      const TaskId task = chains_.tasks[StreamOf(run)][run.position];
      finish_[static_cast<size_t>(task.index())] = Time(now_);
      Begin(run, run.position + 1);
    }
    return ended;
  }

  void Fill() {
    std::vector<Run*> open;
    for (Run& run : runs_) {
      if (run.phase == kSending) open.push_back(&run);
      run.rate = 0;
    }
    while (!open.empty()) {
      const std::vector<long double> levels = LevelsOfResources(open);
      long double level = std::numeric_limits<long double>::infinity();
      for (const Run* run : open) level = std::min(level, LevelOf(*run, levels));
      std::vector<Run*> frozen;
      for (Run* run : open) {
        if (LevelOf(*run, levels) <= level) frozen.push_back(run);
      }
      for (Run* run : frozen) {
        run->rate = level;
        open.erase(std::find(open.begin(), open.end(), run));
      }
    }
  }

  // How far the open flows of each resource can go if all go on alike.
  std::vector<long double> LevelsOfResources(const std::vector<Run*>& open) const {
    std::vector<long double> levels;
    for (int32_t i = 0; i < program_.resource_count(); ++i) {
      const ResourceId id(i);
      long double left =
          static_cast<long double>(program_.resource(id).capacity.bytes_per_second());
      long double loads = 0;
      for (const Run& other : runs_) {
        if (other.rate > 0) left -= other.rate * LoadOn(other.flow, id);
      }
      for (const Run* other : open) loads += LoadOn(other->flow, id);
      levels.push_back(left / loads);
    }
    return levels;
  }

  static long double LevelOf(const Run& run, const std::vector<long double>& levels) {
    long double level = static_cast<long double>(run.flow.rate.bytes_per_second());
    for (const Load& load : run.flow.loads) {
      level = std::min(level, levels[static_cast<size_t>(load.resource.index())]);
    }
    return level;
  }

  static long double LoadOn(const Flow& flow, ResourceId resource) {
    for (const Load& load : flow.loads) {
      if (load.resource == resource) return static_cast<long double>(load.load);
    }
    return 0;
  }

  const Chains& chains_;
  const Program& program_;
  int64_t now_ = 0;
  std::vector<Run> runs_;  // by stream
  std::vector<Time> finish_;
};

struct Ranges {
  int64_t capacity_unit = 1'000'000'000;  // bytes/s
  int64_t most_bytes = 1'000'000;
  int64_t most_wait = 10'000'000;  // ps
  bool round = true;               // capacities and sizes are round numbers
};

class Generator {
 public:
  Generator(uint32_t seed, const Ranges& ranges) : random_(seed), ranges_(ranges) {}

  Chains Make() {
    Program& program = chains_.program;
    const size_t links = 1 + Below(12);
    for (size_t i = 0; i < links; ++i) {
      const int64_t capacity = ranges_.capacity_unit * static_cast<int64_t>(1 + Below(400));
      program.AddResource({.capacity = Bandwidth(ranges_.round ? capacity : capacity + Odd())});
    }
    const LabelId label = program.AddLabel({.name = "op"});
    const size_t flows = 1 + Below(30);
    const size_t streams = 1 + Below(flows);
    for (size_t i = 0; i < streams; ++i) {
      const RankClassId rank = program.AddRank({.members = {static_cast<int32_t>(i)}});
      program.AddStream(rank, StreamKind::kCompute);
    }
    chains_.tasks.resize(streams);
    for (size_t i = 0; i < flows; ++i) AddFlow(label, i < streams ? i : Below(streams));
    return std::move(chains_);
  }

 private:
  size_t Below(size_t count) { return random_() % count; }
  int64_t Odd() { return static_cast<int64_t>(Below(static_cast<size_t>(ranges_.capacity_unit))); }
  int64_t Whole(int64_t most) { return static_cast<int64_t>(Below(static_cast<size_t>(most) + 1)); }

  void AddFlow(LabelId label, size_t stream) {
    static constexpr std::array kLoads = {1.0, 1.0, 1.0, 2.0, 0.5, 3.0, 16.0, 0.25, 1.75};
    Program& program = chains_.program;
    const StreamId id(static_cast<int32_t>(stream));
    if (Below(3) > 0) {
      const Duration wait(Whole(ranges_.most_wait) / (ranges_.round ? 1000 : 1));
      chains_.tasks[stream].push_back(program.AddTask(id, {.duration = wait, .label = label}));
    }
    const size_t links = static_cast<size_t>(program.resource_count());
    std::vector<Load> loads;
    for (size_t i = 0; i < links && loads.size() < 5; ++i) {
      const double load = kLoads[Below(kLoads.size())];
      if (Below(links) < 3) loads.push_back({ResourceId(static_cast<int32_t>(i)), load});
    }
    const int64_t rate =
        ranges_.capacity_unit * static_cast<int64_t>(1 + Below(Below(2) == 0 ? 40 : 4000));
    const int64_t size = Whole(ranges_.most_bytes);
    const FlowId flow = program.AddFlow({.size = Bytes(ranges_.round ? size / 1000 * 1000 : size),
                                         .rate = Bandwidth(ranges_.round ? rate : rate + Odd()),
                                         .latency = Duration(Below(2) == 0 ? 0 : Whole(1'000'000)),
                                         .loads = loads});
    chains_.tasks[stream].push_back(program.AddTask(id, {.flow = flow, .label = label}));
  }

  std::mt19937 random_;
  Ranges ranges_;
  Chains chains_;
};

std::vector<Time> Play(const Program& program) {
  EXPECT_TRUE(program.Verify().ok()) << program.Verify();
  FluidNetwork network(program);
  absl::StatusOr<Trace> trace = RunEvents(program, network);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace->finish;
}

void ExpectOracle(uint32_t seed, const Ranges& ranges) {
  const Chains chains = Generator(seed, ranges).Make();
  const std::vector<Time> played = Play(chains.program);
  ASSERT_EQ(played, Oracle(chains).Play()) << Print(chains.program);
  // None is faster than alone.
  for (const std::vector<TaskId>& tasks : chains.tasks) {
    Time before;
    for (const TaskId task : tasks) {
      const FlowId flow = chains.program.flow_of(task);
      const Time finish = played[static_cast<size_t>(task.index())];
      if (flow.valid()) {
        EXPECT_GE(finish - before, TimeAlone(chains.program.flow(flow), chains.program)) << task;
      }
      before = finish;
    }
  }
}

TEST(FluidOracle, AgreesOnRoundNumbers) {
  for (uint32_t seed = 0; seed < 150; ++seed) ExpectOracle(seed, {});
}

TEST(FluidOracle, AgreesOnAnyNumbers) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    ExpectOracle(seed, {.most_bytes = 100'000'000, .most_wait = 1'000'000'000, .round = false});
  }
}

// Bytes a second, one by one, and times of minutes: what is left is split finely enough.
TEST(FluidOracle, AgreesOnFewBytes) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    ExpectOracle(
        seed,
        {.capacity_unit = 1'000'000, .most_bytes = 20, .most_wait = 10'000'000, .round = false});
  }
}

// Moments at which many begin and end: waits are multiples of what a byte takes.
TEST(FluidOracle, AgreesOnTies) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    ExpectOracle(seed, {.capacity_unit = 1'000'000'000'000, .most_bytes = 5000, .most_wait = 5000});
  }
}

}  // namespace
}  // namespace fluid_oracle_test_cc
}  // namespace orrery::simulator
