#include "lowering/astra_system.h"

#include <deque>
#include <queue>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "lowering/astra_plan.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::lowering {
namespace {

using cost_models::CollectiveKind;
using simulator::TaskId;

// One dimension that a chunk passes through.
struct Step {
  int32_t dimension = 0;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Bytes size = {};
  AstraStepPlan plan = {};
};

std::vector<Step> StepsOf(const AstraCollective& collective, Bytes chunk) {
  using enum CollectiveKind;
  std::vector<Step> steps;
  const auto count = static_cast<int32_t>(collective.dimensions.size());
  const bool levels = collective.kind == kAllReduce && collective.local_bandwidth_aware;
  const auto add = [&](int32_t dimension, CollectiveKind kind) {
    steps.push_back({.dimension = dimension, .kind = kind, .size = chunk});
    const int32_t n = collective.dimensions[static_cast<size_t>(dimension)].topology.devices();
    if (kind == kReduceScatter) chunk = Bytes(chunk.count() / n);
    if (kind == kAllGather) chunk = chunk * n;
  };
  if (collective.kind != kAllGather) {
    for (int32_t dimension = 0; dimension < count; ++dimension) {
      add(dimension, levels && dimension + 1 < count ? kReduceScatter : collective.kind);
    }
  }
  if (collective.kind == kAllGather || levels) {
    const int32_t last = count - (levels ? 2 : 1);
    for (int32_t dimension = last; dimension >= 0; --dimension) add(dimension, kAllGather);
  }
  return steps;
}

// Plays chunks through steps. Events of one moment happen in the order in which they were made;
// messages that arrive at a moment come first.
class Player {
 public:
  Player(const AstraCollective& collective, const simulator::Program& program,
         simulator::NetworkModel& network, std::vector<Step> steps)
      : collective_(collective), program_(program), network_(network), steps_(std::move(steps)) {
    dimensions_.resize(collective.dimensions.size());
  }

  Duration Play(int64_t chunks) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) Queue(0);
    StartChunks();
    while (PassTime()) {
    }
    return finish_;
  }

 private:
  // A chunk in one of its steps.
  struct Run {
    size_t step = 0;
    int32_t ranks_left = 0;
    struct Rank {
      size_t phase = 0;
      std::vector<int32_t> arrived = {}, processed = {};  // by phase
    };
    std::vector<Rank> ranks = {};
  };
  struct Dimension {
    std::deque<size_t> waiting = {};  // steps of the chunks that wait, first come first
    int64_t active = 0;
  };
  // Something that happens to a rank: it begins, or has processed a message of a phase.
  struct Event {
    Time time;
    int64_t sequence = 0;
    size_t run = 0;
    int32_t rank = 0;
    int64_t phase = -1;  // -1: it begins
    bool operator>(const Event& other) const {
      return std::tie(time, sequence) > std::tie(other.time, other.sequence);
    }
  };
  struct Message {
    size_t run = 0;
    int32_t to = 0;
    size_t phase = 0;
  };

  static Duration Nanoseconds(int64_t count) { return Duration(count * 1000); }

  void Queue(size_t step) {
    dimensions_[static_cast<size_t>(steps_[step].dimension)].waiting.push_back(step);
  }

  void StartChunks() {
    for (Dimension& dimension : dimensions_) {
      while (!dimension.waiting.empty() && dimension.active < collective_.active_chunks) {
        const size_t step = dimension.waiting.front();
        dimension.waiting.pop_front();
        ++dimension.active;
        Start(step);
      }
    }
  }

  void Start(size_t step) {
    Run& run = runs_.emplace_back();
    run.step = step;
    for (const AstraRankPlan& plan : steps_[step].plan.ranks) {
      const int32_t rank = run.ranks_left++;
      run.ranks.push_back({.arrived = std::vector<int32_t>(plan.order.size(), 0),
                           .processed = std::vector<int32_t>(plan.order.size(), 0)});
      events_.push({now_ + Nanoseconds(collective_.endpoint_delay_ns), sequence_++,
                    runs_.size() - 1, rank, -1});
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
    for (const TaskId message : arrived) Arrive(messages_[static_cast<size_t>(message.index())]);
    while (!events_.empty() && events_.top().time == now_) {
      const Event event = events_.top();
      events_.pop();
      Happen(event);
    }
    return true;
  }

  const AstraRankPlan& PlanOf(size_t run, int32_t rank) const {
    return steps_[runs_[run].step].plan.ranks[static_cast<size_t>(rank)];
  }
  const AstraPhase& PhaseOf(size_t run, int32_t rank, size_t phase) const {
    const AstraRankPlan& plan = PlanOf(run, rank);
    return plan.phases[static_cast<size_t>(plan.order[phase])];
  }

  void Arrive(const Message& message) {
    Run::Rank& rank = runs_[message.run].ranks[static_cast<size_t>(message.to)];
    ++rank.arrived[message.phase];
    const int64_t reduced = PhaseOf(message.run, message.to, message.phase).reduced.count();
    using Wide = unsigned __int128;
    const Wide pass = static_cast<Wide>(reduced) * 1'000'000'000 /
                      static_cast<Wide>(collective_.local_memory.bytes_per_second());
    const int64_t delay = collective_.endpoint_delay_ns + 3 * static_cast<int64_t>(pass);
    events_.push({now_ + Nanoseconds(delay), sequence_++, message.run, message.to,
                  static_cast<int64_t>(message.phase)});
  }

  void Happen(const Event& event) {
    if (event.phase < 0) {
      Send(event.run, event.rank);
      return;
    }
    const auto phase = static_cast<size_t>(event.phase);
    Run::Rank& rank = runs_[event.run].ranks[static_cast<size_t>(event.rank)];
    ++rank.processed[phase];
    if (rank.phase == phase) Proceed(event.run, event.rank);
  }

  // Ends phases for as long as they are over.
  void Proceed(size_t run, int32_t index) {
    while (true) {
      Run::Rank& rank = runs_[run].ranks[static_cast<size_t>(index)];
      const int32_t all = PhaseOf(run, index, rank.phase).receives;
      const bool last = rank.phase + 1 == PlanOf(run, index).order.size();
      const int32_t processed = rank.processed[rank.phase];
      if (rank.arrived[rank.phase] < all || processed == 0 || (last && processed < all)) return;
      ++rank.phase;
      if (last) {
        Finish(run);
        return;
      }
      Send(run, index);
    }
  }

  void Send(size_t run, int32_t rank) {
    const size_t phase = runs_[run].ranks[static_cast<size_t>(rank)].phase;
    for (const AstraPhase::Message& message : PhaseOf(run, rank, phase).sends) {
      const TaskId name(static_cast<int32_t>(messages_.size()));
      messages_.push_back({run, message.to, phase});
      network_.Start(name, program_.flow(message.flow));
    }
  }

  void Finish(size_t run) {
    if (--runs_[run].ranks_left > 0) return;
    const size_t step = runs_[run].step;
    runs_[run].ranks = {};
    finish_ = now_;
    --dimensions_[static_cast<size_t>(steps_[step].dimension)].active;
    if (step + 1 < steps_.size()) Queue(step + 1);
    StartChunks();
  }

  const AstraCollective& collective_;
  const simulator::Program& program_;
  simulator::NetworkModel& network_;
  std::vector<Step> steps_;
  std::vector<Dimension> dimensions_;
  std::deque<Run> runs_;
  std::vector<Message> messages_;  // by number of the task that names it
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
  return positive("size", collective.size.count());
}

}  // namespace

absl::StatusOr<Duration> PlayAstra(const AstraCollective& collective,
                                   const NetworkFactory& network) {
  ORRERY_RETURN_IF_ERROR(Check(collective));
  int64_t nodes = 1;
  for (const AstraDimension& dimension : collective.dimensions) {
    nodes *= dimension.topology.devices();
    if (nodes > (int64_t{1} << 20)) return absl::InvalidArgumentError("more than 1048576 ranks");
  }
  int64_t chunk = collective.size.count() / collective.chunks;
  if (collective.kind != CollectiveKind::kAllGather) chunk = std::max(chunk, nodes);
  if (chunk < 1) return absl::InvalidArgumentError("more chunks than bytes");
  simulator::Program program;
  std::vector<Step> steps = StepsOf(collective, Bytes(chunk));
  std::deque<LinkResources> links;
  for (const AstraDimension& dimension : collective.dimensions) {
    links.emplace_back(dimension.topology, program);
  }
  int64_t messages = 0;
  for (Step& step : steps) {
    const auto dimension = static_cast<size_t>(step.dimension);
    const std::string& algorithm =
        collective.dimensions[dimension].algorithms[static_cast<size_t>(step.kind)];
    ORRERY_ASSIGN_OR_RETURN(step.plan,
                            PlanAstraStep(step.kind, algorithm, step.size, links[dimension]));
    const auto ranks = static_cast<int64_t>(step.plan.ranks.size());
    messages += ranks * ranks * ranks;  // no algorithm sends more
  }
  const int64_t chunks = (collective.size.count() + chunk - 1) / chunk;
  if (chunks > (int64_t{1} << 30) / std::max<int64_t>(messages, 1)) {
    return absl::InvalidArgumentError("too many messages; wanted fewer ranks or chunks");
  }
  const std::unique_ptr<simulator::NetworkModel> model = network(program);
  return Player(collective, program, *model, std::move(steps)).Play(chunks);
}

}  // namespace orrery::lowering
