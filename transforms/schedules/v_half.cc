#include "transforms/schedules/registry.h"
#include "transforms/schedules/search_orders.h"

namespace orrery::transforms {
namespace v_half_cc {
namespace {

// The first has the gaps of the paper's block.
constexpr std::array kStarts = {
    BlockGaps{.forward = {1, 2}, .backward = {2, 1}, .turns = {1, 2, 1}},
    BlockGaps{.backward = {2, 2}},
    BlockGaps{.backward = {3, 2}, .turns = {2, 1, 1}},
    BlockGaps{.backward = {3, 2}},
    BlockGaps{.backward = {2, 2}, .turns = {2, 1, 1}},
    BlockGaps{.forward = {3, 1}, .turns = {1, 1, 2}},
};

RankOrders VHalfOrders(const PipelineShape& shape) {
  return SearchOrders(shape, {.placement = StagePlacement::kV,
                              .live_limits = LimitsOfV(shape, 2 * (int64_t{shape.ranks} / 2 + 1)),
                              .starts = kStarts});
}

}  // namespace
}  // namespace v_half_cc

constinit const PipelineSchedule kVHalfSchedule = {
    .name = "v-half",
    .summary =
        "Two chunks a rank in a V and backwards in two parts: half the memory of 1F1B, less than "
        "half "
        "its bubble where F, I and W last the same.",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024",
    .placement = StagePlacement::kV,
    .chunks = 2,
    .orders = v_half_cc::VHalfOrders,
    .weighs_durations = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
