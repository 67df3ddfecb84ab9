#ifndef ORRERY_LOWERING_INSTANTIATE_ORDERS_H_
#define ORRERY_LOWERING_INSTANTIATE_ORDERS_H_

#include <vector>

#include "lowering/network/geometry.h"
#include "lowering/placement/instantiator.h"
#include "lowering/placement/lowering_input.h"
#include "lowering/placement/stage.h"
#include "simulator/program/program.h"
#include "transforms/schedules/schedule.h"

namespace orrery::lowering {

/// Stages in the orders of their ranks.
struct OrderedStages {
  const std::vector<Stage>& stages;
  const Repetitions& repetitions;  // of the microbatches that are run
  const Geometry& geometry;        // of the stages
  const transforms::RankOrders& orders;
  std::vector<LoweredStep>* lowered = nullptr;  // as in LoweringInput
};

/// Adds the templates of all steps of the orders to `program`, slot by slot, sends behind the
/// compute of their slot, and of synchronous schedules the updates. `instantiator` is of the same
/// stages and the same program, and has not been used.
void InstantiateOrders(const OrderedStages& of, Instantiator& instantiator,
                       simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_INSTANTIATE_ORDERS_H_
