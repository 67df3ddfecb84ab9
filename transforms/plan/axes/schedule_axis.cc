#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace schedule_axis_cc {
namespace {

std::string Print(const ParallelPlan& plan) { return plan.schedule.name(); }

std::vector<absl::string_view> Names() {
  std::vector<absl::string_view> names;
  for (const PipelineSchedule* schedule : AllSchedules()) names.push_back(schedule->name);
  return names;
}

bool FromFile(const ParallelPlan& plan) { return !plan.schedule_file.empty(); }

// Where the numbers of microbatches are left open, schedules that cut sequences have others.
std::vector<ParallelPlan> Choices(const SpaceQuestion& question, const ParallelPlan& plan,
                                  std::span<const ParallelPlan> given) {
  std::vector<ParallelPlan> plans = given.empty() ? std::vector<ParallelPlan>{plan}
                                                  : WithGiven<&ParallelPlan::schedule>(plan, given);
  if (!question.open_microbatches) return plans;
  std::erase_if(plans, [&](const ParallelPlan& one) {
    return one.schedule->slices_sequence != question.cuts_sequences;
  });
  return plans;
}

absl::Status ParseFile(absl::string_view text, ParallelPlan& plan) {
  plan.schedule_file = std::string(text);
  return absl::OkStatus();
}

}  // namespace
}  // namespace schedule_axis_cc

extern const AxisInfo kScheduleAxis = {
    .flag = "schedule",
    .summary = "pipeline schedule; `schedule --list` names all",
    .values = "the name of one",
    .page = "one of [these](schedules.md)",
    .examples = schedule_axis_cc::Names(),
    .mistake = {"foo", "schedule 'foo' is unknown; wanted one of gpipe, 1f1b, "},
    .parse = ParseField<&ParallelPlan::schedule, ScheduleChoice::Parse>,
    .print = schedule_axis_cc::Print,
    .copy = CopyField<&ParallelPlan::schedule>,
    .always_printed = true,
    .hidden = schedule_axis_cc::FromFile,
    .applies = [](const ParallelPlan& plan) { return plan.schedule_file.empty(); },
    .needs = "one word on the order of steps: schedule-file is another",
    .choices = schedule_axis_cc::Choices,
    .shown = {"schedule", -10},
    .column_position = 6,
};

extern const AxisInfo kScheduleFileAxis = {
    .flag = "schedule-file",
    .summary =
        "orders of the ranks, as `schedule` prints them and torch writes them, in place of "
        "a schedule's",
    .values = "the path of a file",
    .page =
        "in place of a schedule, orders of one's own, in a file: [a rank a "
        "line](schedules.md#your-own), as `schedule` prints them and torch writes them",
    .examples = {"orders.csv", "it's/a path.csv", ""},
    .scope = AxisScope::kOneRun,
    .lists = false,
    .parse = schedule_axis_cc::ParseFile,
    .print = [](const ParallelPlan& plan) { return plan.schedule_file; },
    .copy = CopyField<&ParallelPlan::schedule_file>,
};

}  // namespace orrery::transforms
