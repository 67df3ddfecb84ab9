#include "transforms/schedules/testing/slots.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/step_player.h"
#include "transforms/schedules/text.h"

namespace orrery::transforms {
namespace slots_cc {
namespace {

absl::Status CheckSlotsAscend(size_t rank, const std::vector<ScheduleStep>& order) {
  int32_t before = -1;
  for (const ScheduleStep& step : order) {
    if (step.slot <= before) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, ": ", StepName(step), " is in slot ", step.slot,
                       ", which is not after slot ", before, " of the step before"));
    }
    before = step.slot;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace slots_cc

int32_t UnitMakespan(const RankOrders& orders) {
  int32_t makespan = 0;
  for (const auto& order : orders) {
    if (!order.empty()) makespan = std::max(makespan, order.back().slot + 1);
  }
  return makespan;
}

absl::Status VerifyOrders(const RankOrders& orders, StagePlacement placement,
                          const PipelineShape& shape) {
  ORRERY_RETURN_IF_ERROR(CheckOrders(orders, placement, shape));
  StepTable<int32_t> slots(shape, -1);
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    ORRERY_RETURN_IF_ERROR(slots_cc::CheckSlotsAscend(rank, orders[rank]));
    for (const ScheduleStep& step : orders[rank]) slots[step] = step.slot;
  }
  const StepNeeds needs(placement, shape);
  for (const auto& order : orders) {
    for (size_t i = 0; i < order.size(); ++i) {
      const ScheduleStep& step = order[i];
      // The second of two that run at once starts with the first.
      const bool second = i > 0 && order[i - 1].with_next;
      const int32_t start = second ? order[i - 1].slot : step.slot;
      for (const ScheduleStep& need : needs.Of(step)) {
        if (slots[need] < start) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(StepName(step), " is in slot ", start, ", but waits for ",
                         StepName(AsOrdered(orders, need)), " in slot ", slots[need]));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
