#include <algorithm>

#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace one_forward_one_backward_cc {
namespace {

std::vector<ScheduleStep> StageOrder(const PipelineShape& shape, int32_t stage) {
  const int32_t warm_up = std::min(shape.ranks - 1 - stage, shape.microbatches);
  std::vector<ScheduleStep> order;
  order.reserve(2 * static_cast<size_t>(shape.microbatches));
  for (int32_t forward = 0; forward < shape.microbatches + warm_up; ++forward) {
    if (forward < shape.microbatches) {
      order.push_back({.kind = StepKind::kForward, .stage = stage, .microbatch = forward});
    }
    if (forward >= warm_up) {
      order.push_back(
          {.kind = StepKind::kBackward, .stage = stage, .microbatch = forward - warm_up});
    }
  }
  return order;
}

}  // namespace
}  // namespace one_forward_one_backward_cc

RankOrders OneForwardOneBackwardOrders(const PipelineShape& shape) {
  RankOrders orders;
  for (int32_t stage = 0; stage < shape.ranks; ++stage) {
    orders.push_back(one_forward_one_backward_cc::StageOrder(shape, stage));
  }
  AssignSlots(orders, StagePlacement::kLoop, shape);
  return orders;
}

constinit const PipelineSchedule kOneForwardOneBackwardSchedule = {
    .name = "1f1b",
    .summary = "One forward, one backward, with a flush: at most p-k microbatches live on stage k.",
    .source = "Narayanan et al., PipeDream-Flush, ICML 2021; as in Megatron-LM and torch",
    .orders = OneForwardOneBackwardOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
