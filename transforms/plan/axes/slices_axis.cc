#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace slices_axis_cc {
namespace {

bool Applies(const ParallelPlan& plan) { return plan.schedule->slices_sequence; }

}  // namespace
}  // namespace slices_axis_cc

extern const AxisInfo kSlicesAxis = {
    .flag = "slices",
    .summary = "of schedules that cut sequences, how long slices are",
    .values = "equal, balanced, or the positions of each, as in 1024,640,384",
    .page =
        "with `--schedule terapipe`: `equal`, `balanced` (the pipeline takes the least), or the "
        "positions of [each slice](slices.md#how-long-slices-are), `1024,640,384`; such a list "
        "says how many there are where `--micro-batches` does not",
    .examples = {"balanced", "equal", "1024,640,384", "7"},
    .mistake = {"even", "'even': wanted equal, balanced, or the positions of each slice"},
    .lists = false,
    .parse = ParseField<&ParallelPlan::slices, ParseSliceLengths>,
    .print = [](const ParallelPlan& plan) { return ToString(plan.slices); },
    .copy = CopyField<&ParallelPlan::slices>,
    .applies = slices_axis_cc::Applies,
    .needs = "a schedule of slices, as terapipe is",
};

}  // namespace orrery::transforms
