#include "transforms/schedules/registry.h"
#include "transforms/schedules/search_orders.h"

namespace orrery::transforms {
namespace zb_h1_cc {
namespace {

constexpr std::array kStarts = {BlockGaps{}, BlockGaps{.backward = {2, 1}}};

RankOrders ZbH1Orders(const PipelineShape& shape) {
  return SearchOrders(
      shape, {.live_limits = std::vector<int64_t>(static_cast<size_t>(shape.ranks), shape.ranks),
              .starts = kStarts});
}

}  // namespace
}  // namespace zb_h1_cc

constinit const PipelineSchedule kZbH1Schedule = {
    .name = "zb-h1",
    .summary =
        "1F1B with gradients of weights put off to where it waits: a third of its bubble where F, "
        "I "
        "and W last the same, at most p live.",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024",
    .orders = zb_h1_cc::ZbH1Orders,
    .weighs_durations = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
