#ifndef ORRERY_TRANSFORMS_STAGES_STAGE_COSTS_H_
#define ORRERY_TRANSFORMS_STAGES_STAGE_COSTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/stages/stage_choice.h"
#include "transforms/stages/stage_plan.h"
#include "transforms/stages/stage_units.h"

namespace orrery::transforms {

/// The step with each unit on a stage of its own. Units that cannot be parted, as what one makes is
/// the gradient of a parameter of the other, are joined.
absl::StatusOr<StagePlan> PlaceUnits(const ir::Function& function,
                                     const IdTable<ir::OpId, StepPhase>& phase,
                                     const ForwardChain& chain, bool split_backward,
                                     std::vector<StageUnit>& units);

/// What each unit of a step costs a rank, were it a stage.
struct UnitCosts {
  // Seconds; all but the update of one microbatch.
  std::vector<double> forward, input_gradient, update;
  std::vector<double> weight_gradient;  // where backward is split
  std::vector<double> state_bytes;      // parameters, gradients, optimizer state: what is kept
  std::vector<double> weight_bytes;     // of these, parameters
  std::vector<double> kept_bytes;       // that its forward leaves for backward, a microbatch
  std::vector<double> boundary_bytes;   // that come from before it, a microbatch; the first: 0

  /// Of one microbatch, with its share of the update of `microbatches`.
  std::vector<double> Seconds(int64_t microbatches) const;
};

/// `plan`: of the step with one stage for each of `units`. Without prices an op takes a second for
/// each of its flops.
UnitCosts CostsOf(const ir::Function& function, const ForwardChain& chain,
                  std::span<const StageUnit> units, const StagePlan& plan,
                  const ShardingPrices* prices, const StateShares& kept = {});

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_STAGE_COSTS_H_
