#include "simulator/report/bubble.h"

#include <algorithm>
#include <vector>

#include "simulator/report/bubble_slices.h"
#include "simulator/report/rank_tasks.h"
#include "support/check.h"

namespace orrery::simulator {
namespace bubble_cc {
namespace {

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
  const RankTasks tasks(program);
  IdTable<RankClassId, IdleEnds> ends(program.rank_count());
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    IdleEnds& of_rank = ends[RankClassId(i)];
    for (const BubbleSlice& slice : BubblesOf(program, trace, tasks.of(RankClassId(i)))) {
      if (slice.part == "warm-up") of_rank.before += slice.finish - slice.start;
      if (slice.part == "cool-down") of_rank.after += slice.finish - slice.start;
    }
  }
  return ends;
}

IdTable<RankClassId, Bubble> SplitBubbles(const Report& report,
                                          const IdTable<RankClassId, IdleEnds>& ends) {
  ORRERY_CHECK(ends.empty() || ends.size() == report.ranks.size())
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
    if (!ends.empty()) {
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
