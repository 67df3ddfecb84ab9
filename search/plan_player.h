#ifndef ORRERY_SEARCH_PLAN_PLAYER_H_
#define ORRERY_SEARCH_PLAN_PLAYER_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "lowering/network/sharding_prices.h"
#include "search/run.h"
#include "search/setting.h"
#include "transforms/plan/plan_context.h"
#include "transforms/schedules/schedule.h"

namespace orrery::search {

/// One way to carry out a plan, where it leaves something open.
struct Way {
  bool by_cost = true;  // else by Megatron's pattern
  transforms::ContextAttention attention = transforms::ContextAttention::kAuto;
  Bytes limit = Bytes(0);  // of memory, that choices keep to; 0: none
  int64_t in_flight = 0;   // as in transforms::PlanContext
};

/// How much plays may do, counted alike on every machine: tasks simulated, ops parallelized, and
/// nodes of sharding problems solved, weighed by about how long they take. A unit is a task's time.
struct PlayBudget {
  int64_t left = std::numeric_limits<int64_t>::max();  // below 1: nothing more is played
};

/// Plays one plan in one way or another. It has so many fields for what all of its ways share:
/// that is found out once.
class PlanPlayer {
 public:
  /// Both live longer.
  PlanPlayer(const Setting& setting, const ParallelPlan& plan) : setting_(setting), plan_(plan) {}
  /// Takes what it does out of `budget`, which lives longer, too.
  PlanPlayer(const Setting& setting, const ParallelPlan& plan, PlayBudget& budget)
      : setting_(setting), plan_(plan), budget_(&budget) {}

  /// To come first. InvalidArgument for a plan that makes no sense on this cluster, Infeasible for
  /// one whose pipeline there are no orders for.
  absl::Status Prepare();

  /// Parallelizes, lowers and plays the plan; without the figures of the model. Infeasible where it
  /// cannot be parallelized so, ResourceExhausted where nothing is left of the budget.
  absl::StatusOr<Run> Play(const Way& way);

  /// All that it did until now, as PlayBudget counts it.
  int64_t work() const { return work_; }
  const Setting& setting() const { return setting_; }
  const ParallelPlan& plan() const { return plan_; }
  const transforms::PipelineShape& shape() const { return shape_; }
  const transforms::ScheduledRanks& ranks() const { return ranks_; }
  /// Bytes that a device has for a step; 0: no limit.
  Bytes limit() const { return limit_; }
  /// The shardings that were chosen for it by cost.
  const transforms::ShardingMemo& shardings() const { return shardings_; }
  /// Whether stages begin where it costs least.
  bool weighs_stages() const;

 private:
  absl::StatusOr<Run> PlayOnce(const Way& way);
  void Count(const absl::StatusOr<Run>& run, int64_t solved);
  absl::Status SplitBackward();
  transforms::StageContext StagesOf(const Way& way) const;
  const ir::Function& step() const {
    return split_step_.has_value() ? *split_step_ : setting_.step;
  }

  const Setting& setting_;
  const ParallelPlan& plan_;
  transforms::PipelineSchedule schedule_;
  transforms::PipelineShape shape_;
  transforms::ScheduledRanks ranks_;
  bool splits_ = false;                     // backwards
  std::optional<ir::Function> split_step_;  // then
  ir::Mesh mesh_;
  std::optional<lowering::ClusterShardingPrices> prices_;  // of what is chosen by cost
  Bytes limit_;
  transforms::ShardingMemo shardings_;
  PlayBudget* const budget_ = nullptr;
  int64_t work_ = 0;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_PLAN_PLAYER_H_
