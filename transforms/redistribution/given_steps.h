#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_GIVEN_STEPS_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_GIVEN_STEPS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/redistribution/search.h"

// Steps that somebody gives, to be checked and priced, in place of those that a planner finds.

namespace orrery::transforms::redistribution {

/// A step as GivenPlan reads it: "all-to-all a0: 0->2", "slice a1: 1", "all-reduce a0.a1". What
/// splits, or no longer splits, which dimension stands behind the colon.
std::string StepText(const ir::Mesh& mesh, const Step& step);

/// How a layout is called where steps do not lead on from it.
using LayoutText = std::function<std::string(const PackedLayout& layout)>;

/// The plan of `steps`, with semicolons between, each as StepText has it or as the move set names
/// it; axes by name or number, dimensions where they tell steps apart. Where a step may mean
/// several, as of several blocks, it is what leads on to the target; of several such plans the
/// cheapest. `exact` is false: nobody looked for a better one. Errors: a step that cannot be read,
/// or that does not apply to the layout before it, with the reason and the steps that do; steps
/// that end in another layout than the target, with those that are missing.
absl::StatusOr<RedistributionPlan> GivenPlan(const MoveSet& move_set, const Problem& problem,
                                             absl::string_view steps, const LayoutText& text);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_GIVEN_STEPS_H_
