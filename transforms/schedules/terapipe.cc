#include "transforms/schedules/registry.h"

// Its microbatches are slices of the sequence of each sample. In a causal model a slice attends to
// those before it: its forward needs theirs, its backward those of the slices after it.

namespace orrery::transforms {
namespace terapipe_cc {
namespace {

RankOrders TerapipeOrders(const PipelineShape& shape) {
  RankOrders orders(static_cast<size_t>(shape.ranks));
  for (int32_t stage = 0; stage < shape.ranks; ++stage) {
    auto& order = orders[static_cast<size_t>(stage)];
    for (int32_t slice = 0; slice < shape.microbatches; ++slice) {
      order.push_back({.kind = StepKind::kForward, .stage = stage, .microbatch = slice});
    }
    for (int32_t slice = shape.microbatches - 1; slice >= 0; --slice) {
      order.push_back({.kind = StepKind::kBackward, .stage = stage, .microbatch = slice});
    }
  }
  AssignSlots(orders, StagePlacement::kLoop, shape);
  return orders;
}

}  // namespace
}  // namespace terapipe_cc

constinit const PipelineSchedule kTerapipeSchedule = {
    .name = "terapipe",
    .summary =
        "Microbatches are slices of the sequence of causal models: forwards in their order, then "
        "backwards in the opposite one.",
    .source = "Li et al., TeraPipe, ICML 2021",
    .orders = terapipe_cc::TerapipeOrders,
    .slices_sequence = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
