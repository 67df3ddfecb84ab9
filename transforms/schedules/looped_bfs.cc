#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace looped_bfs_cc {
namespace {

RankOrders LoopedBfsOrders(const PipelineShape& shape) {
  RankOrders orders(static_cast<size_t>(shape.ranks));
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    auto& order = orders[static_cast<size_t>(rank)];
    for (int32_t stage = rank; stage < shape.stages(); stage += shape.ranks) {
      for (int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
        order.push_back({.kind = StepKind::kForward, .stage = stage, .microbatch = microbatch});
      }
    }
    for (size_t i = order.size(); i-- > 0;) {
      order.push_back({.kind = StepKind::kBackward,
                       .stage = order[i].stage,
                       .microbatch = order[i].microbatch});
    }
  }
  AssignSlots(orders, StagePlacement::kLoop, shape);
  return orders;
}

}  // namespace
}  // namespace looped_bfs_cc

constinit const PipelineSchedule kLoopedBfsSchedule = {
    .name = "looped-bfs",
    .summary =
        "Breadth first: all microbatches through one chunk, then through the next; back likewise. "
        "Each chunk's weights are gathered once.",
    .source =
        "Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023; order of torch's "
        "ScheduleLoopedBFS",
    .chunks = 0,
    .orders = looped_bfs_cc::LoopedBfsOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
