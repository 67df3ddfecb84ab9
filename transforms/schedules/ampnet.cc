#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "transforms/schedules/registry.h"

// Whatever has arrived runs as soon as its rank is free: of several, backwards first, and the
// microbatch that entered first. New microbatches enter while fewer are under way than the limit
// says: that bounds memory, and how stale weights are.

namespace orrery::transforms {
namespace ampnet_cc {
namespace {

class AmpnetPlayer {
 public:
  explicit AmpnetPlayer(const PipelineShape& shape)
      : shape_(shape),
        limit_(shape.live_limit > 0 ? shape.live_limit : 2 * int64_t{shape.ranks}),
        ranks_(static_cast<size_t>(shape.ranks)),
        orders_(static_cast<size_t>(shape.ranks)) {}

  RankOrders Play() && {
    Wake(0, 0);
    while (!wakes_.empty()) {
      const auto [now, rank] = wakes_.top();
      wakes_.pop();
      Rank& state = ranks_[static_cast<size_t>(rank)];
      if (state.free_at <= now) RunNext(now, rank);
    }
    return std::move(orders_);
  }

 private:
  // Microbatches of one kind arrive in order, so that a queue of times is all there is to know.
  struct Rank {
    std::queue<int64_t> forwards, backwards;  // when the next of them are there
    int32_t next_forward = 0, next_backward = 0;
    int64_t free_at = 0;
  };

  static bool HasArrived(const std::queue<int64_t>& times, int64_t now) {
    return !times.empty() && times.front() <= now;
  }

  bool HasForward(int32_t rank, int64_t now) const {
    const Rank& state = ranks_[static_cast<size_t>(rank)];
    if (rank > 0) return HasArrived(state.forwards, now);
    return state.next_forward < shape_.microbatches &&
           state.next_forward - state.next_backward < limit_;
  }

  void RunNext(int64_t now, int32_t rank) {
    Rank& state = ranks_[static_cast<size_t>(rank)];
    if (HasArrived(state.backwards, now)) {
      state.backwards.pop();
      Run(now, rank, {.kind = StepKind::kBackward, .microbatch = state.next_backward++});
    } else if (HasForward(rank, now)) {
      if (rank > 0) state.forwards.pop();
      Run(now, rank, {.kind = StepKind::kForward, .microbatch = state.next_forward++});
    }
  }

  void Run(int64_t now, int32_t rank, ScheduleStep step) {
    step.stage = rank;
    orders_[static_cast<size_t>(rank)].push_back(step);
    const int64_t finish = now + shape_.durations.Of(step.kind);
    ranks_[static_cast<size_t>(rank)].free_at = finish;
    const bool forward = step.kind == StepKind::kForward;
    const int32_t to = forward ? std::min(rank + 1, shape_.ranks - 1) : rank - 1;
    if (to >= 0) {
      Rank& state = ranks_[static_cast<size_t>(to)];
      const int64_t there = finish + (to == rank ? 0 : shape_.durations.send);
      (forward && to != rank ? state.forwards : state.backwards).push(there);
      Wake(there, to);
    }
    Wake(finish, rank);
  }

  void Wake(int64_t when, int32_t rank) { wakes_.emplace(when, rank); }

  const PipelineShape shape_;
  const int64_t limit_;
  std::vector<Rank> ranks_;
  RankOrders orders_;
  using WakeUp = std::tuple<int64_t, int32_t>;
  std::priority_queue<WakeUp, std::vector<WakeUp>, std::greater<>> wakes_;
};

RankOrders AmpnetOrders(const PipelineShape& shape) {
  RankOrders orders = AmpnetPlayer(shape).Play();
  AssignSlots(orders, StagePlacement::kLoop, shape);
  return orders;
}

}  // namespace
}  // namespace ampnet_cc

constinit const PipelineSchedule kAmpnetSchedule = {
    .name = "ampnet",
    .summary =
        "Whatever has arrived runs at once, backwards first; an update after each backward, on "
        "weights that are stale by then.",
    .source = "Gaunt et al., AMPNet, 2017; at most 2p microbatches under way unless said",
    .orders = ampnet_cc::AmpnetOrders,
    .weighs_durations = true,
    .asynchronous = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
