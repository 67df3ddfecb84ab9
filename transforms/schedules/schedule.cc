#include "transforms/schedules/schedule.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "transforms/schedules/registry.h"

namespace orrery::transforms {
namespace {

constexpr std::array kSchedules = {
#define ORRERY_SCHEDULE(Name, file) &k##Name##Schedule,
#include "transforms/schedules/schedules.def"
#undef ORRERY_SCHEDULE
};

size_t WidestStep(const StageOrders& orders) {
  size_t width = 1;
  for (const auto& order : orders) {
    for (const ScheduleStep& step : order) width = std::max(width, StepName(step).size());
  }
  return width;
}

}  // namespace

std::span<const PipelineSchedule* const> AllSchedules() { return kSchedules; }

absl::StatusOr<const PipelineSchedule*> FindSchedule(absl::string_view name) {
  for (const PipelineSchedule* schedule : kSchedules) {
    if (schedule->name == name) return schedule;
  }
  const auto append_name = [](std::string* out, const PipelineSchedule* schedule) {
    absl::StrAppend(out, schedule->name);
  };
  return absl::InvalidArgumentError(absl::StrCat("schedule '", name, "' is unknown; wanted one of ",
                                                 absl::StrJoin(kSchedules, ", ", append_name)));
}

std::string StepName(const ScheduleStep& step) {
  return absl::StrCat(step.kind == StepKind::kForward ? "F" : "B", step.microbatch);
}

int32_t OneWeightVersion(const PipelineShape&, int32_t) { return 1; }

int32_t UnitMakespan(const StageOrders& orders) {
  int32_t makespan = 0;
  for (const auto& order : orders) {
    if (!order.empty()) makespan = std::max(makespan, order.back().slot + 1);
  }
  return makespan;
}

int32_t PeakLiveMicrobatches(std::span<const ScheduleStep> order) {
  int32_t live = 0;
  int32_t peak = 0;
  for (const ScheduleStep& step : order) {
    live += step.kind == StepKind::kForward ? 1 : -1;
    peak = std::max(peak, live);
  }
  return peak;
}

std::string DrawTimeline(const StageOrders& orders) {
  const size_t width = WidestStep(orders);
  const size_t stage_width = absl::StrCat(orders.size() - 1).size();
  std::string text;
  for (size_t stage = 0; stage < orders.size(); ++stage) {
    std::vector<std::string> cells(static_cast<size_t>(UnitMakespan(orders)), ".");
    for (const ScheduleStep& step : orders[stage]) {
      cells[static_cast<size_t>(step.slot)] = StepName(step);
    }
    std::string line = absl::StrFormat("stage %-*d |", static_cast<int>(stage_width), stage);
    for (const std::string& cell : cells) {
      absl::StrAppendFormat(&line, " %-*s", static_cast<int>(width), cell);
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

std::string PrintOrders(const StageOrders& orders) {
  std::string text;
  for (size_t stage = 0; stage < orders.size(); ++stage) {
    const auto append_step = [stage](std::string* out, const ScheduleStep& step) {
      absl::StrAppend(out, stage, StepName(step));
    };
    absl::StrAppend(&text, absl::StrJoin(orders[stage], ",", append_step), "\n");
  }
  return text;
}

}  // namespace orrery::transforms
