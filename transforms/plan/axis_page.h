#ifndef ORRERY_TRANSFORMS_PLAN_AXIS_PAGE_H_
#define ORRERY_TRANSFORMS_PLAN_AXIS_PAGE_H_

#include <string>

#include "transforms/plan/axis.h"

// The axes as docs/command_line.md has them: what `opt --list-axes` prints.

namespace orrery::transforms {

/// The axis as a row of a table in Markdown: its flag, what it takes, its default, what a search
/// takes, whether `opt` has it, and its column of the CSV. Ends with its line.
std::string AxisRow(const AxisInfo& axis);

/// The table of all axes.
std::string AxisTable();

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_AXIS_PAGE_H_
