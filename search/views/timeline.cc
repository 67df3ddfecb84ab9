#include "search/views/timeline.h"

#include <algorithm>
#include <set>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "search/runs/steady_state.h"
#include "support/check.h"
#include "transforms/schedules/text.h"
#include "transforms/stages/dealt_rounds.h"

namespace orrery::search {
namespace timeline_cc {
namespace {

using simulator::Phase;
using simulator::Program;
using simulator::RankClassId;
using simulator::TaskId;
using transforms::StepKind;

constexpr char kIdle = '.';

bool RunsOn(const Program& program, TaskId task, RankClassId rank) {
  for (const simulator::StreamId stream : program.streams_of(task)) {
    if (program.stream(stream).rank == rank) return true;
  }
  return false;
}

// Widens `span` by a task; the first one sets it.
void Widen(const Run& run, TaskId task, bool& any, StepSpan& span) {
  const Time start = run.trace.start_of(task), finish = run.trace.finish_of(task);
  span.start = any ? std::min(span.start, start) : start;
  span.finish = any ? std::max(span.finish, finish) : finish;
  any = true;
}

void AddStep(const Run& run, const lowering::LoweredStep& lowered, RankClassId rank,
             std::vector<StepSpan>& spans) {
  StepSpan span{.step = lowered.step, .start = {}, .finish = {}};
  bool any = false;
  for (int32_t i = lowered.begin.index(); i < lowered.end.index(); ++i) {
    const TaskId task(i);
    const simulator::TaskLabel label = run.program.label(run.program.label_of(task));
    if (label.kind != simulator::TaskKind::kCompute) continue;
    if (!lowering::IsOf(label, lowered.step)) continue;
    if (RunsOn(run.program, task, rank)) Widen(run, task, any, span);
  }
  if (any) spans.push_back(span);
}

// Steps that run at once have one span.
void JoinPairs(std::vector<StepSpan>& spans) {
  for (size_t i = 0; i + 1 < spans.size(); ++i) {
    StepSpan &a = spans[i], &b = spans[i + 1];
    if (!a.step.with_next) continue;
    a.start = b.start = std::min(a.start, b.start);
    a.finish = b.finish = std::max(a.finish, b.finish);
  }
}

// Kernels of the optimizer that follow each other are one update.
void AddUpdates(const Run& run, RankClassId rank, std::vector<StepSpan>& spans) {
  const Program& program = run.program;
  bool open = false;  // the last span is an update that may go on
  for (int32_t i = 0; i < program.task_count(); ++i) {
    const TaskId task(i);
    const simulator::TaskLabel label = program.label(program.label_of(task));
    if (label.kind != simulator::TaskKind::kCompute || label.phase != Phase::kUpdate) continue;
    if (!RunsOn(program, task, rank)) continue;
    open = open && run.trace.start_of(task) <= spans.back().finish;
    if (!open) spans.push_back({.step = {}, .update = true, .start = {}, .finish = {}});
    Widen(run, task, open, spans.back());
  }
}

// Draws one rank.
class Row {
 public:
  Row(const TimeWindow& window, int32_t columns, bool many_stages)
      : window_(window), many_stages_(many_stages), text_(static_cast<size_t>(columns), kIdle) {}

  void Draw(std::span<const StepSpan> spans) {
    for (size_t i = 0; i < spans.size(); ++i) {
      const StepSpan& span = spans[i];
      std::string name = NameOf(span);
      char fill = FillOf(span);
      if (span.step.with_next && i + 1 < spans.size()) {
        absl::StrAppend(&name, "&", NameOf(spans[++i]));
        fill = '&';
      }
      DrawSpan(span, name, fill);
    }
  }

  std::string text() const { return std::string(absl::StripTrailingAsciiWhitespace(text_)); }

 private:
  std::string NameOf(const StepSpan& span) const {
    if (span.update) return "U";
    std::string name = transforms::StepName(span.step);
    return many_stages_ ? name : name.substr(name.find_first_not_of("0123456789"));
  }

  static char FillOf(const StepSpan& span) {
    if (span.update) return 'u';
    constexpr char kFills[] = {'-', '=', '~', '+'};  // by StepKind
    return kFills[static_cast<size_t>(span.step.kind)];
  }

  // The column in which most of what follows `time` lies.
  int64_t ColumnOf(Time time) const {
    const auto columns = static_cast<__int128>(text_.size());
    const __int128 length = (window_.end - window_.begin).picoseconds();
    const __int128 position = (time - window_.begin).picoseconds();
    return static_cast<int64_t>((2 * position * columns + length) / (2 * length));
  }

  // One letter of its kind where the name has no room.
  static char LetterOf(const std::string& name) {
    return *std::find_if(name.begin(), name.end(), absl::ascii_isalpha);
  }

  void DrawSpan(const StepSpan& span, const std::string& name, char fill) {
    if (span.finish <= window_.begin || span.start >= window_.end) return;
    const auto begin = static_cast<size_t>(ColumnOf(std::max(span.start, window_.begin)));
    const auto end = static_cast<size_t>(ColumnOf(std::min(span.finish, window_.end)));
    if (end <= begin) return;
    std::string cell(end - begin, fill);
    const bool began = span.start >= window_.begin;
    if (began && name.size() <= cell.size()) {
      cell.replace(0, name.size(), name);
    } else if (began) {
      cell[0] = LetterOf(name);
    }
    text_.replace(begin, cell.size(), cell);
  }

  const TimeWindow& window_;
  const bool many_stages_;
  std::string text_;
};

// The classes to draw: all where one stands for each position in the pipeline, else the first of
// each.
std::vector<RankClassId> RowsOf(const Program& program) {
  std::vector<RankClassId> rows;
  std::set<int32_t> positions;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    if (positions.insert(program.rank(RankClassId(i)).stage).second) rows.emplace_back(i);
  }
  return rows;
}

std::string Legend(const Run& run, const TimeWindow& window, int32_t columns) {
  std::set<StepKind> kinds;
  bool at_once = false;
  for (const lowering::LoweredStep& lowered : run.steps) {
    kinds.insert(lowered.step.kind);
    at_once = at_once || lowered.step.with_next;
  }
  std::string text =
      absl::StrFormat("a column: %s; F- forward",
                      ToString(Duration((window.end - window.begin).picoseconds() / columns)));
  if (kinds.count(StepKind::kBackward) > 0) text += ", B= backward";
  if (kinds.count(StepKind::kInputGradient) > 0) text += ", I~ gradients of inputs";
  if (kinds.count(StepKind::kWeightGradient) > 0) text += ", W+ gradients of weights";
  if (at_once) text += ", F&B both at once";
  return absl::StrCat(text, ", U update, . waits\n");
}

}  // namespace
}  // namespace timeline_cc

std::vector<StepSpan> SpansOf(const Run& run, simulator::RankClassId rank) {
  ORRERY_CHECK(run.trace.finish.size() == static_cast<size_t>(run.program.task_count()))
      << "the trace is of another program";
  std::vector<StepSpan> spans;
  for (const lowering::LoweredStep& lowered : run.steps)
    timeline_cc::AddStep(run, lowered, rank, spans);
  timeline_cc::JoinPairs(spans);
  timeline_cc::AddUpdates(run, rank, spans);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const StepSpan& a, const StepSpan& b) { return a.start < b.start; });
  return spans;
}

TimeWindow WindowOf(const Run& run, const transforms::PipelineSchedule& schedule,
                    const transforms::PipelineShape& shape) {
  if (!schedule.asynchronous) return {.begin = {}, .end = run.trace.makespan};
  const int32_t batches =
      RoundsOfAPeriod(schedule, shape, transforms::ReplicasOf(run.pipelined.unequal));
  const int32_t first = (run.rounds - batches - 1) * shape.microbatches;
  // Where microbatches are dealt, the first replica may not have that one, but one behind it.
  const auto found = [&](const StepSpan& span) {
    return !span.update && span.step.kind == transforms::StepKind::kForward &&
           span.step.stage == 0 && span.step.microbatch >= first;
  };
  const std::vector<StepSpan> spans = SpansOf(run, simulator::RankClassId(0));
  const auto span = std::ranges::find_if(spans, found);
  const Time begin = span == spans.end() ? Time() : span->start;
  const Time end = begin + run.report.step_time * batches;
  return {.begin = begin, .end = std::min(end, run.trace.makespan)};
}

std::string DrawRun(const Run& run, const TimeWindow& window, int32_t columns) {
  ORRERY_CHECK(columns >= 10) << columns;
  if (window.end <= window.begin) return "nothing takes any time\n";
  const std::vector<simulator::RankClassId> rows = timeline_cc::RowsOf(run.program);
  int32_t stages = 0;
  for (const lowering::LoweredStep& lowered : run.steps) {
    stages = std::max(stages, lowered.step.stage + 1);
  }
  size_t width = 0;
  const auto name = [&](simulator::RankClassId row) {
    return absl::StrCat("rank ", run.program.rank(row).members.front());
  };
  for (const simulator::RankClassId row : rows) width = std::max(width, name(row).size());
  std::string text;
  for (const simulator::RankClassId row : rows) {
    timeline_cc::Row drawn(window, columns, static_cast<size_t>(stages) > rows.size());
    drawn.Draw(SpansOf(run, row));
    absl::StrAppendFormat(&text, "%-*s | %s\n", static_cast<int>(width), name(row), drawn.text());
  }
  return text + timeline_cc::Legend(run, window, columns);
}

}  // namespace orrery::search
