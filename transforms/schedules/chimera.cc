#include <algorithm>

#include "transforms/schedules/registry.h"

// Microbatches of the two directions alternate. When all steps last one unit, microbatch i of a
// direction, of the p/2 that it takes in a group, runs its forward on stage s in slot 2i+s and its
// backward in slot 2p-1+2i-s. As p is even, the directions take slots of different parity on each
// rank. The 2p slots that a rank is busy with in one group fall on all remainders modulo 2p: so
// groups follow each other every 2p slots, and the forwards of one fill the bubble at the end of
// the one before.

namespace orrery::transforms {
namespace chimera_cc {
namespace {

absl::Status CheckChimera(const PipelineShape& shape) {
  // A pipeline without any has no sums of gradients to exchange.
  if (shape.ranks % 2 == 0 && shape.microbatches >= 2) return absl::OkStatus();
  return NoSuchOrders(shape, "an even number of ranks, and a microbatch for each direction");
}

RankOrders ChimeraOrders(const PipelineShape& shape) {
  const int32_t ranks = shape.ranks;
  const int32_t of_first = (shape.microbatches + 1) / 2;
  RankOrders orders(static_cast<size_t>(ranks));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    auto& order = orders[static_cast<size_t>(rank)];
    for (int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      const bool down = microbatch < of_first;
      const int32_t in_direction = down ? microbatch : microbatch - of_first;
      // Each stage of the second direction is as far from its first as the rank is from the last.
      const int32_t position = down ? rank : ranks - 1 - rank;
      const int32_t enters = 2 * ranks * (in_direction / (ranks / 2)) +  //
                             2 * (in_direction % (ranks / 2));
      ScheduleStep step = {.stage = down ? position : ranks + position, .microbatch = microbatch};
      step.slot = enters + position;
      order.push_back(step);
      step.kind = StepKind::kBackward;
      step.slot = enters + 2 * ranks - 1 - position;
      order.push_back(step);
    }
    std::sort(order.begin(), order.end(),
              [](const ScheduleStep& a, const ScheduleStep& b) { return a.slot < b.slot; });
  }
  AssignSlots(orders, StagePlacement::kTwoWay, shape);
  return orders;
}

}  // namespace
}  // namespace chimera_cc

constinit const PipelineSchedule kChimeraSchedule = {
    .name = "chimera",
    .summary =
        "Two pipelines in opposite directions over the same ranks: about half the bubble of 1F1B, "
        "for two copies of the weights.",
    .source = "Li & Hoefler, Chimera, SC 2021; groups of p microbatches concatenated",
    .placement = StagePlacement::kTwoWay,
    .chunks = 2,
    .orders = chimera_cc::ChimeraOrders,
    .check = chimera_cc::CheckChimera,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
