#include "transforms/schedules/dual_pipe_steps.h"
#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace dualpipe_v_cc {
namespace {

absl::Status CheckDualPipeV(const PipelineShape& shape) {
  if (shape.microbatches >= 2 * int64_t{shape.ranks}) return absl::OkStatus();
  return NoSuchOrders(shape, "at least twice as many microbatches as ranks");
}

RankOrders DualPipeVOrders(const PipelineShape& shape) {
  RankOrders orders;
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    orders.push_back(
        DualPipeSteps({.rank = rank, .ranks = shape.ranks, .microbatches = shape.microbatches},
                      {rank, 2 * shape.ranks - 1 - rank}));
  }
  AssignSlots(orders, StagePlacement::kV, shape);
  return orders;
}

}  // namespace
}  // namespace dualpipe_v_cc

constinit const PipelineSchedule kDualPipeVSchedule = {
    .name = "dualpipe-v",
    .summary =
        "Two chunks a rank in a V; forwards and backwards run at once, so that each hides the "
        "other's communication.",
    .source =
        "deepseek-ai/DualPipe, DualPipeV (after Sea AI Lab's cut in half); order of torch's "
        "ScheduleDualPipeV",
    .placement = StagePlacement::kV,
    .chunks = 2,
    .orders = dualpipe_v_cc::DualPipeVOrders,
    .check = dualpipe_v_cc::CheckDualPipeV,
    .runs_pairs = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
