#include "simulator/report/chrome_trace.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "simulator/report/memory.h"
#include "support/check.h"
#include "support/id_table.h"
#include "support/json_text.h"
#include "support/number_text.h"

namespace orrery::simulator {
namespace chrome_trace_cc {
namespace {

// Viewers count nanoseconds, and lose an arrow whose slice is shorter than one.
constexpr Duration kShortestArrow(1000);
constexpr size_t kBufferBytes = 1 << 16;

// Microseconds, exact: never by way of a double, which runs out of picoseconds after two hours.
std::string Microseconds(Duration duration) {
  const int64_t picoseconds = duration.picoseconds();
  return absl::StrCat(picoseconds / 1'000'000, ".",
                      absl::Dec(picoseconds % 1'000'000, absl::kZeroPad6));
}

// Where a stream's slices go: `"pid":3,"tid":0`.
struct Thread {
  std::string position;
  std::string name;
  int32_t tid = 0;
};

// What the slices of one label share, made once a label and not once a slice.
struct LabelText {
  std::string head;  // name, category
  std::string args;  // all but the task and the microbatch
  bool sends = false;
};

class Writer {
 public:
  Writer(const Program& program, const Trace& trace, std::ostream& out)
      : program_(program), trace_(trace), out_(out) {}

  void Write(const LinkUse* use) {
    MakeThreads();
    MakeLabels();
    buffer_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    for (int32_t i = 0; i < program_.rank_count(); ++i) WriteProcess(RankClassId(i));
    for (int32_t i = 0; i < program_.stream_count(); ++i) WriteThread(StreamId(i));
    for (int32_t i = 0; i < program_.task_count(); ++i) WriteTask(TaskId(i));
    WriteMemory();
    if (use != nullptr) WriteNetwork(*use);
    buffer_ += "\n]}\n";
    Flush();
  }

 private:
  void MakeThreads() {
    IdTable<RankClassId, int32_t> next_tid(program_.rank_count());
    for (int32_t i = 0; i < program_.stream_count(); ++i) {
      const Stream& stream = program_.stream(StreamId(i));
      const int32_t tid = next_tid[stream.rank]++;
      threads_.push_back({.position = absl::StrCat("\"pid\":", Pid(stream.rank), ",\"tid\":", tid),
                          .name = std::string(ToString(stream.kind)),
                          .tid = tid});
    }
  }

  void MakeLabels() {
    for (int32_t i = 0; i < program_.label_count(); ++i) {
      const TaskLabel& label = program_.label(LabelId(i));
      const bool computes = label.kind == TaskKind::kCompute;
      labels_.push_back(
          {.head = absl::StrCat("\"name\":", JsonString(std::string(label.name)), ",\"cat\":\"",
                                computes ? "compute" : "communication", "\""),
           .args = absl::StrCat(",\"stage\":", label.stage, ",\"phase\":\"", ToString(label.phase),
                                "\",\"flops\":", SeventeenDigits(label.flops.count()),
                                ",\"bytes\":", label.bytes.count()),
           .sends = label.kind == TaskKind::kSend});
    }
  }

  int32_t Pid(RankClassId rank) const { return program_.rank(rank).members.front(); }

  void WriteProcess(RankClassId id) {
    const RankClass& rank = program_.rank(id);
    const int32_t pid = Pid(id);
    std::string name = absl::StrCat("rank ", pid);
    if (!rank.name.empty()) absl::StrAppend(&name, " · ", rank.name);
    if (rank.members.size() > 1) absl::StrAppend(&name, " (x", rank.members.size(), ")");
    Event("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":", pid,
          ",\"args\":{\"name\":", JsonString(name), "}}");
    Event("{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":", pid,
          ",\"args\":{\"sort_index\":", pid, "}}");
  }

  void WriteThread(StreamId id) {
    const Thread& thread = threads_[id];
    Event("{\"name\":\"thread_name\",\"ph\":\"M\",", thread.position, ",\"args\":{\"name\":\"",
          thread.name, "\"}}");
    Event("{\"name\":\"thread_sort_index\",\"ph\":\"M\",", thread.position,
          ",\"args\":{\"sort_index\":", thread.tid, "}}");
  }

  void WriteTask(TaskId task) {
    const LabelText& label = labels_[program_.label_of(task)];
    const Duration duration = trace_.finish_of(task) - trace_.start_of(task);
    std::string args = absl::StrCat("\"task\":", task.index());
    const int32_t microbatch = program_.microbatch_of(task);
    if (microbatch >= 0) absl::StrAppend(&args, ",\"microbatch\":", microbatch);
    args += label.args;
    const std::string start = Microseconds(trace_.start_of(task));
    for (const StreamId stream : program_.streams_of(task)) {
      Event("{", label.head, ",\"ph\":\"X\",", threads_[stream].position, ",\"ts\":", start,
            ",\"dur\":", Microseconds(duration), ",\"args\":{", args, "}}");
    }
    if (label.sends && duration >= kShortestArrow) WriteArrows(task, start);
  }

  // Both ends lie at the start of their slices: the one place that is inside of them whichever way
  // a viewer rounds.
  void WriteArrows(TaskId task, const std::string& start) {
    const std::span<const StreamId> streams = program_.streams_of(task);
    for (const StreamId receiver : streams.subspan(1)) {
      const std::string arrow = absl::StrCat(
          "{\"name\":\"send\",\"cat\":\"send\",\"id\":", next_arrow_++, ",\"ts\":", start, ",");
      Event(arrow, "\"ph\":\"s\",", threads_[streams.front()].position, "}");
      Event(arrow, "\"ph\":\"f\",\"bp\":\"e\",", threads_[receiver].position, "}");
    }
  }

  void WriteMemory() {
    const IdTable<RankClassId, std::vector<MemoryUse>> timelines = MemoryTimeline(program_, trace_);
    for (int32_t i = 0; i < program_.rank_count(); ++i) {
      const std::vector<MemoryUse>& timeline = timelines[RankClassId(i)];
      for (size_t k = 0; k < timeline.size(); ++k) {
        // A counter has one value a moment: the last.
        if (k + 1 < timeline.size() && timeline[k + 1].time == timeline[k].time) continue;
        WriteCounter(RankClassId(i), timeline[k]);
      }
    }
  }

  void WriteCounter(RankClassId rank, const MemoryUse& use) {
    std::string series;
    for (int i = 0; i < kMemoryKindCount; ++i) {
      const MemoryKind kind = static_cast<MemoryKind>(i);
      absl::StrAppend(&series, i > 0 ? "," : "", "\"", ToString(kind), "\":", use.of(kind).count());
    }
    Event("{\"name\":\"memory (bytes)\",\"ph\":\"C\",\"pid\":", Pid(rank),
          ",\"ts\":", Microseconds(use.time), ",\"args\":{", series, "}}");
  }

  // The network is a process after all ranks.
  void WriteNetwork(const LinkUse& use) {
    int32_t pid = 0;
    for (int32_t i = 0; i < program_.rank_count(); ++i) {
      pid = std::max(pid, program_.rank(RankClassId(i)).members.back() + 1);
    }
    Event("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":", pid,
          ",\"args\":{\"name\":\"network\"}}");
    Event("{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":", pid,
          ",\"args\":{\"sort_index\":", pid, "}}");
    for (int32_t i = 0; i < program_.resource_count(); ++i) {
      WriteResource(ResourceId(i), use.intervals(ResourceId(i)), pid);
    }
  }

  void WriteResource(ResourceId id, std::span<const UseInterval> intervals, int32_t pid) {
    if (intervals.empty()) return;
    const Resource& resource = program_.resource(id);
    std::string name = resource.name.empty() ? ToString(id) : resource.name;
    if (!resource.kind.empty()) absl::StrAppend(&name, " (", resource.kind, ")");
    // The id keeps resources of one name apart.
    const std::string head =
        absl::StrCat("{\"name\":", JsonString(name), ",\"ph\":\"C\",\"pid\":", pid,
                     ",\"id\":", id.index(), ",\"ts\":");
    const auto write = [&](Time time, double bytes_per_second) {
      Event(head, Microseconds(time),
            ",\"args\":{\"GB/s\":", absl::StrFormat("%.9g", bytes_per_second * 1e-9), "}}");
    };
    if (intervals.front().from > Time(0)) write(Time(0), 0);
    for (const UseInterval& interval : intervals) write(interval.from, interval.bytes_per_second);
  }

  template <typename... Parts>
  void Event(const Parts&... parts) {
    absl::StrAppend(&buffer_, first_ ? "\n" : ",\n", parts...);
    first_ = false;
    if (buffer_.size() >= kBufferBytes) Flush();
  }

  void Flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  const Program& program_;
  const Trace& trace_;
  std::ostream& out_;
  IdTable<StreamId, Thread> threads_;
  IdTable<LabelId, LabelText> labels_;
  std::string buffer_;
  bool first_ = true;
  int64_t next_arrow_ = 1;
};

}  // namespace
}  // namespace chrome_trace_cc

void WriteChromeTrace(const Program& program, const Trace& trace, std::ostream& out,
                      const LinkUse* use) {
  ORRERY_CHECK(trace.finish.size() == static_cast<size_t>(program.task_count()))
      << "the trace is of another program";
  chrome_trace_cc::Writer(program, trace, out).Write(use);
}

}  // namespace orrery::simulator
