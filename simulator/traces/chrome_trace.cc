#include "simulator/traces/chrome_trace.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulator/report/critical_path.h"
#include "simulator/report/memory.h"
#include "simulator/report/rank_tasks.h"
#include "simulator/traces/arrows.h"
#include "simulator/traces/event_text.h"
#include "simulator/traces/kernel_text.h"
#include "simulator/traces/network_events.h"
#include "simulator/traces/rank_events.h"
#include "simulator/traces/shown_ranks.h"
#include "simulator/traces/trace_slices.h"
#include "support/check.h"
#include "support/json_text.h"

namespace orrery::simulator {
namespace chrome_trace_cc {
namespace {

// The communicators of a rank as torch's profiler lists them.
std::string CommunicatorsText(const TraceParts& parts, int32_t rank) {
  std::set<std::string> names;
  for (int32_t i = 0; i < parts.program.label_count(); ++i) {
    const TaskLabel label = parts.program.label(LabelId(i));
    if (label.kind == TaskKind::kCollective) names.emplace(CommunicatorOf(label));
  }
  std::vector<std::string> rows;
  for (const std::string& name : names) {
    const std::vector<int32_t> ranks = parts.options.group(rank, name);
    if (ranks.empty()) continue;
    rows.push_back(absl::StrCat("{\"pg_name\":", JsonString(name),
                                ",\"pg_desc\":", JsonString(name),
                                ",\"backend_config\":\"cuda:nccl\",\"pg_size\":", ranks.size(),
                                ",\"ranks\":[", absl::StrJoin(ranks, ","), "]}"));
  }
  return absl::StrCat("\"pg_count\":", rows.size(), ",\"pg_config\":[", absl::StrJoin(rows, ","),
                      "]");
}

// What a profile says of the rank that it is of; empty where it is of several.
std::string RankHeader(const TraceParts& parts) {
  if (parts.shown.ranks().size() != 1) return "";
  const int32_t rank = parts.shown.ranks().front().rank;
  size_t ranks = 0;
  for (int32_t i = 0; i < parts.program.rank_count(); ++i) {
    ranks += parts.program.rank(RankClassId(i)).members.size();
  }
  std::string text;
  if (parts.options.describe) {
    const TraceRank known = parts.options.describe(rank);
    absl::StrAppend(&text, "\"deviceProperties\":[{\"id\":", known.device,
                    ",\"name\":", JsonString(known.device_name),
                    ",\"totalGlobalMem\":", known.memory.count(), "}],");
  }
  absl::StrAppend(&text, "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":", rank,
                  ",\"world_size\":", ranks);
  if (parts.options.group) absl::StrAppend(&text, ",", CommunicatorsText(parts, rank));
  return text + "},";
}

std::string MemoryText(const MemoryUse& use) {
  std::string series;
  for (int i = 0; i < kMemoryKindCount; ++i) {
    const MemoryKind kind = static_cast<MemoryKind>(i);
    absl::StrAppend(&series, i > 0 ? "," : "", "\"", ToString(kind), "\":", use.of(kind).count());
  }
  return series;
}

// What each rank holds, and the moment at which it first holds more than the device has.
class MemoryEvents {
 public:
  MemoryEvents(const TraceParts& parts, EventText& out) : parts_(parts), out_(out) {}

  void Write() {
    std::vector<RankClassId> classes;
    for (int32_t i = 0; i < parts_.program.rank_count(); ++i) {
      if (!parts_.shown.of(RankClassId(i)).empty()) classes.emplace_back(i);
    }
    VisitMemory(parts_.program, parts_.trace, classes,
                [&](RankClassId rank, const MemoryUse& use) { Visit(rank, use); });
    Tell();
  }

 private:
  // A counter has one value a moment: the last.
  void Visit(RankClassId rank, const MemoryUse& use) {
    if (rank != rank_ || use.time != last_.time) Tell();
    if (rank != rank_) too_much_ = false;
    rank_ = rank;
    last_ = use;
    const Bytes capacity = parts_.program.rank(rank).capacity;
    if (too_much_ || capacity == Bytes(0) || use.total <= capacity) return;
    too_much_ = true;
    for (const ShownRank& shown : parts_.shown.of(rank)) {
      out_.Event("{\"name\":\"out of memory\",\"ph\":\"i\",\"s\":\"p\",",
                 PositionText(shown.rank, kStepThread), ",\"ts\":", Microseconds(use.time),
                 ",\"args\":{\"bytes\":", use.total.count(), ",\"capacity\":", capacity.count(),
                 "}}");
    }
  }

  void Tell() {
    if (!rank_.valid()) return;
    const std::string series = MemoryText(last_);
    for (const ShownRank& shown : parts_.shown.of(rank_)) {
      out_.Event("{\"name\":\"memory (bytes)\",\"ph\":\"C\",\"pid\":", shown.rank,
                 ",\"ts\":", Microseconds(last_.time), ",\"args\":{", series, "}}");
    }
  }

  const TraceParts& parts_;
  EventText& out_;
  RankClassId rank_ = {};  // whose use `last_` is
  MemoryUse last_;
  bool too_much_ = false;
};

}  // namespace
}  // namespace chrome_trace_cc

void WriteChromeTrace(const Program& program, const Trace& trace, std::ostream& out,
                      const TraceOptions& options) {
  ORRERY_CHECK(trace.finish.size() == static_cast<size_t>(program.task_count()))
      << "the trace is of another program";
  const ShownRanks shown(program, options.ranks);
  const RankTasks tasks(program);
  const ShownMicrobatches microbatches(options.microbatches);
  const std::vector<TaskId> before = LatestBefore(program, trace);
  const TraceParts parts = {program, trace, options, shown, tasks, microbatches, before};
  EventText events(out);
  events.Begin(absl::StrCat("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",",
                            chrome_trace_cc::RankHeader(parts), "\"traceEvents\":["));
  RankEvents ranks(parts, events);
  for (const ShownRank& rank : shown.ranks()) ranks.Write(rank);
  chrome_trace_cc::MemoryEvents(parts, events).Write();
  WriteRendezvous(parts, events);
  WriteCriticalPath(parts, events);
  WriteNetwork(parts, events);
  events.End("\n]}\n");
}

}  // namespace orrery::simulator
