#include "transforms/schedules/registry.h"

// One microbatch goes through all stages and back before the next one starts: least memory, and a
// bubble of (p-1)/p. It is what one gets without a pipeline schedule.

namespace orrery::transforms {
namespace one_at_a_time_cc {
namespace {

RankOrders OneAtATimeOrders(const PipelineShape& shape) {
  RankOrders orders(static_cast<size_t>(shape.ranks));
  for (int32_t stage = 0; stage < shape.ranks; ++stage) {
    for (int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      for (const StepKind kind : {StepKind::kForward, StepKind::kBackward}) {
        orders[static_cast<size_t>(stage)].push_back(
            {.kind = kind, .stage = stage, .microbatch = microbatch});
      }
    }
  }
  AssignSlots(orders, StagePlacement::kLoop, shape);
  return orders;
}

}  // namespace
}  // namespace one_at_a_time_cc

constinit const PipelineSchedule kOneAtATimeSchedule = {
    .name = "one-at-a-time",
    .summary = "Each microbatch forward and backward before the next: one live at a time.",
    .source = "model parallelism without a pipeline, as in Huang et al., GPipe, figure 2b",
    .orders = one_at_a_time_cc::OneAtATimeOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
