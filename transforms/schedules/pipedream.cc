#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace pipedream_cc {
namespace {

// A microbatch must meet in its backward the weights of its forward; of the p-k microbatches live
// on stage k, each may have seen another version.
int32_t StashedVersions(const PipelineShape& shape, int32_t stage) { return shape.ranks - stage; }

}  // namespace
}  // namespace pipedream_cc

constinit const PipelineSchedule kPipedreamSchedule = {
    .name = "pipedream",
    .summary =
        "1F1B without a flush: an update after each backward, p-k weight versions on stage "
        "k.",
    .source = "Narayanan et al., PipeDream, SOSP 2019",
    .orders = OneForwardOneBackwardOrders,
    .asynchronous = true,
    .weight_versions = pipedream_cc::StashedVersions,
};

}  // namespace orrery::transforms
