#include "transforms/schedules/registry.h"
#include "transforms/schedules/search_orders.h"

namespace orrery::transforms {
namespace zb_h2_cc {
namespace {

constexpr std::array kStarts = {BlockGaps{}, BlockGaps{.backward = {2, 1}}};

RankOrders ZbH2Orders(const PipelineShape& shape) {
  return SearchOrders(shape, {.live_limits = std::vector<int64_t>(static_cast<size_t>(shape.ranks),
                                                                  2 * int64_t{shape.ranks}),
                              .starts = kStarts});
}

}  // namespace
}  // namespace zb_h2_cc

constinit const PipelineSchedule kZbH2Schedule = {
    .name = "zb-h2",
    .summary =
        "As zb-h1 with more forwards before the first backward: no bubble between a rank's first "
        "step and its last, at most 2p live.",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024",
    .orders = zb_h2_cc::ZbH2Orders,
    .weighs_durations = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
