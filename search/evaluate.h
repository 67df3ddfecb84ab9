#ifndef ORRERY_SEARCH_EVALUATE_H_
#define ORRERY_SEARCH_EVALUATE_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "search/goals/goal.h"
#include "search/plan_player.h"
#include "search/runs/run.h"
#include "search/settings/setting.h"
#include "simulator/report/report_json.h"
#include "support/parts/part_store.h"
#include "support/status.h"
#include "support/units.h"

// One plan from the training step to its figures.

namespace orrery::search {

/// A row of a search: figures, or why there are none. It has so many fields: a table has so many
/// columns.
struct Result {
  ParallelPlan plan;
  bool ran = false;
  Duration step_time;
  simulator::ModelFigures figures;
  double communication_overhead = 0;
  double exposed_communication_s = 0;
  double bubble_fraction = 0;
  Bytes peak_memory;  // of one that did not run, where that is why: what it needs at least
  int64_t simulated_tasks = 0;
  bool fits = false;
  std::string gathered = {};             // activations over dp, as transforms::ToString tells them
  std::optional<Infeasible> infeasible;  // set unless it fits, is pruned or left
  std::string pruned = {};  // why it was not played, where others beat its bounds; else empty
  bool left = false;        // not reached: the budget of the search ended before

  bool feasible() const { return ran && fits; }
};

/// What goals are about, of a result that ran.
GoalFigures GoalFiguresOf(const Result& result);

/// Plays one plan, in as many ways as it takes to find the best (search/attempts.h). Infeasible (as
/// a status, see support/status.h) when it cannot be parallelized; one that does not fit in memory
/// is played, and its report says so.
absl::StatusOr<Run> Play(const Setting& setting, const ParallelPlan& plan);

/// The same within a budget, from which it takes what it does: the best of the ways for which that
/// lasts, the first at least where anything is left; else ResourceExhausted.
absl::StatusOr<Run> Play(const Setting& setting, const ParallelPlan& plan, PlayBudget& budget);

/// The same where figures are all that is wanted: the program and the trace may be of the first
/// microbatches alone, and the report is of all (PlanPlayer::WantFiguresAlone). What it is made of
/// is shared with other plans of the setting, as long as that is not changed, by way of `parts`;
/// null: with none.
absl::StatusOr<Run> PlayForFigures(const Setting& setting, const ParallelPlan& plan,
                                   PlayBudget& budget, PartStore* parts = nullptr);

/// The step time of what `plan` was parallelized into before (Run::pipelined), by what the setting
/// now says of the cluster, the cost model and the lowering: Play's, where that chooses the same
/// way.
absl::StatusOr<Duration> StepTimeOf(const Setting& setting, const ParallelPlan& plan,
                                    const transforms::PipelinedStep& step);

/// What one sample costs by the result, in the currency of Setting::device_hour; 0 where there is
/// no price, or no figure.
double PriceOfSample(const Setting& setting, const Result& result);

/// The row of a plan that CannotFit, since it needs `least` (search/bounds/least_memory.h).
Result CannotFitResult(const Setting& setting, const ParallelPlan& plan, Bytes least);

/// The figures of one plan, or why there are none: infeasibility is part of the result. What cannot
/// fit by a sum over its weights (search/bounds/least_memory.h) is not played. An error
/// only for what no plan could do: our own bug or an impossible setting; DeadlineExceeded where
/// `budget` was over before.
absl::StatusOr<Result> Evaluate(const Setting& setting, const ParallelPlan& plan,
                                PartStore* parts = nullptr, PlayBudget budget = {});

/// The same within a search, whatever happens: a plan that fails where others need not, out of
/// memory or by our own bug, is a row that says why. InvalidArgument, what is wrong with the
/// question, is wrong with all of them; DeadlineExceeded after `until`.
absl::StatusOr<Result> EvaluateAsRow(const SettingOf& setting_of, const ParallelPlan& plan,
                                     PartStore& parts, std::chrono::steady_clock::time_point until);

/// What a whole training run of Setting::run_samples takes with one plan. No stops, checkpoints or
/// evaluations are in it.
struct RunCost {
  int64_t steps = 0;  // whole ones, so that the last may be of fewer samples
  double seconds = 0;
  double device_hours = 0;
  double price = 0;  // in the currency of Setting::device_hour; 0: nobody says

  double days() const { return seconds / 86'400; }
};

/// What the run takes with the plan of a result that ran; all 0 where nobody says how long it is.
RunCost CostOfRun(const Setting& setting, const Result& result);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_EVALUATE_H_
