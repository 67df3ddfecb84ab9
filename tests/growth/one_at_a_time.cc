#include "transforms/schedules/registry.h"

// One microbatch goes through all stages and back before the next one starts: least memory, and a
// bubble of (p-1)/p. It is what one gets without a pipeline schedule.

namespace orrery::transforms {
namespace {

StageOrders OneAtATimeOrders(const PipelineShape& shape) {
  std::vector<ScheduleStep> order;
  for (int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
    order.push_back({.kind = StepKind::kForward, .microbatch = microbatch});
    order.push_back({.kind = StepKind::kBackward, .microbatch = microbatch});
  }
  StageOrders orders(static_cast<size_t>(shape.stages), order);
  AssignSlots(orders);
  return orders;
}

}  // namespace

constinit const PipelineSchedule kOneAtATimeSchedule = {
    .name = "one-at-a-time",
    .summary = "Each microbatch forward and backward before the next: one live at a time.",
    .source = "model parallelism without a pipeline, as in Huang et al., GPipe, figure 2b",
    .orders = OneAtATimeOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
