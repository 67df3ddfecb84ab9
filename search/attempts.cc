#include "search/attempts.h"

#include <utility>
#include <vector>

#include "support/status.h"
#include "transforms/schedules/orders.h"

namespace orrery::search {
namespace attempts_cc {
namespace {

using transforms::ContextAttention;

// Whether `a` is the better run: one that fits, then the faster one.
bool IsBetter(const Run& a, const Run& b) {
  if (a.report.fits != b.report.fits) return a.report.fits;
  return a.report.step_time < b.report.step_time;
}

// Takes the other run where it is better.
absl::Status Improve(absl::StatusOr<Run> other, Run& best) {
  if (!other.ok()) {
    if (absl::IsResourceExhausted(other.status())) {
      best.all_ways = false;
      return absl::OkStatus();
    }
    return AsInfeasible(other.status()).has_value() ? absl::OkStatus() : other.status();
  }
  const bool all_ways = best.all_ways && other->all_ways;
  if (IsBetter(*other, best)) best = *std::move(other);
  best.all_ways = all_ways;
  return absl::OkStatus();
}

// What travels behind attention, no price tells before all axes are sharded.
std::vector<ContextAttention> FurtherAttentions(const ParallelPlan& plan) {
  const bool open =
      plan.shards_by_cost() && plan.cp > 1 && plan.context_attention == ContextAttention::kAuto;
  if (!open) return {};
  return {ContextAttention::kAllToAll, ContextAttention::kAllGather, ContextAttention::kRing};
}

// Whether Megatron's pattern is another choice: prices know of no overlap, so that it can be the
// better one.
bool HasPattern(const ParallelPlan& plan) {
  return plan.shards_by_cost() && plan.hp > 1 && plan.cp * plan.ep == 1 && plan.pins.empty() &&
         !plan.sequence_parallel;
}

// What the first stage holds at once is for the schedule to say.
int64_t InFlight(const PlanPlayer& player) {
  const int64_t chunks = player.shape().chunks;
  return (transforms::PeakLive(player.ranks().orders.front()) + chunks - 1) / chunks;
}

// The fastest first. What the choice of a sharding counts is not what is needed in the end: where
// that does not fit, again with less, and less. What is in flight counts from then on, for further
// ways of attention, too.
absl::StatusOr<Run> WithinMemory(PlanPlayer& player, Way& way) {
  constexpr int kTired = 2;
  const ParallelPlan& plan = player.plan();
  way.limit = Bytes(0);
  ORRERY_ASSIGN_OR_RETURN(Run best, player.Play(way));
  const bool sharded = plan.shards_by_cost() && plan.hp * plan.cp * plan.ep > 1;
  const bool chosen = sharded || player.weighs_stages();
  const int most_tries = sharded ? 5 : 2;
  auto limit = static_cast<double>(player.limit().count());
  if (chosen && limit > 0 && !best.report.fits && plan.pp > 1) way.in_flight = InFlight(player);
  Bytes peak;
  int in_vain = 0;  // tries
  for (int i = 0; i < most_tries && chosen && limit > 0 && !best.report.fits; ++i) {
    way.limit = Bytes(static_cast<int64_t>(limit));
    const absl::StatusOr<Run> run = player.Play(way);
    if (absl::IsResourceExhausted(run.status())) best.all_ways = false;
    if (!run.ok()) break;
    if (run->report.peak_memory == peak && ++in_vain == kTired) break;
    peak = run->report.peak_memory;
    limit *= 0.95 * static_cast<double>(player.limit().count()) / static_cast<double>(peak.count());
    const bool less = peak < best.report.peak_memory;
    if (run->report.fits || less) best = *run;
  }
  return best;
}

}  // namespace
}  // namespace attempts_cc

absl::StatusOr<Run> BestRun(PlanPlayer& player) {
  const ParallelPlan& plan = player.plan();
  Way way{.attention = plan.context_attention};
  ORRERY_ASSIGN_OR_RETURN(Run best, attempts_cc::WithinMemory(player, way));
  for (const transforms::ContextAttention attention : attempts_cc::FurtherAttentions(plan)) {
    way.attention = attention;
    ORRERY_RETURN_IF_ERROR(attempts_cc::Improve(attempts_cc::WithinMemory(player, way), best));
  }
  if (!attempts_cc::HasPattern(plan)) return best;
  const Way pattern{.by_cost = false, .in_flight = way.in_flight};
  ORRERY_RETURN_IF_ERROR(attempts_cc::Improve(player.Play(pattern), best));
  return best;
}

}  // namespace orrery::search
