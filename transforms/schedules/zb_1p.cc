#include "transforms/schedules/registry.h"
#include "transforms/schedules/search_orders.h"

namespace orrery::transforms {
namespace zb_1p_cc {
namespace {

constexpr std::array kStarts = {BlockGaps{}, BlockGaps{.backward = {2, 1}}};

RankOrders Zb1pOrders(const PipelineShape& shape) {
  const int64_t limit = shape.live_limit > 0 ? shape.live_limit : shape.ranks;
  return SearchOrders(shape,
                      {.live_limits = std::vector<int64_t>(static_cast<size_t>(shape.ranks), limit),
                       .starts = kStarts});
}

}  // namespace
}  // namespace zb_1p_cc

constinit const PipelineSchedule kZb1pSchedule = {
    .name = "zb-1p",
    .summary =
        "One stage a rank and backwards in two parts, as short as a search finds under a limit on "
        "live activations: p where none is given.",
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, automatic schedules",
    .orders = zb_1p_cc::Zb1pOrders,
    .weighs_durations = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
