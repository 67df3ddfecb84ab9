#include "simulator/report/bubble_slices.h"

#include <algorithm>

namespace orrery::simulator {
namespace bubble_slices_cc {
namespace {

// What keeps a rank from idling.
struct Interval {
  Time start;
  Time finish;
  TaskId task;
};

// What a rank does when. Compute tasks on other streams than compute (copies to the host) are no
// work here, as in the report.
struct RankWork {
  std::vector<Interval> active;
  bool has_forward = false, has_backward = false;
  Time first_backward, last_forward;  // start, finish
  Time first, last;                   // start of the first kernel, finish of the last
  bool computes = false;

  // Between these it is in its steady state. A rank without backward warms up until it computes at
  // all, and cools down once it does no more.
  Time begin() const { return has_backward ? first_backward : first; }
  Time end() const {
    if (!has_backward) return last;
    return has_forward ? std::max(last_forward, begin()) : begin();
  }
};

void AddKernel(const Interval& interval, Phase phase, RankWork& work) {
  if (!work.computes || interval.start < work.first) work.first = interval.start;
  work.last = std::max(work.last, interval.finish);
  work.computes = true;
  if (phase == Phase::kForward) {
    work.last_forward = std::max(work.last_forward, interval.finish);
    work.has_forward = true;
  } else if (phase == Phase::kBackward) {
    if (!work.has_backward || interval.start < work.first_backward) {
      work.first_backward = interval.start;
    }
    work.has_backward = true;
  }
}

RankWork WorkOf(const Program& program, const Trace& trace, std::span<const RankTask> tasks) {
  RankWork work;
  for (const RankTask& row : tasks) {
    const Interval interval{trace.start_of(row.task), trace.finish_of(row.task), row.task};
    if (interval.start == interval.finish) continue;
    const TaskLabel label = program.label(program.label_of(row.task));
    const bool computes = label.kind == TaskKind::kCompute;
    if (computes && program.stream(row.stream).kind != StreamKind::kCompute) continue;
    work.active.push_back(interval);
    if (computes) AddKernel(interval, label.phase, work);
  }
  std::ranges::stable_sort(work.active, {}, &Interval::start);
  return work;
}

// Cuts the gap at the ends of the steady state.
void AddGap(const RankWork& work, BubbleSlice gap, std::vector<BubbleSlice>& slices) {
  const Time cuts[] = {std::min(work.begin(), gap.finish), std::min(work.end(), gap.finish),
                       gap.finish};
  constexpr absl::string_view kParts[] = {"warm-up", "steady", "cool-down"};
  for (size_t part = 0; part < 3; ++part) {
    if (cuts[part] <= gap.start) continue;
    slices.push_back(
        {gap.start, cuts[part], kParts[part], cuts[part] == gap.finish ? gap.ended_by : TaskId()});
    gap.start = cuts[part];
  }
}

}  // namespace
}  // namespace bubble_slices_cc

std::vector<BubbleSlice> BubblesOf(const Program& program, const Trace& trace,
                                   std::span<const RankTask> tasks) {
  const bubble_slices_cc::RankWork work = bubble_slices_cc::WorkOf(program, trace, tasks);
  std::vector<BubbleSlice> slices;
  Time covered;  // everything before is told
  for (const bubble_slices_cc::Interval& interval : work.active) {
    if (interval.start > covered) {
      AddGap(work, {covered, interval.start, "", interval.task}, slices);
    }
    covered = std::max(covered, interval.finish);
  }
  if (covered < trace.makespan) AddGap(work, {covered, trace.makespan, "", TaskId()}, slices);
  return slices;
}

}  // namespace orrery::simulator
