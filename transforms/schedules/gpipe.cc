#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace gpipe_cc {
namespace {

RankOrders GpipeOrders(const PipelineShape& shape) {
  RankOrders orders(static_cast<size_t>(shape.ranks));
  for (int32_t stage = 0; stage < shape.ranks; ++stage) {
    for (const StepKind kind : {StepKind::kForward, StepKind::kBackward}) {
      for (int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
        orders[static_cast<size_t>(stage)].push_back(
            {.kind = kind, .stage = stage, .microbatch = microbatch});
      }
    }
  }
  AssignSlots(orders, StagePlacement::kLoop, shape);
  return orders;
}

}  // namespace
}  // namespace gpipe_cc

constinit const PipelineSchedule kGpipeSchedule = {
    .name = "gpipe",
    .summary = "All forwards, then all backwards: every microbatch's activations live at once.",
    .source = "Huang et al., GPipe, NeurIPS 2019; backwards ascend as in torch's ScheduleGPipe",
    .orders = gpipe_cc::GpipeOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
