#include <optional>

#include "transforms/schedules/registry.h"

// DistIR's greedy scheduler. In each timestep each stage runs the other kind than it ran last, if
// a microbatch is ready for it, else the same kind, else nothing; what it makes ready becomes
// visible in the next timestep. There is no cap: stage k runs up to 2(p-k)-1 forwards before its
// first backward, where 1F1B runs p-k.
//
// DistIR keeps lists of ready steps and takes the first of a kind. As stage 0 begins with
// microbatches 0..m-1 in order, each list only ever grows and shrinks in that order: counters do.

namespace orrery::transforms {
namespace distir_cc {
namespace {

struct StageState {
  int32_t ready_forwards = 0;
  int32_t ready_backwards = 0;
  int32_t next_forward = 0;
  int32_t next_backward = 0;
  StepKind last = StepKind::kBackward;
};

// Chooses the step of stage `number` of this timestep and takes it from what is ready.
std::optional<ScheduleStep> TakeStep(StageState& stage, int32_t number, int32_t slot) {
  if (stage.ready_forwards == 0 && stage.ready_backwards == 0) return std::nullopt;
  const bool forward =
      stage.last == StepKind::kBackward ? stage.ready_forwards > 0 : stage.ready_backwards == 0;
  stage.last = forward ? StepKind::kForward : StepKind::kBackward;
  --(forward ? stage.ready_forwards : stage.ready_backwards);
  const int32_t microbatch = forward ? stage.next_forward++ : stage.next_backward++;
  return ScheduleStep{.kind = stage.last, .stage = number, .microbatch = microbatch, .slot = slot};
}

// Makes ready what waits for the step that `stage` has just run.
void Publish(std::vector<StageState>& states, size_t stage, StepKind kind) {
  if (kind == StepKind::kBackward) {
    if (stage > 0) ++states[stage - 1].ready_backwards;
  } else if (stage + 1 < states.size()) {
    ++states[stage + 1].ready_forwards;
  } else {
    ++states[stage].ready_backwards;
  }
}

RankOrders DistirOrders(const PipelineShape& shape) {
  const auto stages = static_cast<size_t>(shape.ranks);
  RankOrders orders(stages);
  for (auto& order : orders) order.reserve(2 * static_cast<size_t>(shape.microbatches));
  std::vector<StageState> states(stages);
  states[0].ready_forwards = shape.microbatches;
  std::vector<std::optional<ScheduleStep>> now(stages);
  for (int32_t slot = 0; states[0].next_backward < shape.microbatches; ++slot) {
    for (size_t stage = 0; stage < stages; ++stage)
      now[stage] = TakeStep(states[stage], static_cast<int32_t>(stage), slot);
    for (size_t stage = 0; stage < stages; ++stage) {
      if (!now[stage].has_value()) continue;
      orders[stage].push_back(*now[stage]);
      Publish(states, stage, now[stage]->kind);
    }
  }
  return orders;
}

}  // namespace
}  // namespace distir_cc

constinit const PipelineSchedule kDistirSchedule = {
    .name = "distir",
    .summary = "Greedy alternation of forward and backward, first ready first, without a cap.",
    .source = "DistIR's PipeDreamScheduler (microsoft/dist-ir 7cfa1b0; Santhanam et al. 2021)",
    .orders = distir_cc::DistirOrders,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
