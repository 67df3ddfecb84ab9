#include "simulator/traces/network_events.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/json_text.h"

namespace orrery::simulator {
namespace network_events_cc {
namespace {

// The number of the process.
int32_t NetworkOf(const Program& program) {
  int32_t pid = 0;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    pid = std::max(pid, program.rank(RankClassId(i)).members.back() + 1);
  }
  return pid;
}

std::string NameOf(const Program& program, ResourceId id) {
  const Resource& resource = program.resource(id);
  std::string name = resource.name.empty() ? ToString(id) : resource.name;
  if (!resource.kind.empty()) absl::StrAppend(&name, " (", resource.kind, ")");
  return name;
}

void WriteCounter(const TraceParts& parts, ResourceId id, int32_t pid, EventText& out) {
  const std::span<const UseInterval> intervals = parts.options.use->intervals(id);
  if (intervals.empty()) return;
  // The id keeps resources of one name apart.
  const std::string head =
      absl::StrCat("{\"name\":", JsonString(NameOf(parts.program, id)),
                   ",\"ph\":\"C\",\"pid\":", pid, ",\"id\":", id.index(), ",\"ts\":");
  const auto write = [&](Time time, double bytes_per_second) {
    out.Event(head, Microseconds(time),
              ",\"args\":{\"GB/s\":", absl::StrFormat("%.9g", bytes_per_second * 1e-9), "}}");
  };
  if (intervals.front().from > Time(0)) write(Time(0), 0);
  for (const UseInterval& interval : intervals) write(interval.from, interval.bytes_per_second);
}

// A task on a link, whose bandwidth it takes `load` times.
struct OnLink {
  TaskId task;
  double load = 1;
};

bool IsOfShownRank(const TraceParts& parts, TaskId task) {
  return std::ranges::any_of(parts.program.streams_of(task), [&](StreamId stream) {
    return !parts.shown.of(parts.program.stream(stream).rank).empty();
  });
}

IdTable<ResourceId, std::vector<OnLink>> TasksOnLinks(const TraceParts& parts) {
  IdTable<ResourceId, std::vector<OnLink>> links(parts.program.resource_count());
  for (int32_t i = 0; i < parts.program.task_count(); ++i) {
    const TaskId task(i);
    const FlowId flow = parts.program.flow_of(task);
    if (!flow.valid() || !parts.microbatches.shows(parts.program.microbatch_of(task)) ||
        !IsOfShownRank(parts, task)) {
      continue;
    }
    for (const Load& load : parts.program.flow(flow).loads) {
      links[load.resource].push_back({task, load.load});
    }
  }
  for (std::vector<OnLink>& rows : links.rows()) {
    std::ranges::stable_sort(rows, {},
                             [&](const OnLink& row) { return parts.trace.start_of(row.task); });
  }
  return links;
}

void WriteOnLink(const TraceParts& parts, const OnLink& row, const std::string& position,
                 EventText& out) {
  const Program& program = parts.program;
  const TaskLabel label = program.label(program.label_of(row.task));
  const Time start = parts.trace.start_of(row.task);
  const Flow flow = program.flow(program.flow_of(row.task));
  out.Event("{\"name\":", JsonString(TaskText(program, row.task)),
            ",\"cat\":\"flow\",\"ph\":\"X\",", position, ",",
            SpanText(start, parts.trace.finish_of(row.task)),
            ",\"args\":{\"task\":", row.task.index(),
            ",\"kind\":", JsonString(std::string(label.communication)),
            ",\"bytes\":", flow.size.count(), ",\"load\":", absl::StrFormat("%.9g", row.load),
            ",\"latency_us\":", Microseconds(flow.latency), "}}");
}

// Those of one link on as many threads as it takes for none to overlap; `next` is the number of the
// first that is free.
void WriteLink(const TraceParts& parts, ResourceId id, const std::vector<OnLink>& rows, int32_t pid,
               int32_t& next, EventText& out) {
  std::vector<Time> lanes;  // until when each is taken
  const int32_t first = next;
  for (const OnLink& row : rows) {
    const Time start = parts.trace.start_of(row.task);
    auto lane = std::ranges::find_if(lanes, [&](Time until) { return until <= start; });
    const auto number = static_cast<int32_t>(lane - lanes.begin());
    const std::string position = PositionText(pid, first + number);
    if (lane == lanes.end()) {
      lane = lanes.insert(lanes.end(), Time(0));
      out.Thread(position, NameOf(parts.program, id), next++);
    }
    *lane = parts.trace.finish_of(row.task);
    WriteOnLink(parts, row, position, out);
  }
}

}  // namespace
}  // namespace network_events_cc

void WriteNetwork(const TraceParts& parts, EventText& out) {
  const bool flows = parts.options.level == TraceLevel::kFlow;
  const bool counters = parts.options.use != nullptr && parts.options.level != TraceLevel::kStage;
  if (!flows && !counters) return;
  const int32_t pid = network_events_cc::NetworkOf(parts.program);
  out.Process(pid, "network");
  for (int32_t i = 0; counters && i < parts.program.resource_count(); ++i) {
    network_events_cc::WriteCounter(parts, ResourceId(i), pid, out);
  }
  if (!flows) return;
  int32_t next = 0;
  const auto links = network_events_cc::TasksOnLinks(parts);
  for (int32_t i = 0; i < links.size(); ++i) {
    network_events_cc::WriteLink(parts, ResourceId(i), links[ResourceId(i)], pid, next, out);
  }
}

}  // namespace orrery::simulator
