#include "transforms/schedules/registry.h"
#include "transforms/schedules/search_orders.h"

namespace orrery::transforms {
namespace zbv_auto_cc {
namespace {

constexpr std::array kStarts = {
    BlockGaps{.backward = {1, 4}},
    BlockGaps{.forward = {4, 2}, .backward = {2, 4}, .turns = {3, 1, 3}},
    BlockGaps{.forward = {3, 2}},
    BlockGaps{.backward = {2, 1}, .turns = {2, 1, 1}},
    BlockGaps{.backward = {4, 3}, .turns = {2, 1, 1}},
    BlockGaps{.forward = {3, 1}, .backward = {4, 4}, .turns = {1, 1, 2}},
};

RankOrders ZbvAutoOrders(const PipelineShape& shape) {
  return SearchOrders(shape, {.placement = StagePlacement::kV,
                              .live_limits = std::vector<int64_t>(static_cast<size_t>(shape.ranks),
                                                                  2 * int64_t{shape.ranks}),
                              .starts = kStarts});
}

}  // namespace
}  // namespace zbv_auto_cc

constinit const PipelineSchedule kZbvAutoSchedule = {
    .name = "zbv-auto",
    .summary =
        "The V of zbv from a search: shorter where there are fewer than 2p-1 microbatches, or F, I "
        "and W last unequally.",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, ZB-V of its own program",
    .placement = StagePlacement::kV,
    .chunks = 2,
    .orders = zbv_auto_cc::ZbvAutoOrders,
    .weighs_durations = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
