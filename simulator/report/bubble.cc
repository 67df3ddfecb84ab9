#include "simulator/report/bubble.h"

#include <algorithm>
#include <vector>

#include "support/check.h"

namespace orrery::simulator {
namespace bubble_cc {
namespace {

struct Interval {
  Time start;
  Time finish;
};

// When a rank is in its steady state; and all that it does.
struct RankWork {
  std::vector<Interval> active;
  bool has_forward = false, has_backward = false;
  Time first_backward, last_forward;  // start, finish
  Time first, last;                   // start of the first kernel, finish of the last
  bool computes = false;
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

// Compute tasks on other streams than compute (copies to the host) are no work here, as in the
// report.
IdTable<RankClassId, RankWork> WorkOf(const Program& program, const Trace& trace) {
  IdTable<RankClassId, RankWork> ranks(program.rank_count());
  for (int32_t i = 0; i < program.task_count(); ++i) {
    const TaskId task(i);
    const TaskLabel label = program.label(program.label_of(task));
    const bool computes = label.kind == TaskKind::kCompute;
    const Interval interval{trace.start_of(task), trace.finish_of(task)};
    if (interval.start == interval.finish) continue;
    for (const StreamId id : program.streams_of(task)) {
      const Stream& stream = program.stream(id);
      if (computes && stream.kind != StreamKind::kCompute) continue;
      RankWork& work = ranks[stream.rank];
      work.active.push_back(interval);
      if (computes) AddKernel(interval, label.phase, work);
    }
  }
  return ranks;
}

// How much of the time before `until` no interval covers; they ascend by their starts.
Duration IdleBefore(Time until, const std::vector<Interval>& active) {
  Duration idle;
  Time covered;  // everything before is counted
  for (const Interval& interval : active) {
    if (interval.start >= until) break;
    if (interval.start > covered) idle += interval.start - covered;
    covered = std::max(covered, interval.finish);
  }
  if (covered < until) idle += until - covered;
  return idle;
}

IdleEnds EndsOf(RankWork& work, Time makespan) {
  std::sort(work.active.begin(), work.active.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  const Time begin = work.has_backward ? work.first_backward : work.first;
  const Time end = !work.has_backward ? work.last
                   : work.has_forward ? std::max(work.last_forward, begin)
                                      : begin;
  return {.before = IdleBefore(begin, work.active),
          .after = IdleBefore(makespan, work.active) - IdleBefore(end, work.active)};
}

// Takes up to `wanted` out of `part`, and returns what is still wanted.
Duration TakeOut(Duration wanted, Duration& part) {
  const Duration taken = std::min(wanted, part);
  part -= taken;
  return wanted - taken;
}

}  // namespace
}  // namespace bubble_cc

IdTable<RankClassId, IdleEnds> IdleEndsOf(const Program& program, const Trace& trace) {
  ORRERY_CHECK(trace.finish.size() == static_cast<size_t>(program.task_count()))
      << "the trace is of another program";
  IdTable<RankClassId, bubble_cc::RankWork> work = bubble_cc::WorkOf(program, trace);
  IdTable<RankClassId, IdleEnds> ends;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    ends.push_back(bubble_cc::EndsOf(work[RankClassId(i)], trace.makespan));
  }
  return ends;
}

IdTable<RankClassId, Bubble> SplitBubbles(const Report& report,
                                          const IdTable<RankClassId, IdleEnds>& ends) {
  ORRERY_CHECK(ends.size() == 0 || ends.size() == report.ranks.size())
      << "the report is of another program";
  const auto computing = [&](const RankReport& rank) {
    return report.step_time - rank.idle - rank.exposed_communication;
  };
  Duration longest;
  for (const RankReport& rank : report.ranks.rows()) longest = std::max(longest, computing(rank));
  IdTable<RankClassId, Bubble> bubbles;
  for (int32_t i = 0; i < report.ranks.size(); ++i) {
    const RankReport& rank = report.ranks[RankClassId(i)];
    Bubble bubble;
    if (ends.size() > 0) {
      bubble.warm_up = std::min(ends[RankClassId(i)].before, rank.idle);
      bubble.cool_down = std::min(ends[RankClassId(i)].after, rank.idle - bubble.warm_up);
    }
    bubble.steady = rank.idle - bubble.warm_up - bubble.cool_down;
    const Duration wanted = longest - computing(rank);
    const Duration left = bubble_cc::TakeOut(
        bubble_cc::TakeOut(bubble_cc::TakeOut(wanted, bubble.steady), bubble.cool_down),
        bubble.warm_up);
    bubble.imbalance = wanted - left;
    bubbles.push_back(bubble);
  }
  return bubbles;
}

MeanBubble MeanOf(const Program& program, const IdTable<RankClassId, Bubble>& bubbles) {
  // In picoseconds, which can leave 64 bits; exact, so that folding changes no digit.
  using Wide = __int128;
  Wide warm_up = 0, steady = 0, cool_down = 0, imbalance = 0, ranks = 0;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const auto members = static_cast<Wide>(program.rank(RankClassId(i)).members.size());
    const Bubble& bubble = bubbles[RankClassId(i)];
    ranks += members;
    warm_up += bubble.warm_up.picoseconds() * members;
    steady += bubble.steady.picoseconds() * members;
    cool_down += bubble.cool_down.picoseconds() * members;
    imbalance += bubble.imbalance.picoseconds() * members;
  }
  if (ranks == 0) return {};
  const auto mean_s = [&](Wide sum) {
    return 1e-12 * (static_cast<double>(sum) / static_cast<double>(ranks));
  };
  return {.warm_up_s = mean_s(warm_up),
          .steady_s = mean_s(steady),
          .cool_down_s = mean_s(cool_down),
          .imbalance_s = mean_s(imbalance)};
}

}  // namespace orrery::simulator
