#include "transforms/plan/schedule_choice.h"

#include "support/check.h"
#include "support/status.h"

namespace orrery::transforms {
namespace schedule_choice_cc {
namespace {

const PipelineSchedule* Find(absl::string_view name) {
  const absl::StatusOr<const PipelineSchedule*> found = FindSchedule(name);
  ORRERY_CHECK(found.ok()) << found.status().message();
  return *found;
}

}  // namespace
}  // namespace schedule_choice_cc

ScheduleChoice::ScheduleChoice() {
  static const PipelineSchedule* const kDefault = schedule_choice_cc::Find("1f1b");
  schedule_ = kDefault;
}

ScheduleChoice::ScheduleChoice(const char* name) : schedule_(schedule_choice_cc::Find(name)) {}

absl::StatusOr<ScheduleChoice> ScheduleChoice::Parse(absl::string_view name) {
  ORRERY_ASSIGN_OR_RETURN(const PipelineSchedule* schedule, FindSchedule(name));
  return ScheduleChoice(schedule);
}

}  // namespace orrery::transforms
