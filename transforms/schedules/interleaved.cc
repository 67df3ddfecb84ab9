#include "transforms/schedules/registry.h"
#include "transforms/schedules/rounds.h"

namespace orrery::transforms {
namespace interleaved_cc {
namespace {

RankOrders InterleavedOrders(const PipelineShape& shape) {
  const std::vector<ChunkStep> forwards = ForwardsInRounds(shape);
  const std::vector<ChunkStep> backwards = BackwardsInRounds(shape);
  // With one chunk there is nothing to interleave: 1F1B.
  const int32_t steps_a_rank = shape.chunks == 1 ? 1 : 2;
  RankOrders orders(static_cast<size_t>(shape.ranks));
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    const auto warm_up = static_cast<size_t>(WarmUpInRounds(shape, rank, steps_a_rank));
    const auto add = [&](StepKind kind, const ChunkStep& step) {
      orders[static_cast<size_t>(rank)].push_back(
          {.kind = kind, .stage = step.chunk * shape.ranks + rank, .microbatch = step.microbatch});
    };
    for (size_t i = 0; i < forwards.size() + warm_up; ++i) {
      if (i < forwards.size()) add(StepKind::kForward, forwards[i]);
      if (i >= warm_up) add(StepKind::kBackward, backwards[i - warm_up]);
    }
  }
  AssignSlots(orders, StagePlacement::kLoop, shape);
  return orders;
}

}  // namespace
}  // namespace interleaved_cc

constinit const PipelineSchedule kInterleavedSchedule = {
    .name = "interleaved",
    .summary =
        "1F1B over several chunks a rank: v chunks make its bubble v times smaller, for v times "
        "the sends and more activations.",
    .source = "Narayanan et al., SC 2021; order of Megatron-LM and torch's ScheduleInterleaved1F1B",
    .chunks = 0,
    .orders = interleaved_cc::InterleavedOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
