#include <algorithm>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/step_player.h"
#include "transforms/schedules/text.h"

// Whether orders are orders at all.

namespace orrery::transforms {
namespace verify_cc {
namespace {

absl::Status RankError(size_t rank, const std::string& trouble) {
  return absl::InvalidArgumentError(absl::StrCat("rank ", rank, ": ", trouble));
}

// How often each step runs: I and B counted apart, so that a backward in parts and whole is seen.
struct Counts {
  int32_t forward = 0;
  int32_t backward = 0;
  int32_t input_gradient = 0;
  int32_t weight_gradient = 0;

  int32_t& Of(StepKind kind) {
    switch (kind) {
      case StepKind::kForward:
        return forward;
      case StepKind::kBackward:
        return backward;
      case StepKind::kInputGradient:
        return input_gradient;
      case StepKind::kWeightGradient:
        break;
    }
    return weight_gradient;
  }
};

class Completeness {
 public:
  Completeness(StagePlacement placement, const PipelineShape& shape)
      : placement_(placement),
        shape_(shape),
        counts_(static_cast<size_t>(shape.stages()) * static_cast<size_t>(shape.microbatches)) {}

  absl::Status Record(size_t rank, const ScheduleStep& step) {
    ORRERY_RETURN_IF_ERROR(CheckPosition(rank, step));
    Counts& counts = CountsOf(step.stage, step.microbatch);
    if (++counts.Of(step.kind) > 1) return RankError(rank, StepName(step) + " runs twice");
    if (counts.backward > 0 && counts.input_gradient + counts.weight_gradient > 0) {
      return RankError(rank, absl::StrCat(StepName(step),
                                          " doubles what another step does: a "
                                          "backward runs as B, or as I and W"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckNoneIsMissing() {
    const int32_t depth = shape_.stages() / Pipelines(placement_);
    for (int32_t stage = 0; stage < shape_.stages(); ++stage) {
      for (int32_t microbatch = 0; microbatch < shape_.microbatches; ++microbatch) {
        if (PipelineOf(placement_, shape_, microbatch) != stage / depth) continue;
        ORRERY_RETURN_IF_ERROR(CheckRuns(stage, microbatch));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckPosition(size_t rank, const ScheduleStep& step) const {
    const std::string name = StepName(step);
    if (step.stage < 0 || step.stage >= shape_.stages()) {
      return RankError(rank, absl::StrCat(name, " is of none of the ", shape_.stages(), " stages"));
    }
    const int32_t holder = RankOf(placement_, shape_, step.stage);
    if (holder != static_cast<int32_t>(rank)) {
      return RankError(rank, absl::StrCat(name, " is of a stage that rank ", holder, " holds"));
    }
    if (step.microbatch < 0 || step.microbatch >= shape_.microbatches) {
      return RankError(
          rank, absl::StrCat(name, " is of none of the ", shape_.microbatches, " microbatches"));
    }
    const int32_t depth = shape_.stages() / Pipelines(placement_);
    if (PipelineOf(placement_, shape_, step.microbatch) != step.stage / depth) {
      return RankError(rank, absl::StrCat(name, ": microbatch ", step.microbatch,
                                          " takes the pipeline in the other direction"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckRuns(int32_t stage, int32_t microbatch) {
    Counts& counts = CountsOf(stage, microbatch);
    const auto missing = [&](StepKind kind) {
      return RankError(
          static_cast<size_t>(RankOf(placement_, shape_, stage)),
          StepName({.kind = kind, .stage = stage, .microbatch = microbatch}) + " never runs");
    };
    if (counts.forward == 0) return missing(StepKind::kForward);
    if (counts.backward > 0) return absl::OkStatus();
    if (counts.input_gradient + counts.weight_gradient == 0) return missing(StepKind::kBackward);
    if (counts.input_gradient == 0) return missing(StepKind::kInputGradient);
    if (counts.weight_gradient == 0) return missing(StepKind::kWeightGradient);
    return absl::OkStatus();
  }

  Counts& CountsOf(int32_t stage, int32_t microbatch) {
    return counts_[static_cast<size_t>(stage) * static_cast<size_t>(shape_.microbatches) +
                   static_cast<size_t>(microbatch)];
  }

  StagePlacement placement_;
  PipelineShape shape_;
  std::vector<Counts> counts_;
};

}  // namespace
}  // namespace verify_cc

absl::Status CheckOrders(const RankOrders& orders, StagePlacement placement,
                         const PipelineShape& shape) {
  if (orders.size() != static_cast<size_t>(shape.ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are orders of ", orders.size(), " ranks; wanted ", shape.ranks));
  }
  verify_cc::Completeness completeness(placement, shape);
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    for (const ScheduleStep& step : orders[rank]) {
      ORRERY_RETURN_IF_ERROR(completeness.Record(rank, step));
    }
    if (!orders[rank].empty() && orders[rank].back().with_next) {
      return verify_cc::RankError(rank, StepName(orders[rank].back()) +
                                            " runs at once with a step after it, "
                                            "but is the last");
    }
  }
  ORRERY_RETURN_IF_ERROR(completeness.CheckNoneIsMissing());
  const std::string deadlock =
      StepPlayer(orders, placement, shape, {.pairs_wait = true}).Deadlock();
  if (deadlock.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("deadlock: " + deadlock);
}

}  // namespace orrery::transforms
