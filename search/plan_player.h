#ifndef ORRERY_SEARCH_PLAN_PLAYER_H_
#define ORRERY_SEARCH_PLAN_PLAYER_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "lowering/network/sharding_prices.h"
#include "search/cuts/way_facts.h"
#include "search/runs/run.h"
#include "search/settings/setting.h"
#include "search/unequal/unequal_steps.h"
#include "support/parts/part_store.h"
#include "transforms/plan/plan_context.h"
#include "transforms/schedules/schedule.h"
#include "transforms/stages/stage_timing.h"

namespace orrery::search {

struct Played;
class StepPlayer;

/// One way to carry out a plan, where it leaves something open.
struct Way {
  bool by_cost = true;  // else by Megatron's pattern
  // Where the plan leaves it open: of Megatron's pattern; and whether what is gathered is kept in
  // parts.
  transforms::SequenceParallel sequence = transforms::SequenceParallel::kAuto;
  bool gathers = false;
  transforms::ContextAttention attention = transforms::ContextAttention::kAuto;
  double memory_price = 0;  // as in transforms::AutoShardOptions
  double link_price = 1;    // likewise
  int64_t in_flight = 0;    // as in transforms::PlanContext
  // As in transforms::StageChoice: how much of the memory stages keep to; none: no limit.
  std::optional<double> stage_share = {};

  friend bool operator==(const Way&, const Way&) = default;
};

/// How much plays may do, counted alike on every machine: tasks simulated, ops parallelized, and
/// nodes of sharding problems solved, weighed by about how long they take. A unit is a task's time.
struct PlayBudget {
  int64_t left = std::numeric_limits<int64_t>::max();  // below 1: nothing more is played
  /// When nothing more is begun, however little was done: DeadlineExceeded.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

/// Plays one plan in one way or another. It has so many fields for what all of its ways share:
/// that is found out once.
class PlanPlayer {
 public:
  /// Both live longer.
  PlanPlayer(const Setting& setting, const ParallelPlan& plan);
  /// Takes what it does out of `budget`, which lives longer, too.
  PlanPlayer(const Setting& setting, const ParallelPlan& plan, PlayBudget& budget);

  /// Figures are all that is wanted of runs: their program and trace may be of the first
  /// microbatches, and what all come to is in their report (search/runs/skip_ahead.h), to the
  /// picosecond.
  void WantFiguresAlone() { figures_alone_ = true; }
  /// From now on nothing is skipped, even so.
  void PlayAll() { skips_ = false; }

  /// What is made on the way is kept in `parts`, which lives longer, for other plans of the same
  /// setting, and taken from there: to come before all else. What is played, and what that counts
  /// as, stays the same.
  void ShareParts(PartStore* parts) { parts_ = parts; }

  /// To come first. InvalidArgument for a plan that makes no sense on this cluster, Infeasible for
  /// one whose pipeline there are no orders for.
  absl::Status Prepare();

  /// Parallelizes, lowers and plays the plan; without the figures of the model. Where it is open
  /// where stages begin, how long slices are, or in which order ranks run their steps, all answers
  /// that may be the best are played, and the best is kept: what is chosen by prices is never
  /// slower than equally many layers, balanced slices than equal ones, orders that are searched
  /// than those for steps that all last the same. Infeasible where it cannot be parallelized so,
  /// ResourceExhausted where nothing is left of the budget.
  /// `facts` are told of the way; then Cancelled is returned for what was made before, the same
  /// shardings and stages: they are those of that way. Aborted, and nothing is played, where all
  /// that the way has surely does not fit, or takes as long as what it has `to_beat`.
  absl::StatusOr<Run> Play(const Way& way, WayFacts* facts = nullptr,
                           std::optional<ToBeat> to_beat = {});

  /// The same for the one way of a plan that leaves nothing open: nobody has to know of it before
  /// it is played, and where all of it is, its report is a whole one.
  absl::StatusOr<Run> PlayOnly(const Way& way);

  /// The same for a way that was left out, Aborted, whatever is left of the budget but its time: so
  /// that there is a run at all.
  absl::StatusOr<Run> PlayLeftOut(const Way& way);

  /// To come for the run that is taken in the end: of others only what decides between them is
  /// known. False where what was skipped is not as it seemed: then all is to be played.
  bool Complete(Run& run);

  /// Lowers and plays what such a plan was parallelized into before (Run::pipelined), and nothing
  /// else: shardings and stages are not chosen again, and what is no time is not summed up.
  absl::StatusOr<Duration> StepTimeOf(const transforms::PipelinedStep& step);

  /// All that it did until now, as PlayBudget counts it; without what was played for a steady state
  /// and had none.
  int64_t work() const { return work_; }
  /// Of that, the tasks that were simulated.
  int64_t tasks() const { return tasks_; }
  const Setting& setting() const { return setting_; }
  const ParallelPlan& plan() const { return plan_; }
  const transforms::PipelineShape& shape() const { return shape_; }
  const transforms::ScheduledRanks& ranks() const { return ranks_; }
  /// The shardings that were chosen for it by cost.
  const transforms::ShardingMemo& shardings() const { return shardings_; }
  /// Whether stages begin where it costs least.
  bool weighs_stages() const;

 private:
  // Which shardings, with what is gathered kept in parts or not, and where stages begin. Within a
  // limit of stages such a cut is not played again: it would have been taken, had it been better.
  using CutKey = std::tuple<uint64_t, bool, std::vector<size_t>>;

  absl::StatusOr<Run> PlayCounted(const Way& way, WayFacts* facts);
  absl::StatusOr<Run> PlayOnce(const Way& way, WayFacts* facts);
  bool WantsCut(CutKey cut, const Way& way, WayFacts& facts);
  void Count(int64_t solved, int64_t tasks);
  absl::Status CheckTime() const;
  absl::Status SplitBackward();
  std::string PartsRoot() const;
  void WeighStages();
  transforms::StageContext StagesOf(const Way& way) const;
  absl::StatusOr<Run> PlayCuts(const ParallelPlan& plan, const transforms::PlanContext& context,
                               WayFacts* facts);
  CutBounds BoundsOf(std::deque<StepPlayer>& players, WayFacts* facts);
  void Tell(size_t cut, const WayFacts& of_cut, WayFacts* facts);
  Played PlayedOf(const ParallelPlan& plan, const transforms::PipelinedStep& step) const;
  // `cut`: which of those of its way the step is.
  absl::StatusOr<Run> PlayOrders(StepPlayer& player, const transforms::PipelinedStep& step,
                                 size_t cut, WayFacts& facts);
  absl::StatusOr<Run> PlayStep(StepPlayer& player, const transforms::PipelinedStep& step,
                               size_t cut);
  bool TellsBriefly() const;
  bool MaySkip(const transforms::PipelinedStep& step) const;
  const ir::Function& step() const { return split_step_ != nullptr ? *split_step_ : setting_.step; }

  const Setting& setting_;
  const ParallelPlan& plan_;
  transforms::PipelineSchedule schedule_;
  transforms::PipelineShape shape_;
  transforms::ScheduledRanks ranks_;
  bool figures_alone_ = false;
  bool skips_ = true;
  bool only_way_ = false;
  bool splits_ = false;                             // backwards
  std::shared_ptr<const ir::Function> split_step_;  // then
  ir::Mesh mesh_;
  std::optional<lowering::ClusterShardingPrices> prices_;  // of what is chosen by cost
  transforms::StageContext stages_;                        // of all ways, but for their limits
  std::optional<transforms::StepTimer> timer_;             // of ranks_, where they are timed
  // Which shardings, with what is gathered kept in parts or not, limit of stages.
  using PlayedKey = std::tuple<uint64_t, bool, std::optional<double>>;
  std::map<PlayedKey, WayFacts> played_;
  std::map<CutKey, WayFacts> cuts_;
  std::vector<CutKey> asked_;          // of the last way
  std::optional<ToBeat> to_beat_;      // likewise
  std::optional<bool> tells_ahead_;    // of ways before they are played; none: not seen yet
  std::map<size_t, size_t> sufficed_;  // by cut of a way, what StepPlayer::PlaySkipping says
  transforms::ShardingMemo shardings_;
  std::optional<UnequalSteps> unequal_;  // of a plan that is so
  std::shared_ptr<lowering::ExchangeStore> exchanges_;
  PartStore* parts_ = nullptr;
  PlayBudget* budget_ = nullptr;
  int64_t work_ = 0, tasks_ = 0;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_PLAN_PLAYER_H_
