#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "search/views/timeline.h"
#include "simulator/report/critical_path.h"
#include "tools/reports/run_sections.h"
#include "transforms/schedules/text.h"

// When what runs.

namespace orrery::tools {
namespace run_times_cc {
namespace {

using simulator::RankClassId;
using transforms::StepKind;

constexpr int32_t kMostRows = 32;
constexpr size_t kMostSlices = 20'000;

// By StepKind, and behind them what is none.
const std::vector<std::string>& KindNames() {
  static const auto& names = *new std::vector<std::string>{"forward", "backward", "input gradient",
                                                           "weight gradient", "update"};
  return names;
}

int32_t KindOf(const search::StepSpan& span) {
  if (span.update) return 4;
  switch (span.step.kind) {
    case StepKind::kForward:
      return 0;
    case StepKind::kBackward:
      return 1;
    case StepKind::kInputGradient:
      return 2;
    case StepKind::kWeightGradient:
      return 3;
  }
  return 0;
}

// Places of texts in a list that has each once.
class Words {
 public:
  explicit Words(std::vector<std::string>& list) : list_(list) {}
  int32_t Of(const std::string& text) {
    const auto [found, is_new] = places_.try_emplace(text, static_cast<int32_t>(list_.size()));
    if (is_new) list_.push_back(text);
    return found->second;
  }

 private:
  std::vector<std::string>& list_;
  std::map<std::string, int32_t> places_;
};

std::string LabelOf(const search::StepSpan& span, const search::StepSpan* with) {
  constexpr absl::string_view kLetters[] = {"F", "B", "I", "W"};  // by KindOf
  if (span.update) return "update";
  std::string label = absl::StrCat(kLetters[static_cast<size_t>(KindOf(span))], " mb ",
                                   span.step.microbatch, " of stage ", span.step.stage);
  if (with != nullptr) absl::StrAppend(&label, ", beside ", LabelOf(*with, nullptr));
  return label;
}

// Two steps that run at once are one slice: that of the first. Updates that the host makes run
// beside what the device does, and stand in a row of their own.
void AddRows(const std::vector<search::StepSpan>& spans, const std::string& name, Words& labels,
             TimelineView& view) {
  const auto row = static_cast<int32_t>(view.rows.size());
  view.rows.push_back(name);
  Time until(0);
  for (size_t i = 0; i < spans.size(); ++i) {
    const search::StepSpan& span = spans[i];
    const bool pair = span.step.with_next && i + 1 < spans.size();
    const bool beside = span.update && span.start < until;
    if (beside && view.rows.size() == static_cast<size_t>(row) + 1) {
      view.rows.push_back(absl::StrCat(name, ", host"));
    }
    view.slices.push_back({.row = beside ? row + 1 : row,
                           .kind = KindOf(span),
                           .start_s = span.start.seconds(),
                           .end_s = span.finish.seconds(),
                           .label = labels.Of(LabelOf(span, pair ? &spans[i + 1] : nullptr))});
    if (!beside) until = std::max(until, span.finish);
    if (pair) ++i;
  }
}

TableView PathTable(const std::vector<simulator::PathPart>& parts, double step_s) {
  TableView table{.title = "What the critical path is made of",
                  .columns = {{"what"}, {"time", "s"}, {"of the path", "share"}}};
  for (const simulator::PathPart& part : parts) {
    const double seconds = part.time.seconds();
    table.rows.push_back({part.kind, seconds, step_s > 0 ? seconds / step_s : 0});
  }
  return table;
}

// Where the path goes: neighbours of one rank and one kind are one slice.
class PathPicture {
 public:
  explicit PathPicture(const simulator::Program& program)
      : program_(program), labels_(view_.labels), kinds_(view_.kinds), rows_(view_.rows) {
    view_.title = "The critical path, by rank";
    view_.name = "critical-path";
  }

  void Add(const simulator::TaskLabel& label, simulator::TaskId task, Time start, Time finish) {
    const simulator::StreamId stream = program_.streams_of(task).front();
    const int32_t row = rows_.Of(RankName(program_, program_.stream(stream).rank));
    const int32_t kind = kinds_.Of(simulator::PathKindOf(label));
    if (!view_.slices.empty()) {
      Slice& last = view_.slices.back();
      if (last.row == row && last.kind == kind && last.end_s == start.seconds()) {
        last.end_s = finish.seconds();
        return;
      }
    }
    view_.slices.push_back(
        {.row = row,
         .kind = kind,
         .start_s = start.seconds(),
         .end_s = finish.seconds(),
         .label = labels_.Of(absl::StrCat(simulator::PathKindOf(label), ", stage ", label.stage))});
  }

  TimelineView Finish(double end_s) && {
    view_.end_s = end_s;
    return std::move(view_);
  }

 private:
  const simulator::Program& program_;
  TimelineView view_;
  Words labels_, kinds_, rows_;
};

}  // namespace
}  // namespace run_times_cc

std::string RankName(const simulator::Program& program, simulator::RankClassId rank) {
  const std::vector<int32_t>& members = program.rank(rank).members;
  if (members.size() == 1) return absl::StrCat("rank ", members.front());
  return absl::StrCat("rank ", members.front(), " (", members.size(), " alike)");
}

void AddRounds(const PlayedPlan& played, Section& section) {
  if (played.run.rounds <= 1) return;
  section.text.push_back(absl::StrCat("The schedule never drains: this is of ", played.run.rounds,
                                      " batches, of which the last are steady. The step time is of "
                                      "one of these."));
}

std::vector<int32_t> Evenly(int32_t count, int32_t most) {
  std::vector<int32_t> chosen;
  const int32_t shown = std::min(count, most);
  for (int32_t i = 0; i < shown; ++i) {
    chosen.push_back(shown == 1 ? 0 : static_cast<int32_t>(int64_t{i} * (count - 1) / (shown - 1)));
  }
  return chosen;
}

Section TimelineSection(const PlayedPlan& played) {
  const simulator::Program& program = played.run.program;
  TimelineView view{.title = "What each rank computes when",
                    .kinds = run_times_cc::KindNames(),
                    .end_s = played.run.trace.makespan.seconds(),
                    .name = "timeline"};
  run_times_cc::Words labels(view.labels);
  const size_t a_row =
      2 * played.run.steps.size() / static_cast<size_t>(std::max<int64_t>(1, played.plan.pp)) + 1;
  const auto rows = static_cast<int32_t>(
      std::clamp<size_t>(run_times_cc::kMostSlices / a_row, 1, run_times_cc::kMostRows));
  for (const int32_t i : Evenly(program.rank_count(), rows)) {
    const simulator::RankClassId rank(i);
    run_times_cc::AddRows(search::SpansOf(played.run, rank), RankName(program, rank), labels, view);
  }
  Section section{.id = "timeline", .title = "Timeline"};
  AddRounds(played, section);
  if (rows < program.rank_count()) {
    section.text.push_back(
        absl::StrCat(rows, " of ", program.rank_count(), " kinds of ranks are shown."));
  }
  DropUnusedKinds(view);
  if (!view.slices.empty()) section.views.emplace_back(std::move(view));
  return section;
}

Section CriticalPathSection(const PlayedPlan& played) {
  const simulator::Program& program = played.run.program;
  const simulator::Trace& trace = played.run.trace;
  run_times_cc::PathPicture picture(program);
  for (const simulator::PathTask& step : CriticalPath(program, trace)) {
    const simulator::TaskLabel label = program.label(program.label_of(step.task));
    const Time start = trace.start_of(step.task), finish = trace.finish_of(step.task);
    picture.Add(label, step.task, start, finish);
  }
  Section section{.id = "critical-path", .title = "Critical path"};
  const std::vector<simulator::PathPart> parts = PathPartsOf(program, trace);
  if (parts.empty()) return section;
  section.text = {
      "Each task on it began when the one before it had finished: only what shortens "
      "these shortens the step."};
  AddRounds(played, section);
  section.views.emplace_back(run_times_cc::PathTable(parts, trace.makespan.seconds()));
  TimelineView path = std::move(picture).Finish(trace.makespan.seconds());
  if (path.slices.size() <= run_times_cc::kMostSlices) section.views.emplace_back(std::move(path));
  return section;
}

}  // namespace orrery::tools
