#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace {

StageOrders GpipeOrders(const PipelineShape& shape) {
  std::vector<ScheduleStep> order;
  for (const StepKind kind : {StepKind::kForward, StepKind::kBackward}) {
    for (int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      order.push_back({.kind = kind, .microbatch = microbatch});
    }
  }
  StageOrders orders(static_cast<size_t>(shape.stages), order);
  AssignSlots(orders);
  return orders;
}

}  // namespace

constinit const PipelineSchedule kGpipeSchedule = {
    .name = "gpipe",
    .summary = "All forwards, then all backwards: every microbatch's activations live at once.",
    .source = "Huang et al., GPipe, NeurIPS 2019; backwards ascend as in torch's ScheduleGPipe",
    .orders = GpipeOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
