#ifndef ORRERY_TRANSFORMS_PLAN_PLAN_TEXT_H_
#define ORRERY_TRANSFORMS_PLAN_PLAN_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/parallel_plan.h"

// A plan as text, and as columns of a table or keys of JSON.

namespace orrery::transforms {

/// The plan as flags that `simulate` takes: "--dp 4 --hp 2 --pp 2 --micro-batches 8 --schedule
/// 1f1b". Beside these the axes whose values differ from those of `base`.
std::string ToString(const ParallelPlan& plan, const ParallelPlan& base = {});

/// An axis and a value of it, as a text has it.
struct AxisValue {
  const AxisInfo* axis;
  std::string value;
};
/// The flags of a text as ToString makes it, in their order, whatever their values are: of a switch
/// "1" where it says none. InvalidArgument names the word that is no flag of an axis.
absl::StatusOr<std::vector<AxisValue>> ParseValues(absl::string_view text);

/// The value of one axis as flags: "--zero 3", "--blocking", "--blocking=0"; empty for a list of
/// none.
std::string AxisText(const AxisInfo& axis, const ParallelPlan& plan);

/// Reads what ToString prints, quoted as in a shell: flags set values on top of `base`.
/// InvalidArgument for a flag that no axis has and for a value that its axis does not take.
absl::StatusOr<ParallelPlan> ParsePlan(absl::string_view text, const ParallelPlan& base = {});

/// Sets one axis of the plan by its text; an error names the axis.
absl::Status SetAxis(const AxisInfo& axis, absl::string_view text, ParallelPlan& plan);

/// A column of a table of plans.
struct PlanColumn {
  std::string name;  // "num_microbatches"
  AxisCell value;
};

/// The columns of a plan: those that stand before the figures of a table, and those behind.
struct PlanColumns {
  std::vector<PlanColumn> before, behind;
};
/// The columns of all axes with the values of `plan`: before by AxisInfo::column_position, behind
/// in the order of the axes.
PlanColumns ColumnsOf(const ParallelPlan& plan);

/// Where a column stands: before the figures of a table, or behind them.
enum class ColumnPlace : uint8_t { kBefore, kBehind };
/// Calls `see` with each of these columns in turn, as ColumnsOf has them.
void ForEachColumn(const ParallelPlan& plan, ColumnPlace place,
                   absl::FunctionRef<void(absl::string_view name, AxisCell cell)> see);

/// The plan whose columns are these, by name; axes that are missing have their default. What
/// ColumnsOf makes of it is the same again. InvalidArgument for a name that no axis has, and for a
/// value that its axis does not take.
absl::StatusOr<ParallelPlan> PlanOfColumns(const std::map<std::string, std::string>& columns);

/// Whether the plan has its value of an axis from `preset`, which differs there from the default.
bool SetBy(const ParallelPlan& preset, const AxisInfo& axis, const ParallelPlan& plan);

/// InvalidArgument where the value of that axis contradicts the rest of the plan, or means nothing
/// beside it.
absl::Status CheckAxis(const AxisInfo& axis, const ParallelPlan& plan);

/// InvalidArgument where an axis has a value that contradicts another, or where one that differs
/// from `base` means nothing beside the others.
absl::Status CheckPlan(const ParallelPlan& plan, const ParallelPlan& base = {});

/// The plan with the values of `base` where its own fail CheckAxis: what CheckPlan accepts, unless
/// `base` contradicts itself. Of two axes that cannot both have their values, the one whose record
/// says so gives way.
ParallelPlan Settled(const ParallelPlan& plan, const ParallelPlan& base);

/// The values of the axes that remake the step, as flags: plans of one training step have the same.
std::string StepKey(const ParallelPlan& plan);

/// The text, in quotes where a shell would read it otherwise.
std::string ShellQuoted(absl::string_view text);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_PLAN_TEXT_H_
