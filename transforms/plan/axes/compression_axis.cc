#include <span>
#include <vector>

#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace compression_axis_cc {
namespace {

// What is compressed is the all-reduce of all gradients once a step. One replica has none.
bool ReducesOnce(const ParallelPlan& plan) {
  return plan.zero == 0 && !plan.schedule->asynchronous;
}

// Searches try what is given, and none where it has no meaning.
std::vector<ParallelPlan> Choices(const SpaceQuestion&, const ParallelPlan& plan,
                                  std::span<const ParallelPlan> given) {
  const bool several = plan.most_dp() * plan.cp * plan.ep > 1;
  if (given.empty() || !several || !ReducesOnce(plan)) return {plan};
  return WithGiven<&ParallelPlan::compression>(plan, given);
}

}  // namespace
}  // namespace compression_axis_cc

extern const AxisInfo kCompressionAxis = {
    .flag = "compress",
    .summary =
        "how data-parallel ranks compress gradients that they add up; it changes the "
        "arithmetic",
    .values = "none, top-k:SHARE, 8-bit or power-sgd:RANK",
    .page =
        "how data-parallel ranks [compress gradients](training_forms.md#gradient-compression): "
        "`none`, `top-k:0.01` (the largest hundredth), `8-bit`, `power-sgd:4` (factors of rank 4). "
        "It changes the arithmetic. Where gradients are not all-reduced once a step (`--zero`, "
        "asynchronous schedules) it is an error, and a search has none there; with `--blocking` "
        "plans are infeasible",
    .examples = {"top-k:0.01", "8-bit", "power-sgd:4", "none"},
    .mistake = {"zip", "'zip': wanted none, top-k:0.01, 8-bit or power-sgd:4"},
    .parse = ParseField<&ParallelPlan::compression, cost_models::GradientCompression::Parse>,
    .print = [](const ParallelPlan& plan) { return plan.compression.ToString(); },
    .copy = CopyField<&ParallelPlan::compression>,
    .applies = compression_axis_cc::ReducesOnce,
    .needs = "gradients that are added up once a step: zero 0, a synchronous schedule",
    .choices = compression_axis_cc::Choices,
};

}  // namespace orrery::transforms
