#ifndef ORRERY_TOOLS_PLAN_FILE_H_
#define ORRERY_TOOLS_PLAN_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/flags.h"
#include "transforms/plan/parallel_plan.h"

// A plan as a file: its flags, and comments.

namespace orrery::tools {

/// The flags of a plan (transforms::ToString), one a line, behind `about` as lines of a comment.
std::string PlanFileText(const transforms::ParallelPlan& plan, const std::string& about);

/// The flags that such a text has, by the names that programs have for them, on any number of
/// lines; lines that are empty, or begin with #, say nothing. InvalidArgument says which word is
/// none of a plan, which value it cannot have, or what is there twice.
absl::StatusOr<std::vector<FlagText>> ParsePlanFile(const std::string& text);

/// The flags of the file that `--plan-file` names, if any, less those that are given: these count.
absl::StatusOr<std::vector<FlagText>> FlagsOfPlanFile(const std::vector<FlagText>& given);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PLAN_FILE_H_
