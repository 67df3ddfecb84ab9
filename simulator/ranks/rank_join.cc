#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "simulator/program/kind_names.h"
#include "simulator/ranks/rank_programs.h"
#include "simulator/ranks/rank_rendezvous.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::simulator {
namespace rank_join_cc {
namespace {

// The kind of a stream whose first task is of kind `first`.
StreamKind KindOf(absl::string_view name, StepKind first) {
  const StreamKind other = first == StepKind::kCompute ? StreamKind::kCompute : StreamKind::kData;
  return kStreamKindNames.Find(name).value_or(other);
}

class Joiner {
 public:
  Joiner(const RankPrograms& programs, Machine& machine, Program& program)
      : programs_(programs), machine_(machine), program_(program) {}

  absl::Status AddAll() {
    ORRERY_ASSIGN_OR_RETURN(const RendezvousTable table, FindRendezvous(programs_));
    const std::vector<RendezvousWait> waits = WaitsOf(programs_, table);
    ORRERY_ASSIGN_OR_RETURN(const std::vector<int32_t> order,
                            OrderRendezvous(programs_, table, waits));
    ORRERY_RETURN_IF_ERROR(AddRanks());
    // By rendezvous: what it waits for by name. What it follows on its streams, the program knows.
    std::vector<std::vector<int32_t>> named(static_cast<size_t>(table.size()));
    for (const RendezvousWait& wait : waits) {
      if (wait.by_name) named[static_cast<size_t>(wait.after)].push_back(wait.before);
    }
    std::vector<TaskId> task_of(named.size());
    std::vector<TaskId> after;
    program_.Reserve(table.size());
    for (const int32_t rendezvous : order) {
      after.clear();
      for (const int32_t before : named[static_cast<size_t>(rendezvous)]) {
        after.push_back(task_of[static_cast<size_t>(before)]);
      }
      ORRERY_ASSIGN_OR_RETURN(task_of[static_cast<size_t>(rendezvous)],
                              AddMatched(table.row(rendezvous), after));
    }
    ORRERY_CHECK(program_.ordered()) << "there is no order of the rendezvous";
    return absl::OkStatus();
  }

 private:
  const RankStep& StepAt(const StepPosition& position) const {
    return programs_.ranks[static_cast<size_t>(position.rank)][static_cast<size_t>(position.step)];
  }

  absl::Status AddRanks() {
    for (int32_t rank = 0; rank < static_cast<int32_t>(programs_.ranks.size()); ++rank) {
      ORRERY_ASSIGN_OR_RETURN(RankClass row, machine_.RankOf(rank));
      row.members = {rank};
      const RankClassId id = program_.AddRank(std::move(row));
      auto& streams = streams_.emplace_back();
      for (const RankStep& step : programs_.ranks[static_cast<size_t>(rank)]) {
        if (step.kind == StepKind::kWait || streams.contains(step.stream)) continue;
        streams[step.stream] = program_.AddStream(id, KindOf(step.stream, step.kind));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TaskId> AddMatched(std::span<const StepPosition> positions,
                                    std::span<const TaskId> after) {
    const RankStep& first = StepAt(positions.front());
    ORRERY_ASSIGN_OR_RETURN(Task task, TaskOf(positions.front(), first, positions.size()));
    task.label = LabelOf(positions.front().rank, first);
    std::vector<StreamId> streams;
    for (const StepPosition& position : positions) {
      streams.push_back(streams_[static_cast<size_t>(position.rank)][StepAt(position).stream]);
    }
    return program_.AddRendezvous(streams, task, after);
  }

  // How long it takes. Equal calls are asked for once, and share their flow.
  absl::StatusOr<Task> TaskOf(const StepPosition& position, const RankStep& step, size_t ranks) {
    if (step.kind == StepKind::kCompute) return Task{.duration = step.duration};
    if (ranks == 1) return Task{};  // a collective of one rank has nothing to do
    const bool is_call = step.kind == StepKind::kCollective;
    const CallKey key = {is_call ? step.communicator : -1 - position.rank, is_call ? -1 : step.peer,
                         is_call ? step.collective : "send", step.size.count()};
    const auto known = tasks_.find(key);
    if (known != tasks_.end()) return known->second;
    const std::vector<int32_t> ends = {position.rank, step.peer};
    const std::span<const int32_t> group =
        is_call ? programs_.communicators[static_cast<size_t>(step.communicator)].ranks : ends;
    const absl::StatusOr<Task> task =
        machine_.TimeOf({.kind = std::get<2>(key), .size = step.size, .ranks = group});
    if (!task.ok()) {
      return Annotate(task.status(), absl::StrCat(WhereIs(programs_, position.rank, position.step),
                                                  ": ", Describe(programs_, step)));
    }
    tasks_.emplace(key, *task);
    return *task;
  }

  // As reports sum it up: "all-reduce world", "send"; empty for what computes.
  std::string CommunicationOf(const RankStep& step) const {
    if (step.kind == StepKind::kSend) return "send";
    if (step.kind != StepKind::kCollective) return "";
    return absl::StrCat(step.collective, " ",
                        programs_.communicators[static_cast<size_t>(step.communicator)].name);
  }

  LabelId LabelOf(int32_t rank, const RankStep& step) {
    std::string name = step.name.empty() ? "compute" : step.name;
    TaskKind kind = TaskKind::kCompute;
    if (step.kind == StepKind::kCollective) {
      kind = TaskKind::kCollective;
      name = CommunicationOf(step);
    } else if (step.kind == StepKind::kSend) {
      kind = TaskKind::kSend;
      name = absl::StrCat("send ", rank, " to ", step.peer, " tag ", step.tag);
    }
    const Bytes bytes = kind == TaskKind::kCompute ? Bytes(0) : step.size;
    LabelId& label = labels_[{name, kind, bytes.count()}];
    if (!label.valid()) {
      label = program_.AddLabel(
          {.name = name, .kind = kind, .bytes = bytes, .communication = CommunicationOf(step)});
    }
    return label;
  }

  // Communicator, or -1 - sender; receiver; kind; bytes.
  using CallKey = std::tuple<int32_t, int32_t, std::string, int64_t>;

  const RankPrograms& programs_;
  Machine& machine_;
  Program& program_;
  std::vector<absl::flat_hash_map<absl::string_view, StreamId>> streams_;  // by rank
  std::map<CallKey, Task> tasks_;
  std::map<std::tuple<std::string, TaskKind, int64_t>, LabelId> labels_;
};

}  // namespace
}  // namespace rank_join_cc

absl::Status Join(const RankPrograms& programs, Machine& machine, Program& program) {
  ORRERY_CHECK(program.rank_count() == 0 && program.task_count() == 0) << "program is not empty";
  ORRERY_RETURN_IF_ERROR(Verify(programs));
  return rank_join_cc::Joiner(programs, machine, program).AddAll();
}

}  // namespace orrery::simulator
