#include <algorithm>
#include <array>

#include "transforms/schedules/registry.h"

// A rank holds stage r on the way down the V and stage 2p-1-r on the way up, so that the last stage
// is where the first one is. With F, I and W of one length nobody waits, and all ranks hold 2p.
//
// The rule makes orders for 2p-1 microbatches or more; of fewer, the steps of those that are not
// there are left out.

namespace orrery::transforms {
namespace zbv_cc {
namespace {

// One rank's order, in which each kind of step of each chunk goes through the microbatches in turn.
class ZbvRank {
 public:
  ZbvRank(const PipelineShape& shape, int32_t rank)
      : ranks_(shape.ranks), rank_(rank), microbatches_(shape.microbatches) {}

  std::vector<ScheduleStep> Order() && {
    WarmUp();
    const int32_t last = std::max(2 * ranks_ - 1, microbatches_);
    while (NextOf(StepKind::kForward, kUp) < last) {
      if (NextOf(StepKind::kForward, kDown) < last) Add(StepKind::kForward, kDown);
      AddBackward(kDown);
      Add(StepKind::kForward, kUp);
      AddBackward(kUp);
    }
    CoolDown(last);
    return std::move(order_);
  }

 private:
  static constexpr size_t kDown = 0, kUp = 1;

  void WarmUp() {
    for (int32_t i = 0; i < 2 * (ranks_ - rank_) - 1; ++i) Add(StepKind::kForward, kDown);
    for (int32_t i = 0; i < rank_; ++i) {
      Add(StepKind::kForward, kUp);
      Add(StepKind::kForward, kDown);
    }
    for (int32_t i = 0; i < ranks_ - rank_; ++i) {
      Add(StepKind::kForward, kUp);
      AddBackward(kUp);
    }
  }

  // What others wait for first; the gradients of weights fill the time that is left.
  void CoolDown(int32_t last) {
    for (int32_t i = 0; i < rank_; ++i) {
      Add(StepKind::kInputGradient, kDown);
      Add(StepKind::kInputGradient, kUp);
    }
    for (int32_t i = 0; i < ranks_ - rank_; ++i) {
      Add(StepKind::kInputGradient, kDown);
      Add(StepKind::kWeightGradient, kDown);
    }
    for (const size_t chunk : {kUp, kDown}) {
      while (NextOf(StepKind::kWeightGradient, chunk) < last) {
        Add(StepKind::kWeightGradient, chunk);
      }
    }
  }

  void AddBackward(size_t chunk) {
    Add(StepKind::kInputGradient, chunk);
    Add(StepKind::kWeightGradient, chunk);
  }

  void Add(StepKind kind, size_t chunk) {
    const int32_t microbatch = NextOf(kind, chunk)++;
    if (microbatch >= microbatches_) return;
    order_.push_back({.kind = kind,
                      .stage = chunk == kDown ? rank_ : 2 * ranks_ - 1 - rank_,
                      .microbatch = microbatch});
  }

  int32_t& NextOf(StepKind kind, size_t chunk) {
    return next_[2 * static_cast<size_t>(kind) + chunk];
  }

  int32_t ranks_, rank_, microbatches_;
  std::array<int32_t, 8> next_ = {};
  std::vector<ScheduleStep> order_;
};

RankOrders RuleOrders(const PipelineShape& shape) {
  RankOrders orders;
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    orders.push_back(ZbvRank(shape, rank).Order());
  }
  AssignSlots(orders, StagePlacement::kV, shape);
  return orders;
}

// The rule is for steps that last equally long; where they do not, a search may find a shorter
// order.
RankOrders ZbvOrders(const PipelineShape& shape) {
  RankOrders rule = RuleOrders(shape);
  const StepDurations& last = shape.durations;
  const bool alike = last.forward == last.input_gradient && last.forward == last.weight_gradient;
  if (alike && last.send == 0) return rule;
  RankOrders found = kZbvAutoSchedule.orders(shape);
  const auto makespan = [&](const RankOrders& orders) {
    return TimeOrders(orders, StagePlacement::kV, shape, last).makespan;
  };
  return makespan(found) < makespan(rule) ? found : rule;
}

}  // namespace
}  // namespace zbv_cc

constinit const PipelineSchedule kZbvSchedule = {
    .name = "zbv",
    .summary =
        "Two chunks a rank in a V and backwards in two parts: no bubble where F, I and W last the "
        "same, in the memory of 1F1B.",
    .source = "Qi et al., ICLR 2024, ZB-V; order of torch's ScheduleZBVZeroBubble",
    .placement = StagePlacement::kV,
    .chunks = 2,
    .orders = zbv_cc::ZbvOrders,
    .weighs_durations = true,
    .weight_versions = OneWeightVersion,
};

}  // namespace orrery::transforms
