#ifndef ORRERY_SIMULATOR_PROGRAM_PROGRAM_H_
#define ORRERY_SIMULATOR_PROGRAM_PROGRAM_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "support/id.h"
#include "support/id_table.h"
#include "support/name_list.h"
#include "support/time_source.h"
#include "support/units.h"

// A Program is what is left of a model once it is lowered: tasks on streams, with durations, bytes
// and dependencies as numbers. It knows no operator; the engine that plays it knows nothing else.
//
// A rank has streams, and a stream runs its tasks in the order in which they were added, as a GPU
// stream does. A task starts when the task before it on each of its streams has finished and when
// all tasks that it depends on have; a task on several streams is a rendezvous (a collective, a
// send) and occupies all of them from the same start to the same finish.

namespace orrery::simulator {

ORRERY_DEFINE_ID(TaskId, "task");
ORRERY_DEFINE_ID(StreamId, "stream");
ORRERY_DEFINE_ID(RankClassId, "rank");
ORRERY_DEFINE_ID(LabelId, "label");
ORRERY_DEFINE_ID(FlowId, "flow");
ORRERY_DEFINE_ID(ResourceId, "resource");

/// What a stream of a rank runs: one task after the other, beside those of other streams.
enum class StreamKind : uint8_t {
  kCompute,
  kHorizontal,  // the communicator of the hp axis
  kData,        // the communicator of the dp axis
  kSendNext,    // activations to the next stage
  kReceivePrevious,
  kSendPrevious,  // gradients to the previous stage
  kReceiveNext,
  kHost,         // copies to the host
  kContext,      // the communicator of the cp axis
  kExperts,      // the communicator of the ep axis
  kFromHost,     // copies from the host
  kHostCompute,  // what the host computes for the rank
};
/// How many kinds of stream there are.
inline constexpr int kStreamKindCount = 12;

/// What a task is: a kernel of one rank, a collective of a group, or a message from rank to rank.
enum class TaskKind : uint8_t { kCompute, kCollective, kSend };
/// How many kinds of task there are.
inline constexpr int kTaskKindCount = 3;

/// What a piece of memory holds; the report splits the peak by these.
enum class MemoryKind : uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kBuffers,
  kOther,
  kHost,  // anything, in the memory of the host: no part of what the device holds
};
/// Of the kinds that a device holds; and of all.
inline constexpr int kMemoryKindCount = 6;
/// How many kinds of memory there are, the host's too.
inline constexpr int kAllMemoryKindCount = 7;

/// The phase of the training step that a task belongs to.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };
/// How many phases there are.
inline constexpr int kPhaseCount = 3;

/// What a kernel computes, as profiles tell them apart: products of matrices and convolutions,
/// attention, updates of parameters, all else.
enum class KernelKind : uint8_t { kProduct, kAttention, kUpdate, kOther };
/// How many kinds of kernel there are.
inline constexpr int kKernelKindCount = 4;
/// The share of each kind, by its number.
using KernelShares = std::array<double, kKernelKindCount>;

absl::string_view ToString(KernelKind kind);
absl::string_view ToString(StreamKind kind);
absl::string_view ToString(TaskKind kind);
absl::string_view ToString(MemoryKind kind);
absl::string_view ToString(Phase phase);

/// Ranks that do the same at the same time: one of them is simulated, for all `members`.
struct RankClass {
  std::string name = {};              // "dp0 hp0 pp1"
  std::vector<int32_t> members = {};  // global ranks, ascending; the first represents them
  int32_t stage = 0;
  Bytes capacity = {};  // device memory; 0 when there is no limit
  /// The part of its compute rate that the rank loses while communication runs on it: 0 to less
  /// than 1; see simulator/engine/slow_down.h.
  double communication_slowdown = 0;
  /// Whether all members do the same at the same time; else the slowest of what is unlike sets the
  /// pace, as there are too many of them to simulate each.
  bool alike = true;
};

/// A queue of tasks on a rank: each starts when the one before has finished.
struct Stream {
  RankClassId rank = {};
  StreamKind kind = StreamKind::kCompute;
};

/// What a task is, for traces and reports; shared by the same task of all microbatches.
struct TaskLabel {
  absl::string_view name = {};  // "MatMul y0"; a program keeps a copy of its own
  TaskKind kind = TaskKind::kCompute;
  Phase phase = Phase::kForward;
  int32_t stage = 0;
  Flops flops = {};  // a rank
  Bytes bytes = {};  // moved to and from memory, or the tensor that is sent or reduced, a rank
  int32_t collectives = 1;  // how many collectives, of as many groups, a folded task stands for
  absl::string_view communication = {};  // its kind, for reports: "all-reduce dp"; a copy is kept
  /// The level of the network whose links bound it when it is alone: the kind of a resource, "nic".
  /// Empty when that is unknown. A copy is kept.
  absl::string_view level = {};
  /// Of a task that computes on its rank: which share of its time kernels of each kind take.
  KernelShares kernels = {};
  /// Likewise, which share of its time is measured, where its cost model has measurements.
  SourceShares sources = {};
  /// Of a run of kernels, how much of the spread of one is left where each takes another time by
  /// itself: the root of the sum of their squared times over the sum of their times.
  double spread_left = 1;
};

/// Communication of one kind on one level within a stretch: a task on the compute stream of a rank
/// that is kernels and collectives between them, at fixed times after its start.
struct StretchPart {
  LabelId label = {};     // of such a collective
  Bytes bytes = {};       // of all of them, a rank
  Bytes reduced = {};     // likewise, of all groups that each stands for
  Duration total = {};    // sum of their durations
  Duration exposed = {};  // when no kernel of the stretch runs: each moment in one part
};

/// What flows share: a link in one direction, or several links that all flows load alike.
struct Resource {
  std::string name = {};  // "device3 -> switch0 (port)"
  std::string kind = {};  // the level of the network that it belongs to: "port", "nic", "uplink"
  Bandwidth capacity = {};
  Duration latency = {};
};

/// How much of a resource's bandwidth a flow takes for each unit of its own rate: 1 for a message,
/// the number of transfers that cross the link at once for a collective.
struct Load {
  ResourceId resource = {};
  double load = 1;
};

/// The least and the most load that a flow may have: beyond, rates lose their meaning.
inline constexpr double kLeastLoad = 1e-9;
/// The most load that a flow may have.
inline constexpr double kMostLoad = 1e12;

/// A piece of a chain: for so long it loads no link, then a flow goes, and something else takes a
/// while beside it. It ends when both have.
struct Leg {
  Duration before = {};
  FlowId flow = {};  // no chain; invalid: the chain ends
  Duration beside = {};
  int32_t part = -1;  // of those of its task's label (Program::parts_of), which communication it is
};

/// A message or a collective on the network, whose time the network model tells. Alone, it takes
/// its latency and then its size at the lowest of `rate` and capacity / load of its resources.
/// Or a chain of such with time between them, each as soon as what comes before it has ended: then
/// `legs` says all, and `loads` which resources any of them loads.
struct Flow {
  Bytes size = {};
  Bandwidth rate = {};               // the most it takes; for a message, of the narrowest link
  Duration latency = {};             // of the path, from the last byte sent to the last received
  std::span<const Load> loads = {};  // of a message in the order of its route; no resource twice
  std::span<const Leg> legs = {};    // of a chain
};

/// A task as it is added. Exactly one of `duration` and `flow` says how long it takes.
struct Task {
  Duration duration = {};
  FlowId flow = {};  // invalid: `duration` holds
  LabelId label = {};
  int32_t microbatch = -1;  // -1: once a step
};

/// When a memory event of a task happens. By its sign: what is taken, when the task starts; what is
/// given back, when it has finished.
enum class MemoryMoment : uint8_t { kBySign, kStart, kFinish };

/// Memory that rank `rank` takes (bytes > 0) or gives back (bytes < 0).
struct MemoryEvent {
  TaskId task = {};
  RankClassId rank = {};
  MemoryKind kind = MemoryKind::kOther;
  MemoryMoment moment = MemoryMoment::kBySign;
  int64_t bytes = 0;

  bool at_start() const {
    return moment == MemoryMoment::kBySign ? bytes > 0 : moment == MemoryMoment::kStart;
  }
};

/// See the top of this file. Arrays indexed by dense ids; rows of participants and dependencies are
/// compressed (one offset array, one pool). So many fields: arrays of tasks, of flows, of memory
/// events.
class Program {
 public:
  /// Adds ranks that do the same; they hold nothing yet.
  RankClassId AddRank(RankClass rank);
  /// Adds a stream to a rank; it may have several of one kind.
  StreamId AddStream(RankClassId rank, StreamKind kind);
  /// Adds a label, equal to another or not; its texts are copied.
  LabelId AddLabel(const TaskLabel& label);
  /// Adds the label of a stretch: of a kernel in all but the communication that is inside.
  LabelId AddStretch(const TaskLabel& label, std::span<const StretchPart> parts);
  /// The communication inside of tasks of that label; good until the next stretch is added.
  std::span<const StretchPart> parts_of(LabelId label) const {
    return std::span(stretch_parts_).subspan(labels_[label].part_begin, labels_[label].part_count);
  }
  /// How many collectives a task of that label stands for.
  void SetCollectives(LabelId label, int32_t count) { labels_[label].collectives = count; }
  /// The level of the network that bounds tasks of that label; a copy is kept.
  void SetLevel(LabelId label, absl::string_view level) { labels_[label].level = Intern(level); }
  /// Adds a resource, which no flow loads yet.
  ResourceId AddResource(Resource resource) { return resources_.push_back(std::move(resource)); }
  /// Keeps a copy of the loads. No chain.
  FlowId AddFlow(const Flow& flow);
  /// Adds a chain of flows that there are; keeps a copy.
  FlowId AddChain(std::span<const Leg> legs);

  /// Appends `task` to `stream`, after the tasks `after`, which may be of any stream.
  TaskId AddTask(StreamId stream, const Task& task, std::span<const TaskId> after = {});
  /// Another time for a task that no flow times: to play what is the same but for times.
  void SetDuration(TaskId id, Duration duration) { durations_[Row(id)] = duration; }
  /// Appends a rendezvous of all `streams` (at least one, no two the same).
  TaskId AddRendezvous(std::span<const StreamId> streams, const Task& task,
                       std::span<const TaskId> after = {});
  /// Memory that `rank` holds during the whole step.
  void AddResident(RankClassId rank, MemoryKind kind, Bytes size);
  /// Events of one rank must be added in the order of its tasks.
  void AddMemoryEvent(const MemoryEvent& event) { memory_events_.push_back(event); }
  /// Drops labels that nobody will use, where `kept` is 0, before a task is added; returns the new
  /// ids of the others, in their order, by the old ones. A stretch that is kept names labels that
  /// are.
  IdTable<LabelId, LabelId> KeepLabels(const IdTable<LabelId, char>& kept);
  /// Makes room for that many tasks, to save reallocation.
  void Reserve(int32_t tasks);
  /// Likewise for that many labels in all.
  void ReserveLabels(int32_t labels);
  /// Likewise for that many events of memory in all.
  void ReserveMemoryEvents(size_t events) { memory_events_.reserve(events); }

  int32_t task_count() const { return static_cast<int32_t>(durations_.size()); }
  int32_t stream_count() const { return streams_.size(); }
  int32_t rank_count() const { return ranks_.size(); }
  /// The ranks of that id; good until the next is added.
  const RankClass& rank(RankClassId id) const { return ranks_[id]; }
  /// The stream of that id; good until the next is added.
  const Stream& stream(StreamId id) const { return streams_[id]; }
  /// A label; its texts are good until the program goes.
  TaskLabel label(LabelId id) const {
    const LabelRow& row = labels_[id];
    return {.name = label_names_[static_cast<size_t>(id.index())],
            .kind = row.kind,
            .phase = row.phase,
            .stage = row.stage,
            .flops = row.flops,
            .bytes = row.bytes,
            .collectives = row.collectives,
            .communication = communication_names_[static_cast<size_t>(row.communication)],
            .level = communication_names_[static_cast<size_t>(row.level)],
            .kernels = row.kernels,
            .sources = row.sources,
            .spread_left = row.spread_left};
  }
  int32_t label_count() const { return labels_.size(); }
  /// The resource of that id; good until the next is added.
  const Resource& resource(ResourceId id) const { return resources_[id]; }
  int32_t resource_count() const { return resources_.size(); }
  /// Its loads and legs are good until the next flow is added.
  Flow flow(FlowId id) const {
    const FlowRow& row = flows_[id];
    return {.size = row.size,
            .rate = row.rate,
            .latency = row.latency,
            .loads = std::span(load_pool_).subspan(row.load_begin, row.load_count),
            .legs = std::span(leg_pool_).subspan(row.leg_begin, row.leg_count)};
  }
  int32_t flow_count() const { return flows_.size(); }

  /// How long a task takes; 0 where a flow says that.
  Duration duration(TaskId id) const { return durations_[Row(id)]; }
  /// The flow that times the task, or an invalid id when its duration does.
  FlowId flow_of(TaskId id) const { return task_flows_.empty() ? FlowId() : task_flows_[Row(id)]; }
  /// Whether any task is timed by a flow.
  bool has_flows() const { return !task_flows_.empty(); }
  /// The label of a task.
  LabelId label_of(TaskId id) const { return task_labels_[Row(id)]; }
  /// The microbatch of a task, from 0; -1 where it runs once a step.
  int32_t microbatch_of(TaskId id) const { return microbatches_[Row(id)]; }
  /// The streams that a task occupies, at least one; good until the next task is added.
  std::span<const StreamId> streams_of(TaskId id) const {
    return std::span(stream_pool_)
        .subspan(stream_begin_[Row(id)], stream_begin_[Row(id) + 1] - stream_begin_[Row(id)]);
  }
  /// The tasks that a task waits for, beside those before it on its streams; good until the next
  /// task is added.
  std::span<const TaskId> dependencies_of(TaskId id) const {
    return std::span(dependency_pool_)
        .subspan(dependency_begin_[Row(id)],
                 dependency_begin_[Row(id) + 1] - dependency_begin_[Row(id)]);
  }
  /// The rows of `streams_of` and `dependencies_of` as they lie: row t of a pool goes from offset t
  /// to offset t+1. For loops that run once a task.
  std::span<const Duration> durations() const { return durations_; }
  std::span<const LabelId> task_labels() const { return task_labels_; }
  std::span<const FlowId> task_flows() const { return task_flows_; }  // empty without flows
  std::span<const uint32_t> stream_offsets() const { return stream_begin_; }
  std::span<const StreamId> stream_pool() const { return stream_pool_; }
  std::span<const uint32_t> dependency_offsets() const { return dependency_begin_; }
  std::span<const TaskId> dependency_pool() const { return dependency_pool_; }
  /// What a rank holds of a kind during the whole step, all that was added together.
  Bytes resident(RankClassId rank, MemoryKind kind) const {
    return residents_[rank][static_cast<size_t>(kind)];
  }
  const std::vector<MemoryEvent>& memory_events() const { return memory_events_; }

  /// Whether every dependency names an earlier task. Then the order of the ids is an order in which
  /// the tasks can run, nothing can deadlock, and the longest path is one sweep.
  bool ordered() const { return ordered_; }

  /// Checks what a hand-written program can get wrong: ids out of range, a stream twice in a
  /// rendezvous, negative durations, resources and flows without bandwidth, a resource twice in a
  /// flow, a cycle of dependencies and stream orders (printed with the tasks on it).
  absl::Status Verify() const;
  /// The part of `Verify` that is about resources and flows.
  absl::Status VerifyNetwork() const;

 private:
  using ResidentRow = std::array<Bytes, kAllMemoryKindCount>;
  // A label without its name. So many fields: those of a label.
  struct LabelRow {
    TaskKind kind;
    Phase phase;
    int32_t stage;
    Flops flops;
    Bytes bytes;
    int32_t collectives;
    int32_t communication;  // in communication_names_
    int32_t level;          // the same
    KernelShares kernels;
    SourceShares sources;
    double spread_left;
    uint32_t part_begin = 0, part_count = 0;  // in stretch_parts_
  };
  // A flow, with its rows in the pools of loads and legs.
  struct FlowRow {
    Bytes size;
    Bandwidth rate;
    Duration latency;
    uint32_t load_begin = 0, load_count = 0, leg_begin = 0, leg_count = 0;
  };
  // The position of `name` in communication_names_, where it is put once.
  int32_t Intern(absl::string_view name);
  static size_t Row(TaskId id) { return static_cast<size_t>(id.index()); }

  IdTable<RankClassId, RankClass> ranks_;
  IdTable<RankClassId, ResidentRow> residents_;
  IdTable<StreamId, Stream> streams_;
  IdTable<LabelId, LabelRow> labels_;
  NameList label_names_;
  NameList communication_names_;  // a handful: kinds and levels of all labels
  std::vector<StretchPart> stretch_parts_;
  IdTable<ResourceId, Resource> resources_;
  IdTable<FlowId, FlowRow> flows_;
  std::vector<Load> load_pool_;
  std::vector<Leg> leg_pool_;
  std::vector<Duration> durations_;
  std::vector<FlowId> task_flows_;  // empty while no task has a flow
  std::vector<LabelId> task_labels_;
  std::vector<int32_t> microbatches_;
  std::vector<uint32_t> stream_begin_ = {0};
  std::vector<StreamId> stream_pool_;
  std::vector<uint32_t> dependency_begin_ = {0};
  std::vector<TaskId> dependency_pool_;
  std::vector<MemoryEvent> memory_events_;
  bool ordered_ = true;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_PROGRAM_H_
