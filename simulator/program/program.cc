#include "simulator/program/program.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "simulator/program/kind_names.h"
#include "simulator/program/task_order.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::simulator {
namespace program_cc {
namespace {

absl::Status Wrong(absl::string_view where, absl::string_view found, absl::string_view wanted,
                   absl::string_view advice) {
  return absl::InvalidArgumentError(
      absl::StrCat("program: ", where, ": ", found, ", wanted ", wanted, "; try ", advice));
}

template <typename IdType>
bool InRange(IdType id, int32_t count) {
  return id.valid() && id.index() < count;
}

template <typename IdType>
absl::Status OutOfRange(const std::string& where, IdType id, int32_t count) {
  return Wrong(where, absl::StrCat("names ", ToString(id)),
               absl::StrCat("one of the ", count, " that there are"), "adding it first");
}

absl::Status VerifyStreamsOf(const Program& program, TaskId task) {
  const std::span<const StreamId> streams = program.streams_of(task);
  for (size_t i = 0; i < streams.size(); ++i) {
    if (!InRange(streams[i], program.stream_count())) {
      return OutOfRange(ToString(task), streams[i], program.stream_count());
    }
    if (std::find(streams.begin(), streams.begin() + static_cast<ptrdiff_t>(i), streams[i]) !=
        streams.begin() + static_cast<ptrdiff_t>(i)) {
      return Wrong(ToString(task), absl::StrCat(ToString(streams[i]), " twice in a rendezvous"),
                   "different streams", "naming each stream once");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyTask(const Program& program, TaskId task) {
  ORRERY_RETURN_IF_ERROR(VerifyStreamsOf(program, task));
  if (!InRange(program.label_of(task), program.label_count())) {
    return OutOfRange(ToString(task), program.label_of(task), program.label_count());
  }
  const FlowId flow = program.flow_of(task);
  if (flow.valid() && !InRange(flow, program.flow_count())) {
    return OutOfRange(ToString(task), flow, program.flow_count());
  }
  if (program.duration(task) < Duration(0) || program.duration(task) > kEndOfTime) {
    return Wrong(ToString(task),
                 absl::StrCat("a duration of ", program.duration(task).picoseconds(), " ps"),
                 absl::StrCat("0 ps or more and at most ", ToString(kEndOfTime)),
                 "checking the cost model that made it");
  }
  for (const TaskId before : program.dependencies_of(task)) {
    if (!InRange(before, program.task_count())) {
      return OutOfRange(ToString(task), before, program.task_count());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyMemory(const Program& program) {
  for (const MemoryEvent& event : program.memory_events()) {
    const std::string where = "memory event";
    if (!InRange(event.task, program.task_count())) {
      return OutOfRange(where, event.task, program.task_count());
    }
    if (!InRange(event.rank, program.rank_count())) {
      return OutOfRange(where, event.rank, program.rank_count());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyMembers(const Program& program) {
  std::vector<int32_t> all;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const std::vector<int32_t>& members = program.rank(RankClassId(i)).members;
    const bool ascending =
        std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) == members.end();
    if (members.empty() || members.front() < 0 || !ascending) {
      return Wrong(ToString(RankClassId(i)),
                   members.empty() ? "no members" : "members out of order or negative",
                   "at least one global rank, ascending", "listing the ranks that it stands for");
    }
    const double slowdown = program.rank(RankClassId(i)).communication_slowdown;
    if (!(slowdown >= 0 && slowdown < 1)) {  // a NaN is neither
      return Wrong(ToString(RankClassId(i)),
                   absl::StrCat("a communication slow-down of ", slowdown), "0 to less than 1",
                   "the part of its rate that the device loses");
    }
    all.insert(all.end(), members.begin(), members.end());
  }
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  if (twice == all.end()) return absl::OkStatus();
  return Wrong("ranks", absl::StrCat("global rank ", *twice, " in two classes"),
               "each in one class", "leaving it out of one of them");
}

absl::Status VerifyStreams(const Program& program) {
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const RankClassId rank = program.stream(StreamId(i)).rank;
    if (!InRange(rank, program.rank_count())) {
      return OutOfRange(ToString(StreamId(i)), rank, program.rank_count());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyResources(const Program& program) {
  for (int32_t i = 0; i < program.resource_count(); ++i) {
    const Resource& resource = program.resource(ResourceId(i));
    const std::string where = absl::StrCat(ToString(ResourceId(i)), " '", resource.name, "'");
    if (resource.capacity <= Bandwidth(0)) {
      return Wrong(where,
                   absl::StrCat("a capacity of ", resource.capacity.bytes_per_second(), " bytes/s"),
                   "more than 0 bytes/s", "leaving out a link that carries nothing");
    }
    if (resource.latency < Duration(0)) {
      return Wrong(where, absl::StrCat("a latency of ", resource.latency.picoseconds(), " ps"),
                   "0 ps or more", "checking the link that it stands for");
    }
  }
  return absl::OkStatus();
}

// `last_flow[r]` is the last flow so far that loads resource r.
absl::Status VerifyLoads(const Program& program, FlowId flow, std::vector<FlowId>& last_flow) {
  for (const Load& load : program.flow(flow).loads) {
    if (!InRange(load.resource, program.resource_count())) {
      return OutOfRange(ToString(flow), load.resource, program.resource_count());
    }
    if (!(load.load >= kLeastLoad && load.load <= kMostLoad)) {  // a NaN is neither
      return Wrong(ToString(flow),
                   absl::StrCat("a load of ", load.load, " on ", ToString(load.resource)),
                   absl::StrCat(kLeastLoad, " to ", kMostLoad), "leaving out what it does not use");
    }
    FlowId& last = last_flow[static_cast<size_t>(load.resource.index())];
    if (last == flow) {
      return Wrong(ToString(flow), absl::StrCat(ToString(load.resource), " twice"),
                   "each resource once", "adding the loads up");
    }
    last = flow;
  }
  return absl::OkStatus();
}

// Flows are of that chain, and no chains; time does not run back.
absl::Status VerifyLegs(const Program& program, FlowId chain) {
  const std::span<const Leg> legs = program.flow(chain).legs;
  for (size_t i = 0; i < legs.size(); ++i) {
    const Leg& leg = legs[i];
    if (std::min(leg.before, leg.beside) < Duration(0) ||
        std::max(leg.before, leg.beside) > kEndOfTime) {
      return Wrong(ToString(chain),
                   absl::StrCat(leg.before.picoseconds(), " ps before a flow and ",
                                leg.beside.picoseconds(), " ps beside it"),
                   absl::StrCat("0 ps or more and at most ", ToString(kEndOfTime)),
                   "checking the kernels that it stands for");
    }
    if (!leg.flow.valid() && i + 1 == legs.size()) continue;
    if (!InRange(leg.flow, program.flow_count())) {
      return OutOfRange(ToString(chain), leg.flow, program.flow_count());
    }
    if (!program.flow(leg.flow).legs.empty()) {
      return Wrong(ToString(chain), absl::StrCat(ToString(leg.flow), ", a chain, in a chain"),
                   "flows", "putting its flows there");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyFlows(const Program& program) {
  std::vector<FlowId> last_flow(static_cast<size_t>(program.resource_count()));
  for (int32_t i = 0; i < program.flow_count(); ++i) {
    const Flow flow = program.flow(FlowId(i));
    if (flow.size < Bytes(0) || flow.rate <= Bandwidth(0) || flow.latency < Duration(0)) {
      return Wrong(ToString(FlowId(i)),
                   absl::StrCat("a size of ", flow.size.count(), " bytes, a rate of ",
                                flow.rate.bytes_per_second(), " bytes/s, a latency of ",
                                flow.latency.picoseconds(), " ps"),
                   "size >= 0, rate > 0, latency >= 0", "checking the link that it crosses");
    }
    ORRERY_RETURN_IF_ERROR(VerifyLegs(program, FlowId(i)));
    ORRERY_RETURN_IF_ERROR(VerifyLoads(program, FlowId(i), last_flow));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace program_cc

absl::string_view ToString(StreamKind kind) { return kStreamKindNames.Of(kind); }
absl::string_view ToString(KernelKind kind) { return kKernelKindNames.Of(kind); }
absl::string_view ToString(TaskKind kind) { return kTaskKindNames.Of(kind); }
absl::string_view ToString(MemoryKind kind) { return kMemoryKindNames.Of(kind); }
absl::string_view ToString(Phase phase) { return kPhaseNames.Of(phase); }

RankClassId Program::AddRank(RankClass rank) {
  residents_.push_back({});
  return ranks_.push_back(std::move(rank));
}

StreamId Program::AddStream(RankClassId rank, StreamKind kind) {
  return streams_.push_back({.rank = rank, .kind = kind});
}

LabelId Program::AddLabel(const TaskLabel& label) {
  label_names_.push_back(label.name);
  const int32_t communication = Intern(label.communication);
  const int32_t level = Intern(label.level);
  return labels_.push_back({.kind = label.kind,
                            .phase = label.phase,
                            .stage = label.stage,
                            .flops = label.flops,
                            .bytes = label.bytes,
                            .collectives = label.collectives,
                            .communication = communication,
                            .level = level,
                            .kernels = label.kernels,
                            .sources = label.sources,
                            .spread_left = label.spread_left});
}

LabelId Program::AddStretch(const TaskLabel& label, std::span<const StretchPart> parts) {
  const LabelId id = AddLabel(label);
  labels_[id].part_begin = static_cast<uint32_t>(stretch_parts_.size());
  labels_[id].part_count = static_cast<uint32_t>(parts.size());
  stretch_parts_.insert(stretch_parts_.end(), parts.begin(), parts.end());
  return id;
}

IdTable<LabelId, LabelId> Program::KeepLabels(const IdTable<LabelId, char>& kept) {
  ORRERY_CHECK(kept.size() == label_count() && task_count() == 0) << "labels are in use";
  IdTable<LabelId, LabelId> ids(label_count());
  IdTable<LabelId, LabelRow> rows;
  NameList names;
  names.KeepTextOf(label_names_);
  for (int32_t i = 0; i < label_count(); ++i) {
    const LabelId old(i);
    if (kept[old] == 0) continue;
    ids[old] = rows.push_back(labels_[old]);
    names.push_back({});
    names.SetKept(names.size() - 1, label_names_[static_cast<size_t>(i)]);
  }
  for (StretchPart& part : stretch_parts_) part.label = ids[part.label];
  labels_ = std::move(rows);
  label_names_ = std::move(names);
  return ids;
}

int32_t Program::Intern(absl::string_view name) {
  const auto count = static_cast<int32_t>(communication_names_.size());
  for (int32_t i = 0; i < count; ++i) {
    if (communication_names_[static_cast<size_t>(i)] == name) return i;
  }
  communication_names_.push_back(name);
  return count;
}

FlowId Program::AddFlow(const Flow& flow) {
  const size_t begin = load_pool_.size();
  load_pool_.insert(load_pool_.end(), flow.loads.begin(), flow.loads.end());
  return flows_.push_back({.size = flow.size,
                           .rate = flow.rate,
                           .latency = flow.latency,
                           .load_begin = static_cast<uint32_t>(begin),
                           .load_count = static_cast<uint32_t>(flow.loads.size())});
}

FlowId Program::AddChain(std::span<const Leg> legs) {
  FlowRow row = {.size = Bytes(0), .rate = Bandwidth(1), .latency = Duration(0)};
  row.load_begin = static_cast<uint32_t>(load_pool_.size());
  row.leg_begin = static_cast<uint32_t>(leg_pool_.size());
  row.leg_count = static_cast<uint32_t>(legs.size());
  leg_pool_.insert(leg_pool_.end(), legs.begin(), legs.end());
  std::vector<Load> loads;
  for (const Leg& leg : legs) {
    if (!leg.flow.valid()) continue;
    const Flow of = flow(leg.flow);
    row.size += of.size;
    for (const Load& load : of.loads) {
      const auto known = std::ranges::find(loads, load.resource, &Load::resource);
      if (known == loads.end()) {
        loads.push_back(load);
      } else {
        known->load = std::max(known->load, load.load);
      }
    }
  }
  load_pool_.insert(load_pool_.end(), loads.begin(), loads.end());
  row.load_count = static_cast<uint32_t>(loads.size());
  return flows_.push_back(row);
}

TaskId Program::AddTask(StreamId stream, const Task& task, std::span<const TaskId> after) {
  return AddRendezvous(std::span(&stream, 1), task, after);
}

TaskId Program::AddRendezvous(std::span<const StreamId> streams, const Task& task,
                              std::span<const TaskId> after) {
  const TaskId id(task_count());
  ORRERY_DCHECK(!streams.empty()) << id;
  durations_.push_back(task.duration);
  task_labels_.push_back(task.label);
  microbatches_.push_back(task.microbatch);
  if (task.flow.valid() || !task_flows_.empty()) {
    task_flows_.resize(Row(id));  // the tasks so far have none
    task_flows_.push_back(task.flow);
  }
  // One stream and no dependency or a few is the usual task: push_back beats insert there.
  for (const StreamId stream : streams) stream_pool_.push_back(stream);
  stream_begin_.push_back(static_cast<uint32_t>(stream_pool_.size()));
  for (const TaskId before : after) {
    dependency_pool_.push_back(before);
    // As unsigned, the id that names nothing is late too.
    ordered_ &= static_cast<uint32_t>(before.index()) < static_cast<uint32_t>(id.index());
  }
  dependency_begin_.push_back(static_cast<uint32_t>(dependency_pool_.size()));
  return id;
}

void Program::AddResident(RankClassId rank, MemoryKind kind, Bytes size) {
  residents_[rank][static_cast<size_t>(kind)] += size;
}

void Program::ReserveLabels(int32_t labels) {
  labels_.reserve(labels);
  label_names_.reserve(static_cast<size_t>(labels));
}

void Program::Reserve(int32_t tasks) {
  const size_t count = static_cast<size_t>(tasks);
  durations_.reserve(count);
  task_labels_.reserve(count);
  microbatches_.reserve(count);
  stream_begin_.reserve(count + 1);
  stream_pool_.reserve(count);
  dependency_begin_.reserve(count + 1);
  dependency_pool_.reserve(count);
  memory_events_.reserve(3 * count);  // most tasks make one tensor and use up one or two
}

absl::Status Program::VerifyNetwork() const {
  ORRERY_RETURN_IF_ERROR(program_cc::VerifyResources(*this));
  return program_cc::VerifyFlows(*this);
}

absl::Status Program::Verify() const {
  ORRERY_RETURN_IF_ERROR(program_cc::VerifyMembers(*this));
  ORRERY_RETURN_IF_ERROR(program_cc::VerifyStreams(*this));
  ORRERY_RETURN_IF_ERROR(VerifyNetwork());
  for (int32_t i = 0; i < task_count(); ++i)
    ORRERY_RETURN_IF_ERROR(program_cc::VerifyTask(*this, TaskId(i)));
  ORRERY_RETURN_IF_ERROR(program_cc::VerifyMemory(*this));
  return VerifyAcyclic(*this);
}

}  // namespace orrery::simulator
