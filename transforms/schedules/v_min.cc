#include <algorithm>

#include "transforms/schedules/registry.h"
#include "transforms/schedules/search_orders.h"

namespace orrery::transforms {
namespace v_min_cc {
namespace {

// The first has the gaps of the paper's block: a microbatch never waits.
constexpr std::array kStarts = {
    BlockGaps{},
    BlockGaps{.turns = {1, 2, 1}},
    BlockGaps{.turns = {1, 1, 2}},
    BlockGaps{.turns = {2, 1, 1}},
};

RankOrders VMinOrders(const PipelineShape& shape) {
  const int64_t ranks = shape.ranks;
  std::vector<int64_t> limits = LimitsOfV(shape, 2 * ((ranks + 1) / 3 + 1));
  // On rank 0 the steps of chunk 1 follow one another: one is live, for three slots of the six. Of
  // chunk 0, from the forward to the end of W, 4p+1.
  if (ranks > 1) limits[0] = std::min(limits[0], (4 * ranks + 1 + 5) / 6 + 1);
  return SearchOrders(shape,
                      {.placement = StagePlacement::kV, .live_limits = limits, .starts = kStarts});
}

}  // namespace
}  // namespace v_min_cc

constinit const PipelineSchedule kVMinSchedule = {
    .name = "v-min",
    .summary =
        "Two chunks a rank in a V and backwards in two parts, microbatches never wait: a third of "
        "the memory of 1F1B.",
    .source = "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024",
    .placement = StagePlacement::kV,
    .chunks = 2,
    .orders = v_min_cc::VMinOrders,
    .weighs_durations = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
