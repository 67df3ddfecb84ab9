#include "transforms/schedules/order_judge.h"

#include <algorithm>

namespace orrery::transforms {

OrderJudge::OrderJudge(const BlockPipeline& pipeline, const StepDurations& durations)
    : pipeline_(pipeline),
      durations_(durations),
      all_last_the_same_(durations.forward == durations.input_gradient &&
                         durations.forward == durations.weight_gradient && durations.send == 0),
      forward_(pipeline.stages() * pipeline.microbatches),
      backward_(forward_.size()) {}

size_t OrderJudge::IndexOf(size_t stage, const PlayedStep& step) const {
  return stage * pipeline_.microbatches + step.microbatch;
}

// When what the step needs from another stage is there; what it needs from its own is by then.
int64_t OrderJudge::Ready(const PlayedStep& step, int64_t send) const {
  const bool is_forward = step.kind == StepKind::kForward;
  if (step.kind == StepKind::kWeightGradient) return 0;
  if (step.stage == (is_forward ? 0 : pipeline_.stages() - 1)) return 0;
  const size_t from = is_forward ? step.stage - 1 : step.stage + 1;
  const int64_t finish = (is_forward ? forward_ : backward_)[IndexOf(from, step)];
  return finish + (pipeline_.RankOf(from) == step.rank ? 0 : send);
}

// The makespan; the ranks' numbers are left in `ranks_`.
int64_t OrderJudge::Play(const std::vector<PlayedStep>& steps, const StepDurations& durations) {
  ranks_.assign(pipeline_.ranks, {});
  int64_t makespan = 0;
  for (const PlayedStep& step : steps) {
    RankPlay& rank = ranks_[step.rank];
    const int64_t start = std::max(rank.free, Ready(step, durations.send));
    const int64_t length = durations.Of(step.kind);
    if (rank.start < 0) rank.start = start;
    rank.free = start + length;
    rank.busy += length;
    makespan = std::max(makespan, rank.free);
    if (step.kind == StepKind::kForward) {
      forward_[IndexOf(step.stage, step)] = rank.free;
      rank.most_live = std::max(rank.most_live, ++rank.live);
      continue;
    }
    if (step.kind != StepKind::kWeightGradient) backward_[IndexOf(step.stage, step)] = rank.free;
    if (step.kind != StepKind::kInputGradient) --rank.live;
  }
  return makespan;
}

OrderScore OrderJudge::Score(const std::vector<PlayedStep>& steps, const OrderScore& best) {
  OrderScore score = {.makespan = Play(steps, durations_)};
  if (score.makespan > best.makespan) return score;
  for (const RankPlay& rank : ranks_) {
    score.idle_inside += rank.free - rank.start - rank.busy;
    score.live += rank.most_live;
  }
  score.has_gaps = score.idle_inside > 0;
  if (!all_last_the_same_) return score;
  score.transformer_makespan = Play(steps, kTransformerDurations);
  if (score.makespan == best.makespan && score.transformer_makespan > best.transformer_makespan) {
    return score;
  }
  for (const StepDurations& durations : kOtherDurations) {
    score.other_makespans += Play(steps, durations);
  }
  return score;
}

bool OrderJudge::IsShortest(const OrderScore& score) const {
  if (score.makespan > LowerBound(durations_)) return false;
  return !all_last_the_same_ || score.transformer_makespan <= LowerBound(kTransformerDurations);
}

// What a rank cannot do before the first backward comes to it, for want of memory, and what comes
// before its first forward, it does not get back. And the first backward of stage 0 comes after a
// whole way there and back; all the other backwards of that stage are still to come.
int64_t OrderJudge::LowerBound(const StepDurations& durations) const {
  const int64_t backward =
      durations.Of(pipeline_.splits_backward ? StepKind::kInputGradient : StepKind::kBackward);
  const int64_t after = pipeline_.splits_backward ? durations.weight_gradient : 0;
  const auto microbatches = static_cast<int64_t>(pipeline_.microbatches);
  const auto stages = static_cast<int64_t>(pipeline_.stages());
  const int64_t work = static_cast<int64_t>(pipeline_.chunks) * microbatches *
                       (durations.forward + backward + after);
  int64_t bound =
      stages * durations.forward + (stages - 1) * backward + microbatches * (backward + after);
  for (size_t rank = 0; rank < pipeline_.ranks; ++rank) {
    const size_t top = pipeline_.StageOf(rank, pipeline_.chunks - 1);
    const int64_t first_backward =
        stages * durations.forward + (stages - 1 - static_cast<int64_t>(top)) * backward;
    bound = std::max({bound, static_cast<int64_t>(rank) * durations.forward + work,
                      first_backward - pipeline_.live_limits[rank] * durations.forward + work});
  }
  return std::max(bound, (stages - 1) * durations.forward +
                             microbatches * (durations.forward + backward) +
                             (stages - 1) * backward + after);
}

}  // namespace orrery::transforms
