#ifndef ORRERY_TOOLS_REDISTRIBUTION_PLAN_TEXT_H_
#define ORRERY_TOOLS_REDISTRIBUTION_PLAN_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/redistribution/redistribution.h"

// What `redistribute` prints of a plan.

namespace orrery::tools {

/// "0.012": elements of the problem's size, in 10^6 bytes.
std::string Megabytes(int64_t elements, const Redistributor& question);

/// "Cost [us]", or the column as it is where costs have no unit.
std::string WithUnit(absl::string_view column, const Redistributor& question);

/// The layout that plans begin from, in the move set's form.
redistribution::PackedLayout Source(const Redistributor& question);

/// The steps of a planner's plan in a table, and what they cost and hold together.
std::string PlanText(const WrittenProblem& written, const Redistributor& question,
                     const redistribution::RedistributionPlan& plan);

/// Steps as they were given, what they work on, how far they are from the cheapest plan within
/// `limit`, in elements, and which reductions could have been one.
absl::StatusOr<std::string> GivenText(const WrittenProblem& written, const Redistributor& question,
                                      const redistribution::RedistributionPlan& plan,
                                      int64_t limit);

/// What each step's cost is made of, in a table, with what all steps have of each part; a part that
/// no step has is left out.
std::string PartsText(const Redistributor& question,
                      const redistribution::RedistributionPlan& plan);

/// The plan as `--json` has it.
std::string PlanJson(const WrittenProblem& written, const Redistributor& question,
                     const redistribution::RedistributionPlan& plan);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REDISTRIBUTION_PLAN_TEXT_H_
