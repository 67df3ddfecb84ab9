#include "transforms/schedules/registry.h"
#include "transforms/schedules/search_orders.h"

namespace orrery::transforms {
namespace one_forward_one_backward_v_cc {
namespace {

constexpr std::array kStarts = {
    BlockGaps{.backward = {2, 2}, .turns = {1, 1, 2}},
    // Steps fit together tighter where p is two more than a multiple of three.
    BlockGaps{.backward = {2, 2}, .turns = {1, 1, 2}, .more_at_first = 1, .more_near_last = 3},
    BlockGaps{.backward = {2, 2}, .turns = {2, 1, 2}},
    BlockGaps{.backward = {3, 2}, .turns = {1, 1, 2}},
    BlockGaps{.forward = {3, 1}, .backward = {2, 2}, .turns = {1, 1, 2}},
};

RankOrders OneForwardOneBackwardVOrders(const PipelineShape& shape) {
  return SearchOrders(shape,
                      {.placement = StagePlacement::kV,
                       .splits_backward = false,
                       .live_limits = LimitsOfV(shape, 2 * (2 * int64_t{shape.ranks} / 3 + 1)),
                       .starts = kStarts});
}

}  // namespace
}  // namespace one_forward_one_backward_v_cc

constinit const PipelineSchedule kOneForwardOneBackwardVSchedule = {
    .name = "1f1b-v",
    .summary =
        "Two chunks a rank in a V, backwards whole: two thirds of the memory of 1F1B, no more "
        "bubble.",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024",
    .placement = StagePlacement::kV,
    .chunks = 2,
    .orders = one_forward_one_backward_v_cc::OneForwardOneBackwardVOrders,
    .weighs_durations = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
