#include "transforms/plan/axis_fields.h"

// Stages that are a graph: which devices run which ops.

namespace orrery::transforms {
namespace placement_axis_cc {
namespace {

absl::Status Contradicts(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " beside devices of groups of ops"));
}

// Stages are where groups wait for each other, and their orders follow from that.
absl::Status Check(const ParallelPlan& plan) {
  if (plan.placement.empty()) return absl::OkStatus();
  const auto sets = std::ssize(plan.placement.sets);
  if (plan.pp != sets) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(plan.placement), " has ", sets,
                                                   " sets of devices; `pp` is ", plan.pp,
                                                   "; wanted the same, or no `pp`"));
  }
  if (plan.dp != 1 || plan.hp != 1 || plan.cp != 1 || plan.ep != 1) {
    return Contradicts("degrees dp, hp, cp and ep of all stages; wanted none");
  }
  if (!plan.stage_meshes.empty() || plan.shares.dealt()) {
    return Contradicts("ranks or microbatches of each stage; wanted none");
  }
  if (plan.chunks > 1) return Contradicts("several chunks a rank; wanted one");
  if (!plan.split_at.empty() || !plan.layers_per_stage.empty()) {
    return Contradicts("a pattern of first ops, or layers of each stage; wanted none");
  }
  if (!plan.schedule_file.empty()) return Contradicts("orders of a chain of stages; wanted none");
  if (plan.schedule.name() == "1f1b" || plan.schedule.name() == "gpipe") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("`schedule` ", plan.schedule.name(),
                   " orders a chain of stages; wanted 1f1b or gpipe beside a placement"));
}

// Who names ops says which placements are worth a try, not the axis.
std::vector<ParallelPlan> Given(const SpaceQuestion&, const ParallelPlan& plan,
                                std::span<const ParallelPlan> given) {
  return given.empty() ? std::vector{plan} : WithGiven<&ParallelPlan::placement>(plan, given);
}

}  // namespace
}  // namespace placement_axis_cc

extern const AxisInfo kPlacementAxis = {
    .flag = "placement",
    .summary = "which devices run which ops, so that branches of a model run at once",
    .values = "patterns of names and their devices, as in 'text=0-3;image=2x2@4;*=0-3'",
    .page =
        "[devices of groups of ops](placement.md): regular expressions (RE2) that names of values "
        "match, the first counts, and devices, `0-3` or dp x hp from one on, `2x2@4`: "
        "`text=0-3;image=2x2@4;*=0-3`",
    .examples = {"text=0;image=1;*=0", "a=2x2@4;*=0-3", "x{1,2}=1x2@0,4;y=1;*=2-3,6", "*=0", ""},
    .mistake = {"a=0-3;b=3-5", "device 3 is of 0-3 and of 3-5; wanted sets that are the same"},
    .lists = false,
    .parse = ParseField<&ParallelPlan::placement, ParsePlacement>,
    .print = [](const ParallelPlan& plan) { return ToString(plan.placement); },
    .copy = CopyField<&ParallelPlan::placement>,
    .check = placement_axis_cc::Check,
    .choices = placement_axis_cc::Given,
};

}  // namespace orrery::transforms
