#ifndef ORRERY_TRANSFORMS_PLAN_SCHEDULE_CHOICE_H_
#define ORRERY_TRANSFORMS_PLAN_SCHEDULE_CHOICE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/schedules/schedule.h"

namespace orrery::transforms {

/// A pipeline schedule that there is.
class ScheduleChoice {
 public:
  ScheduleChoice();  // 1f1b
  /// A literal of the program: CHECKs that there is such a schedule.
  ScheduleChoice(const char* name);  // NOLINT(google-explicit-constructor): reads as its name

  /// The schedule of that name; InvalidArgument lists those that there are.
  static absl::StatusOr<ScheduleChoice> Parse(absl::string_view name);

  const PipelineSchedule& operator*() const { return *schedule_; }
  const PipelineSchedule* operator->() const { return schedule_; }
  std::string name() const { return std::string(schedule_->name); }

  friend bool operator==(const ScheduleChoice&, const ScheduleChoice&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ScheduleChoice& choice) {
    return H::combine(std::move(h), choice.schedule_->name);
  }

 private:
  explicit ScheduleChoice(const PipelineSchedule* schedule) : schedule_(schedule) {}

  const PipelineSchedule* schedule_;  // never null; one of AllSchedules()
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_SCHEDULE_CHOICE_H_
