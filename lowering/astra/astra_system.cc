#include "lowering/astra/astra_system.h"

#include <deque>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lowering/astra/astra_plan.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::lowering {
namespace astra_system_cc {
namespace {

using cost_models::CollectiveKind;
using simulator::TaskId;

// A step with its plans, which chunks take in turn.
struct Step {
  size_t dimension = 0;
  std::vector<AstraStepPlan> plans = {};
};

// Messages under way, by the task that names each in the network; names are used again.
class Messages {
 public:
  struct Message {
    size_t run = 0;
    size_t to = 0;
    size_t phase = 0;
  };

  TaskId Add(const Message& message) {
    if (free_names_.empty()) {
      messages_.push_back(message);
      return TaskId(static_cast<int32_t>(messages_.size() - 1));
    }
    const TaskId name = free_names_.back();
    free_names_.pop_back();
    messages_[static_cast<size_t>(name.index())] = message;
    return name;
  }
  Message Of(TaskId name) const { return messages_[static_cast<size_t>(name.index())]; }
  void Free(TaskId name) { free_names_.push_back(name); }

 private:
  std::vector<Message> messages_;
  std::vector<TaskId> free_names_;
};

// Plays chunks through steps. Events of one moment happen in the order in which they were made;
// messages that arrive at a moment come first. In one dimension each rank takes up its next chunk
// when it is done with one; in several, of which one group each is played, the group does.
class Player {
 public:
  Player(const AstraCollective& collective, const simulator::Program& program,
         simulator::NetworkModel& network, std::vector<Step> steps)
      : collective_(collective),
        program_(program),
        network_(network),
        steps_(std::move(steps)),
        alone_(steps_.size() == 1) {
    dimensions_.resize(collective.dimensions.size());
    const size_t lanes = alone_ ? steps_[0].plans[0].ranks.size() : 1;
    for (Dimension& dimension : dimensions_) dimension.lanes.resize(lanes);
  }

  Duration Play(int64_t chunks) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) Queue(chunk, 0);
    for (Dimension& dimension : dimensions_) {
      for (size_t lane = 0; lane < dimension.lanes.size(); ++lane) Take(dimension, lane);
    }
    while (PassTime()) {
    }
    return finish_;
  }

 private:
  // A chunk in one of its steps.
  struct Run {
    int64_t chunk = 0;
    size_t step = 0;
    size_t ranks_left = 0;
    struct Rank {
      bool began = false;
      size_t phase = 0;
      std::vector<int32_t> arrived = {}, processed = {};  // by phase
      std::vector<size_t> early = {};                     // phases of what came before it began
    };
    std::vector<Rank> ranks = {};
  };
  // Who takes chunks one after the other: a rank, or a group.
  struct Lane {
    std::deque<size_t> waiting = {};  // runs, first come first
    int64_t active = 0;
  };
  struct Dimension {
    std::vector<Lane> lanes = {};
  };
  // Something that happens to a rank: it begins, or has processed a message of a phase.
  struct Event {
    Time time;
    int64_t sequence = 0;
    size_t run = 0;
    size_t rank = 0;
    int64_t phase = -1;  // -1: it begins
    bool operator>(const Event& other) const {
      return std::tie(time, sequence) > std::tie(other.time, other.sequence);
    }
  };

  // What is due beyond the end of time is due then.
  Time In(unsigned __int128 nanoseconds) const {
    const auto left = static_cast<uint64_t>((simulator::kEndOfTime - now_).picoseconds() / 1000);
    if (nanoseconds >= left) return simulator::kEndOfTime;
    return now_ + Duration(static_cast<int64_t>(nanoseconds) * 1000);
  }

  Dimension& DimensionOf(const Run& run) { return dimensions_[steps_[run.step].dimension]; }

  void Queue(int64_t chunk, size_t step) {
    Run& run = runs_.emplace_back(Run{.chunk = chunk, .step = step});
    run.ranks_left = PlansOf(run).size();
    for (Lane& lane : DimensionOf(run).lanes) lane.waiting.push_back(runs_.size() - 1);
  }

  const std::vector<AstraRankPlan>& PlansOf(const Run& run) const {
    const std::vector<AstraStepPlan>& plans = steps_[run.step].plans;
    return plans[static_cast<size_t>(run.chunk) % plans.size()].ranks;
  }
  const AstraPhase& PhaseOf(size_t run, size_t rank, size_t phase) const {
    return PlansOf(runs_[run])[rank].PhaseAt(phase);
  }
  Run::Rank& RankOf(size_t run, size_t rank) {
    std::vector<Run::Rank>& ranks = runs_[run].ranks;
    if (ranks.empty()) ranks.resize(PlansOf(runs_[run]).size());
    return ranks[rank];
  }

  void Take(Dimension& dimension, size_t number) {
    Lane& lane = dimension.lanes[number];
    while (!lane.waiting.empty() && lane.active < collective_.active_chunks) {
      const size_t run = lane.waiting.front();
      lane.waiting.pop_front();
      ++lane.active;
      const size_t ranks = PlansOf(runs_[run]).size();
      for (size_t rank = alone_ ? number : 0; rank < (alone_ ? number + 1 : ranks); ++rank) {
        Begin(run, rank);
      }
    }
  }

  void Begin(size_t index, size_t number) {
    Run::Rank& rank = RankOf(index, number);
    const size_t phases = PlansOf(runs_[index])[number].order.size();
    rank.began = true;
    rank.arrived.assign(phases, 0);
    rank.processed.assign(phases, 0);
    events_.push(
        {In(static_cast<uint64_t>(collective_.endpoint_delay_ns)), sequence_++, index, number, -1});
    for (const size_t phase : std::exchange(rank.early, {})) {
      Arrive({.run = index, .to = number, .phase = phase});
    }
  }

  // Goes on to the next moment at which something happens; false when nothing will.
  bool PassTime() {
    const std::optional<Time> arrival = network_.NextCompletion(now_);
    if (!arrival.has_value() && events_.empty()) return false;
    const bool local = !arrival.has_value() || (!events_.empty() && events_.top().time < *arrival);
    const Time to = local ? events_.top().time : *arrival;
    const std::span<const TaskId> arrived = network_.Advance(to);
    now_ = to;
    for (const TaskId name : arrived) {
      Arrive(messages_.Of(name));
      messages_.Free(name);
    }
    while (!events_.empty() && events_.top().time == now_) {
      const Event event = events_.top();
      events_.pop();
      Happen(event);
    }
    return true;
  }

  void Arrive(const Messages::Message& message) {
    Run::Rank& rank = RankOf(message.run, message.to);
    if (!rank.began) {
      rank.early.push_back(message.phase);
      return;
    }
    ++rank.arrived[message.phase];
    const int64_t reduced = PhaseOf(message.run, message.to, message.phase).reduced.count();
    using Wide = unsigned __int128;
    const Wide pass = static_cast<Wide>(reduced) * 1'000'000'000 /
                      static_cast<Wide>(collective_.local_memory.bytes_per_second());
    events_.push({In(static_cast<Wide>(collective_.endpoint_delay_ns) + 3 * pass), sequence_++,
                  message.run, message.to, static_cast<int64_t>(message.phase)});
  }

  void Happen(const Event& event) {
    if (event.phase < 0) {
      Send(event.run, event.rank);
      return;
    }
    const auto phase = static_cast<size_t>(event.phase);
    Run::Rank& rank = RankOf(event.run, event.rank);
    ++rank.processed[phase];
    if (rank.phase == phase) Proceed(event.run, event.rank);
  }

  bool IsOver(size_t run, size_t index) {
    const Run::Rank& rank = RankOf(run, index);
    const AstraPhase& phase = PhaseOf(run, index, rank.phase);
    const bool last = rank.phase + 1 == rank.arrived.size();
    const int32_t processed = rank.processed[rank.phase];
    if (rank.arrived[rank.phase] < phase.receives) return false;
    return processed >= (last || phase.awaits_processing ? phase.receives : 1);
  }

  // Ends phases for as long as they are over.
  void Proceed(size_t run, size_t index) {
    while (IsOver(run, index)) {
      Run::Rank& rank = RankOf(run, index);
      if (++rank.phase == rank.arrived.size()) {
        Finish(run, index);
        return;
      }
      Send(run, index);
    }
  }

  void Send(size_t run, size_t rank) {
    const size_t phase = RankOf(run, rank).phase;
    for (const AstraPhase::Message& message : PhaseOf(run, rank, phase).sends) {
      const TaskId name = messages_.Add(
          {.run = run,
           .to = static_cast<size_t>(message.to),
           .phase = message.position < 0 ? phase : static_cast<size_t>(message.position)});
      network_.Start(name, program_.flow(message.flow));
    }
  }

  void Finish(size_t index, size_t number) {
    Run& run = runs_[index];
    Dimension& dimension = DimensionOf(run);
    RankOf(index, number) = {.began = true};
    finish_ = now_;
    const bool all = --run.ranks_left == 0;
    if (all) run.ranks = {};
    if (!alone_ && !all) return;
    const size_t lane = alone_ ? number : 0;
    --dimension.lanes[lane].active;
    const size_t next = run.step + 1;
    if (next == steps_.size()) {
      Take(dimension, lane);
      return;
    }
    Queue(run.chunk, next);
    for (Dimension& each : dimensions_) Take(each, lane);
  }

  const AstraCollective& collective_;
  const simulator::Program& program_;
  simulator::NetworkModel& network_;
  std::vector<Step> steps_;
  bool alone_;  // one step: each rank takes its chunks by itself
  std::vector<Dimension> dimensions_;
  std::deque<Run> runs_;
  Messages messages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Time now_, finish_;
  int64_t sequence_ = 0;
};

absl::Status Check(const AstraCollective& collective) {
  const auto positive = [](absl::string_view what, int64_t value) {
    if (value >= 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(what, ": got ", value, "; wanted 1 or more"));
  };
  ORRERY_RETURN_IF_ERROR(positive("preferred-dataset-splits", collective.chunks));
  ORRERY_RETURN_IF_ERROR(positive("active-chunks-per-dimension", collective.active_chunks));
  ORRERY_RETURN_IF_ERROR(positive("local-mem-bw", collective.local_memory.bytes_per_second()));
  ORRERY_RETURN_IF_ERROR(
      positive("dimensions", static_cast<int64_t>(collective.dimensions.size())));
  if (collective.chunks > (int64_t{1} << 20)) {
    return absl::InvalidArgumentError(absl::StrCat("preferred-dataset-splits: got ",
                                                   collective.chunks, "; wanted at most 1048576"));
  }
  return positive("size", collective.size.count());
}

// How many are played at most: a minute.
constexpr int64_t kMostMessages = int64_t{1} << 28;
constexpr int64_t kMostRanks = int64_t{1} << 20;

struct Chunks {
  Bytes size = {};
  int64_t count = 0;
};

// A chunk has a byte for each rank at least, but not that of an all-gather; then there are as many
// as asked for, and more is sent than there is.
absl::StatusOr<Chunks> ChunksOf(const AstraCollective& collective) {
  int64_t ranks = 1;
  for (const AstraDimension& dimension : collective.dimensions) {
    ranks *= dimension.topology.devices();
    if (ranks > kMostRanks) {
      return absl::InvalidArgumentError(
          absl::StrCat("got ", ranks, " ranks; wanted at most ", kMostRanks));
    }
  }
  const int64_t size = collective.size.count(), chunk = size / collective.chunks;
  const bool gathers = collective.kind == CollectiveKind::kAllGather;
  if (!gathers && chunk < ranks) return Chunks{Bytes(ranks), collective.chunks};
  if (chunk < 1) {
    return absl::InvalidArgumentError(absl::StrCat("got ", collective.chunks, " chunks of ", size,
                                                   " bytes; wanted a byte for each at least"));
  }
  return Chunks{Bytes(chunk), (size + chunk - 1) / chunk};
}

}  // namespace
}  // namespace astra_system_cc

std::vector<AstraStep> AstraStepsOf(const AstraCollective& collective, Bytes chunk) {
  using enum cost_models::CollectiveKind;
  std::vector<AstraStep> steps;
  std::vector<size_t> wide;
  const auto ranks = [&](size_t dimension) {
    return collective.dimensions[dimension].topology.devices();
  };
  for (size_t i = 0; i < collective.dimensions.size(); ++i) {
    if (ranks(i) > 1) wide.push_back(i);
  }
  const bool levels = collective.kind == kAllReduce && collective.local_bandwidth_aware;
  const auto add = [&](size_t dimension, cost_models::CollectiveKind kind) {
    steps.push_back({.dimension = dimension, .kind = kind, .size = chunk});
    if (kind == kReduceScatter) chunk = Bytes(chunk.count() / ranks(dimension));
    if (kind == kAllGather) chunk = chunk * ranks(dimension);
  };
  if (collective.kind != kAllGather) {
    for (const size_t dimension : wide) {
      add(dimension, levels && dimension != wide.back() ? kReduceScatter : collective.kind);
    }
  }
  if (levels && !wide.empty()) wide.pop_back();
  if (collective.kind == kAllGather || levels) {
    for (size_t i = wide.size(); i-- > 0;) add(wide[i], kAllGather);
  }
  return steps;
}

absl::StatusOr<Duration> PlayAstra(const AstraCollective& collective,
                                   const NetworkFactory& network) {
  ORRERY_RETURN_IF_ERROR(astra_system_cc::Check(collective));
  ORRERY_ASSIGN_OR_RETURN(const astra_system_cc::Chunks chunks,
                          astra_system_cc::ChunksOf(collective));
  simulator::Program program;
  std::deque<LinkResources> links;
  for (const AstraDimension& dimension : collective.dimensions) {
    links.emplace_back(dimension.topology, program);
  }
  std::vector<astra_system_cc::Step> steps;
  int64_t messages = 0;
  for (const auto& [dimension, kind, size] : AstraStepsOf(collective, chunks.size)) {
    const std::string& algorithm =
        collective.dimensions[dimension].algorithms[static_cast<size_t>(collective.kind)];
    astra_system_cc::Step& step = steps.emplace_back(astra_system_cc::Step{.dimension = dimension});
    ORRERY_ASSIGN_OR_RETURN(step.plans, PlanAstraStep(kind, algorithm, size, links[dimension]));
    messages += MessageCount(step.plans[0]);
  }
  if (steps.empty()) return absl::InvalidArgumentError("got 1 rank; wanted 2 or more");
  if (chunks.count > astra_system_cc::kMostMessages / std::max<int64_t>(messages, 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", chunks.count, " chunks of ", messages, " messages; wanted at most ",
                     astra_system_cc::kMostMessages, " in all; try fewer ranks or chunks"));
  }
  const std::unique_ptr<simulator::NetworkModel> model = network(program);
  return astra_system_cc::Player(collective, program, *model, std::move(steps)).Play(chunks.count);
}

}  // namespace orrery::lowering
