#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/schedules/registry.h"

// What a step waits for, and with it: when each step runs, and whether an order is one at all.

namespace orrery::transforms {
namespace {

constexpr int32_t kUnset = -1;

// Stage and step; the step's slot is of no account.
struct StageStep {
  int32_t stage = 0;
  ScheduleStep step;
};

// The slot of every step of a pipeline; kUnset where it has not run.
class SlotTable {
 public:
  SlotTable(size_t stages, int32_t microbatches)
      : microbatches_(static_cast<size_t>(microbatches)),
        slots_(2 * stages * microbatches_, kUnset) {}

  int32_t& operator[](const StageStep& at) {
    const size_t row = 2 * static_cast<size_t>(at.stage) + (at.step.kind == StepKind::kBackward);
    return slots_[row * microbatches_ + static_cast<size_t>(at.step.microbatch)];
  }

 private:
  size_t microbatches_;
  std::vector<int32_t> slots_;
};

StageStep Forward(int32_t stage, int32_t microbatch) {
  return {stage, {.kind = StepKind::kForward, .microbatch = microbatch}};
}

StageStep Backward(int32_t stage, int32_t microbatch) {
  return {stage, {.kind = StepKind::kBackward, .microbatch = microbatch}};
}

// What the step waits for; nothing for the forwards of the first stage.
std::optional<StageStep> WaitsFor(const StageStep& at, size_t stages) {
  const int32_t microbatch = at.step.microbatch;
  if (at.step.kind == StepKind::kForward) {
    if (at.stage == 0) return std::nullopt;
    return Forward(at.stage - 1, microbatch);
  }
  if (at.stage + 1 == static_cast<int32_t>(stages)) return Forward(at.stage, microbatch);
  return Backward(at.stage + 1, microbatch);
}

std::string Describe(const StageStep& at) {
  return absl::StrCat(StepName(at.step), " of stage ", at.stage);
}

int32_t CountMicrobatches(const StageOrders& orders) {
  int32_t count = 0;
  for (const auto& order : orders) {
    for (const ScheduleStep& step : order) {
      ORRERY_CHECK(step.microbatch >= 0) << StepName(step);
      count = std::max(count, step.microbatch + 1);
    }
  }
  return count;
}

// Runs the steps of one stage from `next` on, up to the first that must wait; returns that one.
size_t RunUntilBlocked(StageOrders& orders, int32_t stage, size_t next, SlotTable& slots) {
  auto& order = orders[static_cast<size_t>(stage)];
  for (; next < order.size(); ++next) {
    const StageStep at = {stage, order[next]};
    int32_t slot = next == 0 ? 0 : order[next - 1].slot + 1;
    if (const auto need = WaitsFor(at, orders.size()); need.has_value()) {
      if (slots[*need] == kUnset) break;
      slot = std::max(slot, slots[*need] + 1);
    }
    order[next].slot = slots[at] = slot;
  }
  return next;
}

// "B0 of stage 0 waits for B0 of stage 1; …" for every stage that did not come to its end.
std::string DescribeBlocked(const StageOrders& orders, const std::vector<size_t>& next) {
  std::string text;
  for (size_t stage = 0; stage < orders.size(); ++stage) {
    if (next[stage] == orders[stage].size()) continue;
    const StageStep at = {static_cast<int32_t>(stage), orders[stage][next[stage]]};
    absl::StrAppend(&text, text.empty() ? "" : "; ", Describe(at), " waits for ",
                    Describe(*WaitsFor(at, orders.size())));
  }
  return text;
}

absl::Status StageError(int32_t stage, const std::string& trouble) {
  return absl::InvalidArgumentError(absl::StrCat("stage ", stage, ": ", trouble));
}

// Enters the steps of one stage into `slots`: each in range, once, at ascending slots.
absl::Status RecordStage(const StageOrders& orders, int32_t stage, int32_t microbatches,
                         SlotTable& slots) {
  int32_t previous = kUnset;
  for (const ScheduleStep& step : orders[static_cast<size_t>(stage)]) {
    if (step.microbatch < 0 || step.microbatch >= microbatches) {
      return StageError(
          stage, absl::StrCat(StepName(step), " is none of the ", microbatches, " microbatches"));
    }
    int32_t& slot = slots[{stage, step}];
    if (slot != kUnset) return StageError(stage, StepName(step) + " runs twice");
    if (step.slot <= previous) {
      return StageError(
          stage, absl::StrCat(StepName(step), " is in slot ", step.slot,
                              ", which is not after slot ", previous, " of the step before"));
    }
    previous = slot = step.slot;
  }
  return absl::OkStatus();
}

absl::Status CheckRunsAfter(const StageStep& at, const StageStep& need, SlotTable& slots) {
  if (slots[at] > slots[need]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Describe(at), " is in slot ", slots[at],
                                                 ", but waits for ", Describe(need), " in slot ",
                                                 slots[need]));
}

// Both steps of one microbatch on one stage are there, and wait for what they must.
absl::Status CheckMicrobatch(const PipelineShape& shape, int32_t stage, int32_t microbatch,
                             SlotTable& slots) {
  const StageStep forward = Forward(stage, microbatch);
  const StageStep backward = Backward(stage, microbatch);
  ORRERY_RETURN_IF_ERROR(CheckRunsAfter(backward, forward, slots));
  for (const StageStep& at : {forward, backward}) {
    const auto need = WaitsFor(at, static_cast<size_t>(shape.stages));
    if (need.has_value()) ORRERY_RETURN_IF_ERROR(CheckRunsAfter(at, *need, slots));
  }
  return absl::OkStatus();
}

absl::Status CheckComplete(const StageOrders& orders, const PipelineShape& shape,
                           SlotTable& slots) {
  for (int32_t stage = 0; stage < shape.stages; ++stage) {
    ORRERY_RETURN_IF_ERROR(RecordStage(orders, stage, shape.microbatches, slots));
    for (int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      for (const StageStep& at : {Forward(stage, microbatch), Backward(stage, microbatch)}) {
        if (slots[at] == kUnset) return StageError(stage, StepName(at.step) + " never runs");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AssignSlots(StageOrders& orders) {
  SlotTable slots(orders.size(), CountMicrobatches(orders));
  std::vector<size_t> next(orders.size(), 0);
  std::vector<int32_t> awake(orders.size());
  std::iota(awake.rbegin(), awake.rend(), 0);
  // A stage wakes its neighbours only when it got on, so there are at most two visits a step.
  while (!awake.empty()) {
    const int32_t stage = awake.back();
    awake.pop_back();
    size_t& begin = next[static_cast<size_t>(stage)];
    const size_t end = RunUntilBlocked(orders, stage, begin, slots);
    if (std::exchange(begin, end) == end) continue;
    if (stage > 0) awake.push_back(stage - 1);
    if (stage + 1 < static_cast<int32_t>(orders.size())) awake.push_back(stage + 1);
  }
  const std::string blocked = DescribeBlocked(orders, next);
  ORRERY_CHECK(blocked.empty()) << "deadlock: " << blocked;
}

absl::Status VerifyOrders(const StageOrders& orders, const PipelineShape& shape) {
  if (orders.size() != static_cast<size_t>(shape.stages)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are orders of ", orders.size(), " stages; wanted ", shape.stages));
  }
  SlotTable slots(orders.size(), shape.microbatches);
  ORRERY_RETURN_IF_ERROR(CheckComplete(orders, shape, slots));
  for (int32_t stage = 0; stage < shape.stages; ++stage) {
    for (int32_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      ORRERY_RETURN_IF_ERROR(CheckMicrobatch(shape, stage, microbatch, slots));
    }
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
