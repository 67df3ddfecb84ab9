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

// Whether the schedule has orders for the pipeline.
bool IsPossible(const PipelineSchedule& schedule, const ParallelPlan& plan) {
  return schedule
      .CheckShape(
          schedule.ShapeOf(static_cast<int32_t>(plan.pp), static_cast<int32_t>(plan.microbatches)))
      .ok();
}

bool FromFile(const ParallelPlan& plan) { return !plan.schedule_file.empty(); }

// What a search that chooses degrees tries: the schedules that people train with, where there is a
// pipeline and a rank's chunks come by turns evenly; in a full space all that a step may be ordered
// by and still be the same step, but for `distir`, whose order is that of no machine.
std::vector<ParallelPlan> OfItself(const SpaceQuestion& question, const ParallelPlan& plan) {
  std::vector<ParallelPlan> plans = {plan};
  const bool open = question.saves_memory && plan.pp > 1 && plan.schedule == ScheduleChoice();
  if (!open || question.cuts_sequences) return plans;
  for (const PipelineSchedule* schedule : AllSchedules()) {
    const bool usual = schedule->name == "interleaved" && plan.microbatches % plan.pp == 0;
    const bool same_step = !schedule->asynchronous && !schedule->slices_sequence;
    const bool full =
        question.full && same_step && schedule->name != "distir" && IsPossible(*schedule, plan);
    if ((usual || full) && schedule->name != plan.schedule.name()) {
      plans.emplace_back(plan).schedule = ScheduleChoice::Parse(schedule->name).value();
    }
  }
  return plans;
}

// Where the numbers of microbatches are left open, schedules that cut sequences have others.
std::vector<ParallelPlan> Choices(const SpaceQuestion& question, const ParallelPlan& plan,
                                  std::span<const ParallelPlan> given) {
  std::vector<ParallelPlan> plans =
      given.empty() ? OfItself(question, plan) : WithGiven<&ParallelPlan::schedule>(plan, given);
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
