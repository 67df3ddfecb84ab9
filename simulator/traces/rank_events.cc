#include "simulator/traces/rank_events.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "simulator/report/bubble_slices.h"
#include "simulator/traces/microbatch_spans.h"
#include "support/json_text.h"
#include "support/number_text.h"

namespace orrery::simulator {
namespace rank_events_cc {
namespace {

std::string HeadText(const KernelText& text) {
  return absl::StrCat("{\"name\":", JsonString(text.name), ",\"cat\":\"", text.category,
                      "\",\"ph\":\"X\",");
}

// The boundaries of so many steps that the updates of a rank end, evenly; the last ends with all.
std::vector<Time> StepEnds(const std::vector<Time>& updates, int32_t steps, Time makespan) {
  const size_t count = steps > 0 ? static_cast<size_t>(steps) : 1;
  if (count == 1 || updates.empty() || updates.size() % count != 0) return {makespan};
  std::vector<Time> ends;
  for (size_t step = 1; step <= count; ++step) {
    ends.push_back(updates[step * (updates.size() / count) - 1]);
  }
  ends.back() = makespan;
  return ends;
}

std::string MemcpyArguments(const TraceSlice& slice) {
  const double seconds = slice.busy.seconds();
  const auto bytes = static_cast<double>(slice.bytes.count());
  return absl::StrCat(",\"memory bandwidth (GB/s)\":",
                      absl::StrFormat("%.6g", seconds > 0 ? bytes / seconds * 1e-9 : 0.0));
}

}  // namespace
}  // namespace rank_events_cc

std::string TaskText(const Program& program, TaskId task) {
  const TaskLabel label = program.label(program.label_of(task));
  const int32_t microbatch = program.microbatch_of(task);
  const Stream& stream = program.stream(program.streams_of(task).front());
  std::string text(label.name);
  if (microbatch >= 0) absl::StrAppend(&text, " mb", microbatch);
  absl::StrAppend(&text, " of rank ", program.rank(stream.rank).members.front());
  return text;
}

RankEvents::RankEvents(const TraceParts& parts, EventText& out)
    : parts_(parts), out_(out), nccl_(parts.options) {
  MakeLabels();
}

void RankEvents::MakeLabels() {
  if (parts_.options.level == TraceLevel::kStage) return;
  for (int32_t i = 0; i < parts_.program.label_count(); ++i) {
    const TaskLabel label = parts_.program.label(LabelId(i));
    labels_.push_back(
        {.head = rank_events_cc::HeadText(KernelTextOf(label, StreamKind::kCompute)),
         .args = absl::StrCat(",\"stage\":", label.stage, ",\"phase\":\"", ToString(label.phase),
                              "\",\"flops\":", SeventeenDigits(label.flops.count()),
                              ",\"bytes\":", label.bytes.count())});
  }
}

void RankEvents::Write(const ShownRank& rank) {
  const TraceRank known =
      parts_.options.describe ? parts_.options.describe(rank.rank) : TraceRank();
  device_ = absl::StrCat(",\"device\":", known.device);
  out_.Process(rank.rank, ProcessName(parts_.program, rank, parts_.options));
  WriteThreads(rank);
  VisitSlices(parts_.program, parts_.trace, parts_.tasks.of(rank.of), parts_.options.level,
              parts_.microbatches, [&](const TraceSlice& slice) {
                // What takes no time (a view of a tensor) is nothing to look at, and confuses
                // viewers.
                if (slice.finish > slice.start) WriteSlice(rank, slice);
              });
  WriteBubbles(rank);
  WriteMicrobatches(rank);
}

void RankEvents::WriteThreads(const ShownRank& rank) {
  out_.Thread(PositionText(rank.rank, kStepThread), "step", 0);
  out_.Thread(PositionText(rank.rank, kBubbleThread), "bubble", 2);
  for (const StreamId stream : parts_.shown.streams(rank.of)) {
    const int32_t thread = parts_.shown.thread(stream);
    const bool computes = parts_.program.stream(stream).kind == StreamKind::kCompute;
    // The bubble stands below what computes.
    out_.Thread(PositionText(rank.rank, thread), parts_.shown.ThreadName(stream),
                computes ? 1 : thread);
  }
}

void RankEvents::WriteSteps(const ShownRank& rank, const std::vector<Time>& updates) {
  Time begin;
  int32_t step = 0;
  for (const Time end :
       rank_events_cc::StepEnds(updates, parts_.options.batches, parts_.trace.makespan)) {
    if (end == begin) continue;
    out_.Event("{\"name\":\"ProfilerStep#", step++, "\",\"cat\":\"user_annotation\",\"ph\":\"X\",",
               PositionText(rank.rank, kStepThread), ",", SpanText(begin, end), "}");
    begin = end;
  }
}

std::string RankEvents::HeadOf(const TraceSlice& slice, StreamKind kind) const {
  const LabelId id = parts_.program.label_of(slice.first);
  const TaskLabel label = parts_.program.label(id);
  const bool plain = label.kind != TaskKind::kCompute || !IsOfHost(kind);
  if (parts_.options.level != TraceLevel::kStage) {
    return plain ? labels_[id].head : rank_events_cc::HeadText(KernelTextOf(label, kind));
  }
  const std::string name = StepName(parts_.program, slice.first);
  TaskLabel run = label;
  run.name = name;
  // On the compute stream a run is of kernels and of what stands between them.
  if (kind == StreamKind::kCompute) run.kind = TaskKind::kCompute;
  return rank_events_cc::HeadText(KernelTextOf(run, kind));
}

void RankEvents::WriteSlice(const ShownRank& rank, const TraceSlice& slice) {
  const Program& program = parts_.program;
  const LabelId id = program.label_of(slice.first);
  const StreamKind kind = program.stream(slice.stream).kind;
  const int32_t thread = parts_.shown.thread(slice.stream);
  const int32_t microbatch = program.microbatch_of(slice.first);
  const bool is_stage = parts_.options.level == TraceLevel::kStage;
  const TaskLabel label = program.label(id);
  std::string args = absl::StrCat(is_stage ? "\"tasks\":" : "\"task\":",
                                  is_stage ? slice.tasks : slice.first.index());
  // What the host computes stands on no stream of the device.
  if (kind != StreamKind::kHostCompute) absl::StrAppend(&args, ",\"stream\":", thread, device_);
  if (microbatch >= 0) absl::StrAppend(&args, ",\"microbatch\":", microbatch);
  if (is_stage) {
    absl::StrAppend(&args, ",\"stage\":", label.stage, ",\"phase\":\"", ToString(label.phase),
                    "\",\"busy_us\":", Microseconds(slice.busy),
                    ",\"flops\":", SeventeenDigits(slice.flops.count()),
                    ",\"bytes\":", slice.bytes.count());
  } else {
    args += labels_[id].args;
    args += nccl_.Of(label, rank.rank, program.streams_of(slice.first).front() == slice.stream);
  }
  if (label.kind == TaskKind::kCompute && IsCopyStream(kind)) {
    args += rank_events_cc::MemcpyArguments(slice);
  }
  out_.Event(HeadOf(slice, kind), PositionText(rank.rank, thread), ",",
             SpanText(slice.start, slice.finish), ",\"args\":{", args, "}}");
}

std::string RankEvents::ReasonOf(TaskId ended_by) const {
  if (!ended_by.valid()) return "";
  std::string reason = absl::StrCat(",\"next\":", JsonString(TaskText(parts_.program, ended_by)));
  const TaskId awaited = parts_.before[static_cast<size_t>(ended_by.index())];
  if (awaited.valid()) {
    absl::StrAppend(&reason, ",\"waits for\":", JsonString(TaskText(parts_.program, awaited)));
  }
  return reason;
}

void RankEvents::WriteBubbles(const ShownRank& rank) {
  for (const BubbleSlice& slice :
       BubblesOf(parts_.program, parts_.trace, parts_.tasks.of(rank.of))) {
    out_.Event("{\"name\":\"bubble: ", slice.part, "\",\"cat\":\"bubble\",\"ph\":\"X\",",
               PositionText(rank.rank, kBubbleThread), ",", SpanText(slice.start, slice.finish),
               ",\"args\":{\"part\":\"", slice.part, "\"", ReasonOf(slice.ended_by), "}}");
  }
}

void RankEvents::WriteMicrobatches(const ShownRank& rank) {
  Updates updates;
  const std::vector<MicrobatchSpan> spans =
      MicrobatchSpansOf(parts_.program, parts_.trace, parts_.tasks.of(rank.of), &updates);
  WriteSteps(rank, updates.finishes);
  for (const InFlight& count : InFlightOf(spans)) {
    out_.Event("{\"name\":\"microbatches in flight\",\"ph\":\"C\",\"pid\":", rank.rank,
               ",\"ts\":", Microseconds(count.time),
               ",\"args\":{\"microbatches\":", count.microbatches, "}}");
  }
  for (const MicrobatchSpan& span : spans) {
    Arrow("fwdbwd", rank, span.last_forward, span.first_backward);
  }
  Arrow("update", rank, updates.last_backward, updates.first);
}

void RankEvents::Arrow(absl::string_view name, const ShownRank& rank, TaskId from, TaskId to) {
  const auto shows = [&](TaskId task) {
    return task.valid() && parts_.microbatches.shows(parts_.program.microbatch_of(task)) &&
           parts_.trace.finish_of(task) - parts_.trace.start_of(task) >= kShortestArrow;
  };
  if (!shows(from) || !shows(to)) return;
  const auto position = [&](TaskId task) {
    return PositionText(rank.rank, parts_.shown.thread(parts_.program.streams_of(task).front()));
  };
  out_.Arrow(name, position(from), parts_.trace.start_of(from), position(to),
             parts_.trace.start_of(to));
}

}  // namespace orrery::simulator
