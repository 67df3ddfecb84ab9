#ifndef ORRERY_TRANSFORMS_STAGES_STAGE_CHOICE_H_
#define ORRERY_TRANSFORMS_STAGES_STAGE_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/units.h"
#include "transforms/schedules/schedule.h"
#include "transforms/sharding/sharding_prices.h"
#include "transforms/stages/placement.h"

// How a training step is divided into pipeline stages: docs/pipeline_stages.md.

namespace orrery::transforms {

/// What decides where stages begin. A layer is what repeats (a transformer block), or where nothing
/// does what lies between two cut points.
enum class StagesBy : uint8_t {
  kFlops,   // equally many matrix products where all are alike; else about equally many flops
  kLayers,  // equally many whole layers, give or take one
  kCost,    // the slowest stage as fast as it can be, of whole layers
  kOps,     // the same, but layers may be cut
  kDistir,  // as kFlops; but layers that are all alike must divide: equally many on each stage
};

class StepTimer;

/// What each rank of a pipeline runs.
struct ScheduledRanks {
  RankOrders orders = {};
  StagePlacement placement = StagePlacement::kLoop;
  PipelineShape shape = {};
};

/// What of the parameters of its stages, their gradients and their optimizer state a rank keeps.
struct StateShares {
  double weights = 1, gradients = 1, optimizer = 1;
};

/// Where stages begin: by a rule, by names, or by counts. So many fields for what rules weigh.
struct StageChoice {
  StagesBy by = StagesBy::kFlops;
  /// RE2. A stage begins at each op that makes a value whose name matches; of neighbouring ops in
  /// whose names it matches the same text, at the first. Overrides `by`.
  std::string split_at = {};
  /// Whole layers of each stage. What comes before the first goes with it, what comes after the
  /// last with that. Overrides `by`.
  std::vector<int64_t> layers_per_stage = {};
  /// Which devices run which ops; then stages are what PlaceChain makes of it. Overrides all else.
  Placement placement = {};

  /// Positions of the chain (ForwardChain), of all stages but the first. Overrides all else.
  std::optional<std::vector<size_t>> positions = {};

  // The rest is of kCost and kOps.

  /// Of ops; null: their flops count, and all sends take no time. Lives longer.
  const ShardingPrices* prices = nullptr;
  /// Seconds of a send from a rank to another, as coordinates along "pp"; none: 0.
  std::function<double(Bytes size, int32_t from, int32_t to)> send_seconds = {};
  /// By which divisions are compared whose slowest ranks are about alike; null: those are all that
  /// counts. Lives longer.
  const ScheduledRanks* schedule = nullptr;
  /// What times it, where somebody has made that already. Lives longer.
  StepTimer* timer = nullptr;
  /// Limits what the fullest rank needs for parameters, gradients, optimizer state and what forward
  /// keeps: 0 to what the division needs that needs least, 1 to what the fastest does, and evenly
  /// between them; none: no limit.
  std::optional<double> memory_share = {};
  StateShares state = {};
  /// Microbatches that each rank has in flight, on average over its stages; empty: one.
  std::vector<double> in_flight = {};
  /// Versions of its weights that each rank keeps; empty: one.
  std::vector<double> weight_versions = {};
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_STAGE_CHOICE_H_
