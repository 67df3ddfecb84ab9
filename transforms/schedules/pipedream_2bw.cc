#include <algorithm>

#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace pipedream_2bw_cc {
namespace {

// Gradients of a batch, or of as many microbatches as are live on the first stage, whichever is
// more: then none of them has seen weights more than one update old.
int32_t MicrobatchesAnUpdate(const PipelineShape& shape) {
  return std::max(shape.ranks, shape.microbatches);
}

int32_t TwoVersions(const PipelineShape& shape, int32_t) { return shape.ranks == 1 ? 1 : 2; }

}  // namespace
}  // namespace pipedream_2bw_cc

constinit const PipelineSchedule kPipedream2bwSchedule = {
    .name = "pipedream-2bw",
    .summary =
        "1F1B without a flush: an update after a batch of p or more microbatches, with gradients "
        "one "
        "update old, and "
        "two weight versions on every stage.",
    .source = "Narayanan et al., PipeDream-2BW, ICML 2021",
    .orders = OneForwardOneBackwardOrders,
    .asynchronous = true,
    .microbatches_an_update = pipedream_2bw_cc::MicrobatchesAnUpdate,
    .one_age = true,
    .weight_versions = pipedream_2bw_cc::TwoVersions,
};

}  // namespace orrery::transforms
