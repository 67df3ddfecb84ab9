#include "search/attempts.h"

#include <optional>
#include <utility>
#include <vector>

#include "search/least_memory.h"
#include "support/status.h"
#include "transforms/schedules/orders.h"

namespace orrery::search {
namespace attempts_cc {
namespace {

using transforms::AutoShardReport;
using transforms::ContextAttention;

bool ShardsByCost(const ParallelPlan& plan) {
  return !plan.by_products() && plan.hp * plan.cp * plan.ep > 1;
}

// What travels behind attention, no price tells before all axes are sharded.
std::vector<ContextAttention> FurtherAttentions(const ParallelPlan& plan) {
  const bool open = plan.cp > 1 && plan.context_attention == ContextAttention::kAuto;
  if (!open) return {};
  return {ContextAttention::kAllToAll, ContextAttention::kAllGather, ContextAttention::kRing};
}

// Whether Megatron's pattern is another choice: prices know of no overlap, so that it can be the
// better one. It does no more than others along cp alone.
bool HasPattern(const ParallelPlan& plan) {
  return !plan.by_pattern() && plan.hp * plan.ep > 1 && plan.pins.empty();
}

// Whether Megatron's pattern may split the sequence or not: prices say, which know of no overlap.
bool LeavesSequenceOpen(const ParallelPlan& plan) {
  return !plan.by_products() && plan.hp > 1 &&
         plan.sequence_parallel == transforms::SequenceParallel::kAuto &&
         (plan.by_pattern() || HasPattern(plan));
}

// What the first stage holds at once is for the schedule to say.
int64_t InFlight(const PlanPlayer& player) {
  if (player.plan().pp == 1 || player.ranks().orders.empty()) return 0;
  const int64_t chunks = player.shape().chunks;
  return (transforms::PeakLive(player.ranks().orders.front()) + chunks - 1) / chunks;
}

// Ways to carry out a plan, played one after another. Which they are, neither a limit of memory nor
// what is recomputed has a say in: so that more memory is never worse.
class Portfolio {
 public:
  explicit Portfolio(PlanPlayer& player) : player_(player), in_flight_(InFlight(player)) {}

  absl::StatusOr<Run> Best() && {
    const ParallelPlan& plan = player_.plan();
    const Way first = By(plan.context_attention);
    ORRERY_ASSIGN_OR_RETURN(Run run, player_.Play(first, &facts_));
    Take(first, std::move(run));
    if (!CannotFit(player_.setting(), plan)) ORRERY_RETURN_IF_ERROR(TryOthers(plan));
    best_->all_ways = all_ways_;
    return *std::move(best_);
  }

 private:
  struct Played {
    Way way;
    WayFacts facts;
  };

  absl::Status TryOthers(const ParallelPlan& plan) {
    for (const ContextAttention attention : FurtherAttentions(plan)) {
      ORRERY_RETURN_IF_ERROR(Try(By(attention)));
    }
    if (ShardsByCost(plan)) ORRERY_RETURN_IF_ERROR(TryWithLess());
    Way pattern = By(plan.context_attention);
    pattern.by_cost = false;
    if (HasPattern(plan)) ORRERY_RETURN_IF_ERROR(Try(pattern));
    pattern.sequence_whole = true;
    if (LeavesSequenceOpen(plan)) ORRERY_RETURN_IF_ERROR(Try(pattern));
    return player_.weighs_stages() ? TryCuts() : absl::OkStatus();
  }

  Way By(ContextAttention attention) const {
    return {.attention = attention, .in_flight = in_flight_};
  }

  void Take(const Way& way, Run run) {
    const Played played{way, facts_};
    if (!fastest_.has_value() || facts_.fastest < fastest_->facts.fastest) fastest_ = played;
    if (!leanest_.has_value() || facts_.least_peak < leanest_->facts.least_peak) leanest_ = played;
    if (!best_.has_value() || IsBetter(run.report, best_->report)) best_ = std::move(run);
  }

  // What is infeasible in this way, or known by another, is passed over.
  absl::Status Try(const Way& way) {
    absl::StatusOr<Run> run = player_.Play(way, &facts_);
    if (run.ok()) {
      Take(way, *std::move(run));
      return absl::OkStatus();
    }
    if (absl::IsResourceExhausted(run.status())) {
      all_ways_ = false;
      return absl::OkStatus();
    }
    const bool passes = absl::IsCancelled(run.status()) || AsInfeasible(run.status()).has_value();
    return passes ? absl::OkStatus() : run.status();
  }

  // Shardings that need less memory, of those that no other beats in both: the one that needs the
  // least, and by what memory is worth between that and the cheapest, what lies there.
  absl::Status TryWithLess() {
    constexpr double kDear = 1e6;  // times what the cheapest costs
    const AutoShardReport cheapest = fastest_->facts.report;
    if (cheapest.memory <= 0 || cheapest.seconds <= 0) return absl::OkStatus();
    Way way = By(fastest_->way.attention);
    way.memory_price = kDear * cheapest.seconds / cheapest.memory;
    ORRERY_RETURN_IF_ERROR(Try(way));
    const double saved = cheapest.memory - facts_.report.memory;
    const double lost = facts_.report.seconds - cheapest.seconds;
    if (saved <= 0 || lost <= 0) return absl::OkStatus();
    way.memory_price = lost / saved;
    return Try(way);
  }

  // Stages that need less memory: of the fastest way and of the leanest.
  absl::Status TryCuts() {
    const Played fastest = *fastest_, leanest = *leanest_;
    ORRERY_RETURN_IF_ERROR(TryCutsOf(fastest));
    return leanest.way == fastest.way ? absl::OkStatus() : TryCutsOf(leanest);
  }

  absl::Status TryCutsOf(const Played& of) {
    Way way = of.way;
    way.stage_limit = Bytes(1);
    ORRERY_RETURN_IF_ERROR(Try(way));
    const Bytes least = facts_.least_peak;
    if (least == Bytes(0) || least >= of.facts.peak) return absl::OkStatus();
    way.stage_limit = Bytes(least.count() + (of.facts.peak - least).count() / 2);
    return Try(way);
  }

  PlanPlayer& player_;
  const int64_t in_flight_;
  WayFacts facts_;  // of the last way
  bool all_ways_ = true;
  std::optional<Run> best_;
  std::optional<Played> fastest_, leanest_;
};

}  // namespace
}  // namespace attempts_cc

absl::StatusOr<Run> BestRun(PlanPlayer& player) { return attempts_cc::Portfolio(player).Best(); }

}  // namespace orrery::search
