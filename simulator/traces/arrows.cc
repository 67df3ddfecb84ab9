#include "simulator/traces/arrows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/report/critical_path.h"
#include "simulator/traces/kernel_text.h"

namespace orrery::simulator {
namespace arrows_cc {
namespace {

// A slice that an arrow can begin or end at.
struct Place {
  ShownRank rank;
  StreamId stream;
};

std::string PositionOf(const TraceParts& parts, const Place& place) {
  return PositionText(place.rank.rank, parts.shown.thread(place.stream));
}

bool IsShown(const TraceParts& parts, TaskId task) {
  return parts.microbatches.shows(parts.program.microbatch_of(task)) &&
         parts.trace.finish_of(task) - parts.trace.start_of(task) >= kShortestArrow;
}

std::vector<Place> PlacesOf(const TraceParts& parts, TaskId task) {
  std::vector<Place> places;
  for (const StreamId stream : parts.program.streams_of(task)) {
    for (const ShownRank& rank : parts.shown.of(parts.program.stream(stream).rank)) {
      places.push_back({rank, stream});
    }
  }
  return places;
}

void Connect(const TraceParts& parts, absl::string_view name, TaskId task, const Place& from,
             const Place& to, EventText& out) {
  const Time start = parts.trace.start_of(task);
  out.Arrow(name, PositionOf(parts, from), start, PositionOf(parts, to), start);
}

// Who is sent to by whom: ranks at the same place of two classes of as many members, or the first
// of each.
void ConnectSend(const TraceParts& parts, TaskId task, EventText& out) {
  const std::span<const StreamId> streams = parts.program.streams_of(task);
  const RankClassId sender = parts.program.stream(streams.front()).rank;
  const size_t senders = parts.program.rank(sender).members.size();
  for (const StreamId stream : streams.subspan(1)) {
    const RankClassId receiver = parts.program.stream(stream).rank;
    const bool pairs = parts.program.rank(receiver).members.size() == senders;
    for (const ShownRank& from : parts.shown.of(sender)) {
      for (const ShownRank& to : parts.shown.of(receiver)) {
        if (from.member != to.member || (!pairs && from.member != 0)) continue;
        Connect(parts, "send", task, {from, streams.front()}, {to, stream}, out);
      }
    }
  }
}

// Finds the places of collectives, group by group.
class Groups {
 public:
  explicit Groups(const TraceParts& parts) : parts_(parts) {}

  // By the first rank of the group; of groups that are not known where the task is of one.
  std::map<int32_t, std::vector<Place>> Of(TaskId task) {
    const LabelId label = parts_.program.label_of(task);
    std::map<int32_t, std::vector<Place>> groups;
    for (const Place& place : PlacesOf(parts_, task)) {
      const int32_t first = FirstOf(label, place.rank.rank);
      if (first != kUnknown || parts_.program.label(label).collectives == 1) {
        groups[first].push_back(place);
      }
    }
    return groups;
  }

 private:
  static constexpr int32_t kUnknown = -1;

  // The first rank of the group that `rank` is in.
  int32_t FirstOf(LabelId label, int32_t rank) {
    if (!parts_.options.group) return kUnknown;
    const auto [first, is_new] = first_.try_emplace({label, rank}, kUnknown);
    if (is_new) {
      const std::vector<int32_t> group =
          parts_.options.group(rank, CommunicatorOf(parts_.program.label(label)));
      if (!group.empty()) first->second = group.front();
    }
    return first->second;
  }

  const TraceParts& parts_;
  std::map<std::pair<LabelId, int32_t>, int32_t> first_;
};

// Of the places of a group the one that came last: on whose rank that ran for which the task
// waited.
const Place& LastOf(const TraceParts& parts, TaskId task, const std::vector<Place>& places) {
  const TaskId awaited = parts.before[static_cast<size_t>(task.index())];
  if (!awaited.valid()) return places.front();
  for (const Place& place : places) {
    for (const StreamId stream : parts.program.streams_of(awaited)) {
      if (parts.program.stream(stream).rank == place.rank.of) return place;
    }
  }
  return places.front();
}

// The slice of a task that the critical path goes through: on `rank`, where it has one there.
std::optional<Place> PlaceOn(const TraceParts& parts, TaskId task, int32_t rank) {
  const std::vector<Place> places = PlacesOf(parts, task);
  for (const Place& place : places) {
    if (place.rank.rank == rank) return place;
  }
  return places.empty() ? std::nullopt : std::optional(places.front());
}

// Whether runs of tasks are shown, and both are in one.
bool AreOneSlice(const TraceParts& parts, const Place& from, TaskId first, const Place& to,
                 TaskId second) {
  return parts.options.level == TraceLevel::kStage && from.rank.rank == to.rank.rank &&
         from.stream == to.stream &&
         StepName(parts.program, first) == StepName(parts.program, second);
}

}  // namespace
}  // namespace arrows_cc

void WriteRendezvous(const TraceParts& parts, EventText& out) {
  arrows_cc::Groups groups(parts);
  for (int32_t i = 0; i < parts.program.task_count(); ++i) {
    const TaskId task(i);
    const TaskKind kind = parts.program.label(parts.program.label_of(task)).kind;
    if (kind == TaskKind::kCompute || !arrows_cc::IsShown(parts, task)) continue;
    if (kind == TaskKind::kSend) {
      arrows_cc::ConnectSend(parts, task, out);
      continue;
    }
    for (const auto& [first, places] : groups.Of(task)) {
      if (places.size() < 2) continue;
      const arrows_cc::Place& last = arrows_cc::LastOf(parts, task, places);
      for (const arrows_cc::Place& place : places) {
        if (&place == &last) continue;
        arrows_cc::Connect(parts, "collective", task, last, place, out);
      }
    }
  }
}

void WriteCriticalPath(const TraceParts& parts, EventText& out) {
  TaskId last;
  std::optional<arrows_cc::Place> from;
  for (const PathTask& row : CriticalPath(parts.program, parts.trace)) {
    if (!arrows_cc::IsShown(parts, row.task)) continue;
    const std::optional<arrows_cc::Place> to =
        arrows_cc::PlaceOn(parts, row.task, from.has_value() ? from->rank.rank : -1);
    if (!to.has_value()) continue;
    if (from.has_value() && !arrows_cc::AreOneSlice(parts, *from, last, *to, row.task)) {
      out.Arrow("critical_path", arrows_cc::PositionOf(parts, *from), parts.trace.start_of(last),
                arrows_cc::PositionOf(parts, *to), parts.trace.start_of(row.task));
    }
    from = to;
    last = row.task;
  }
}

}  // namespace orrery::simulator
