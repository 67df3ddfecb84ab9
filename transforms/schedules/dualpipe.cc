#include <algorithm>

#include "transforms/schedules/dual_pipe_steps.h"
#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace dualpipe_cc {
namespace {

absl::Status CheckDualPipe(const PipelineShape& shape) {
  const bool even = shape.ranks % 2 == 0 && shape.microbatches % 2 == 0;
  if (even && shape.microbatches >= 2 * int64_t{shape.ranks}) return absl::OkStatus();
  return NoSuchOrders(shape,
                      "even numbers of ranks and microbatches, at least two microbatches a rank");
}

// The ranks of one half are those of DualPipeV; the other half mirrors them. What comes early to a
// rank enters at the end of its half.
RankOrders DualPipeOrders(const PipelineShape& shape) {
  const int32_t half = shape.microbatches / 2;
  RankOrders orders;
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    const int32_t mirrored = shape.ranks - 1 - rank;
    const int32_t down = rank;
    const int32_t up = shape.ranks + mirrored;
    const bool first_half = rank < mirrored;
    auto& order = orders.emplace_back(DualPipeSteps(
        {.rank = std::min(rank, mirrored), .ranks = shape.ranks / 2, .microbatches = half},
        {first_half ? down : up,  //
         first_half ? up : down}));
    for (ScheduleStep& step : order) step.microbatch += step.stage == up ? half : 0;
  }
  AssignSlots(orders, StagePlacement::kTwoWay, shape);
  return orders;
}

}  // namespace
}  // namespace dualpipe_cc

constinit const PipelineSchedule kDualPipeSchedule = {
    .name = "dualpipe",
    .summary =
        "A pipeline fed from both ends, with two copies of the weights; forwards of one direction "
        "run at once with backwards of the other.",
    .source = "DeepSeek-V3 technical report 2024; order of deepseek-ai/DualPipe",
    .placement = StagePlacement::kTwoWay,
    .chunks = 2,
    .orders = dualpipe_cc::DualPipeOrders,
    .check = dualpipe_cc::CheckDualPipe,
    .runs_pairs = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
