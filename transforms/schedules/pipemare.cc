#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace pipemare_cc {
namespace {

int32_t OncePerBatch(const PipelineShape& shape) { return shape.microbatches; }

// No version is kept for a backward. Where forward and backward of a microbatch meet other weights,
// the second is the running average of changes, by which backward corrects for that (technique T2).
int32_t WeightsAndTheirChange(const PipelineShape& shape, int32_t stage) {
  return stage + 1 < shape.ranks ? 2 : 1;
}

}  // namespace
}  // namespace pipemare_cc

constinit const PipelineSchedule kPipemareSchedule = {
    .name = "pipemare",
    .summary =
        "1F1B without a flush: an update after a batch, on each stage with gradients of weights "
        "as old as its way to the loss is long, and no version kept but an average of changes.",
    .source = "Yang et al., PipeMare: Asynchronous Pipeline Parallel DNN Training, MLSys 2021",
    .orders = OneForwardOneBackwardOrders,
    .asynchronous = true,
    .microbatches_an_update = pipemare_cc::OncePerBatch,
    .weight_versions = pipemare_cc::WeightsAndTheirChange,
};

}  // namespace orrery::transforms
