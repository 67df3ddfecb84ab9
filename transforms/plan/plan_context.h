#ifndef ORRERY_TRANSFORMS_PLAN_PLAN_CONTEXT_H_
#define ORRERY_TRANSFORMS_PLAN_PLAN_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/parts/part_store.h"
#include "support/units.h"
#include "transforms/schedules/schedule.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/sharding_memo.h"
#include "transforms/sharding/sharding_prices.h"
#include "transforms/stages/pipeline.h"
#include "transforms/stages/stage_choice.h"

// What parallelizing a step wants to know beside the plan, and what follows from the plan and a
// cluster: prices, limits, and what the schedule has in flight.

namespace orrery::transforms {

/// What a division into stages is weighed by.
struct StageContext {
  /// Of ops; null: their flops count, and all sends take no time. Lives longer.
  const ShardingPrices* prices = nullptr;
  /// Seconds of a send from a rank to another, as coordinates along "pp"; none: 0.
  std::function<double(Bytes size, int32_t from, int32_t to)> send_seconds = {};
  /// By which divisions are compared whose slowest ranks are about alike; null: those are all that
  /// counts. Lives longer.
  const ScheduledRanks* schedule = nullptr;
  /// What times it, where somebody has made that already. Lives longer.
  StepTimer* timer = nullptr;
  std::optional<double> memory_share = {};   // as in StageChoice
  std::vector<double> in_flight = {};        // as in StageChoice
  std::vector<double> weight_versions = {};  // as in StageChoice
  /// Asked of each way to cut the step, by the positions at which stages begin, as CutsToTry has
  /// them: those that are not wanted are left out, and with none left the work ends (Cancelled).
  /// None: all are wanted.
  std::function<bool(const std::vector<size_t>& begins)> wants = {};
};

/// Which of the shardings of a plan is wanted, where they are chosen by cost.
struct ShardingAlternative {
  /// As in AutoShardOptions.
  double memory_price = 0;
  double link_price = 1;
  /// Whether what is gathered of the sequence is kept in parts, and gathered again; none: as
  /// SequenceParallel of the plan says.
  std::optional<bool> gathers = std::nullopt;
  /// Told of the choice; false ends the work there (Cancelled). None: all are wanted.
  std::function<bool(const AutoShardReport& report)> wants = {};
  /// What was chosen for the same step and prices; null: nothing is remembered. Lives longer.
  ShardingMemo* memo = nullptr;
};

/// Where parts of the work are kept for other plans (support/parts/part_store.h).
struct SharedParts {
  /// Null: nothing is shared. Lives longer.
  PartStore* store = nullptr;
  /// Names the step and all that the context has which does not follow from the plan: prices and
  /// sends are of one cluster by one cost model, so that under one name those of equal meshes
  /// (their axes, sizes and strides) and equal ParallelPlan::algorithm are equal, and those between
  /// ranks of one stage do not depend on how many stages there are; and orders of the schedule are
  /// those of the plan.
  std::string root = {};
};

/// What follows from a plan, and what an experiment sets beside it: stages of work read one or two
/// each of so many fields.
struct PlanContext {
  /// By which shardings are chosen, and what Megatron's pattern leaves open; null: by the pattern
  /// as Shard has it, which knows dp and hp only.
  const ShardingPrices* prices = nullptr;
  /// Whether shardings are by Megatron's pattern although the plan leaves them to cost.
  bool by_pattern = false;
  /// Bytes of a rank that the choice of shardings keeps to; 0: no limit.
  Bytes memory_limit = Bytes(0);
  /// Microbatches that the schedule has in flight on the first stage; 0: one a stage.
  int64_t in_flight = 0;
  ShardingAlternative alternative = {};

  int32_t chunks = 1;  // stages that a rank holds
  StagePlacement placement = StagePlacement::kLoop;
  /// Whether the schedule parts backwards into gradients of inputs and of weights.
  bool split_backward = false;
  /// Whether weights are updated after each microbatch, as in asynchronous schedules.
  bool updates_each_microbatch = false;
  StageContext stages = {};
  /// Whether a compiler makes one kernel of element-wise ops: KeepRule::fuses.
  bool fuses_pointwise = false;
  /// Whether checkpoints run whole layers again: KeepRule::whole.
  bool recomputes_whole = false;
  /// As in PartitionOptions.
  bool scatters_sends = false;

  /// Where microbatches are slices of the sequence of each sample (transforms/slices): as many as
  /// the plan has of them, one after the other. Empty: they are parts of the batch.
  std::vector<SliceRange> slices = {};
  /// The slice that shardings, stages and recomputation are decided on, where `slices` are to be
  /// measured only, and need not follow one another. No rows: one of average length in the middle.
  SliceRange decided_on = {};

  /// Why samples of the step cannot be told apart, where that is known of the file that it comes
  /// from: for the error of microbatches that cannot be made. Empty: not known.
  std::string batch_lost = {};

  /// The device of each rank, by its number in the cluster; empty: rank r is on device r.
  std::vector<int32_t> devices = {};

  SharedParts parts = {};
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_PLAN_CONTEXT_H_
