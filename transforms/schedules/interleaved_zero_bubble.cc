#include "transforms/schedules/registry.h"
#include "transforms/schedules/rounds.h"

namespace orrery::transforms {
namespace interleaved_zero_bubble_cc {
namespace {

RankOrders InterleavedZeroBubbleOrders(const PipelineShape& shape) {
  const std::vector<ChunkStep> forwards = ForwardsInRounds(shape);
  const std::vector<ChunkStep> backwards = BackwardsInRounds(shape);
  RankOrders orders(static_cast<size_t>(shape.ranks));
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    const auto warm_up = static_cast<size_t>(WarmUpInRounds(shape, rank, 1));
    // A rank warms up with as many forwards less as it puts off gradients of weights: so all ranks
    // hold the same.
    const size_t weights_from = warm_up + static_cast<size_t>(rank);
    const auto add = [&](StepKind kind, const ChunkStep& step) {
      orders[static_cast<size_t>(rank)].push_back(
          {.kind = kind, .stage = step.chunk * shape.ranks + rank, .microbatch = step.microbatch});
    };
    for (size_t i = 0; i < forwards.size() + weights_from; ++i) {
      if (i < forwards.size()) add(StepKind::kForward, forwards[i]);
      if (i >= warm_up && i - warm_up < backwards.size()) {
        add(StepKind::kInputGradient, backwards[i - warm_up]);
      }
      if (i >= weights_from) add(StepKind::kWeightGradient, backwards[i - weights_from]);
    }
  }
  AssignSlots(orders, StagePlacement::kLoop, shape);
  return orders;
}

}  // namespace
}  // namespace interleaved_zero_bubble_cc

constinit const PipelineSchedule kInterleavedZeroBubbleSchedule = {
    .name = "interleaved-zero-bubble",
    .summary =
        "Interleaved, with backwards in two parts: rank k puts off the gradients of weights by k "
        "steps, where others wait for it.",
    .source = "Qi et al., ICLR 2024, ZB-1P; order of torch's ScheduleInterleavedZeroBubble",
    .chunks = 0,
    .orders = interleaved_zero_bubble_cc::InterleavedZeroBubbleOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
