#ifndef ORRERY_SEARCH_PLAY_STEP_H_
#define ORRERY_SEARCH_PLAY_STEP_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "lowering/network/exchange_store.h"
#include "lowering/prepared_step.h"
#include "search/runs/run.h"
#include "search/settings/setting.h"
#include "transforms/schedules/schedule.h"
#include "transforms/stages/pipeline.h"

namespace orrery::search {

/// A step that is lowered and played. All of it lives longer than a play.
struct Played {
  const Setting& setting;
  const ParallelPlan& plan;
  const transforms::PipelinedStep& step;
  const transforms::PipelineSchedule& schedule;
  lowering::ExchangeStore& exchanges;
  bool names = true;   // of tasks, whether anybody asks for them
  bool brief = false;  // a run of one batch has a brief report, that `Complete` makes a whole one
};

/// Lowers and plays so many batches, without a report.
absl::StatusOr<Run> PlayAlone(const Played& of, int32_t rounds,
                              const lowering::LoweringOptions& options);

/// Whether the ranks of the run do the same one after the other as those.
bool HasOrders(const Run& run, const transforms::ScheduledRanks& ranks);

/// Plays a step as its setting wants it played, in one way or another: what these share is lowered
/// once.
class StepPlayer {
 public:
  explicit StepPlayer(const Played& of);

  /// What is known of a batch whose ranks run their steps in these orders. None for what is not
  /// folded or does not run in turn (lowering::PreparedStep) or cannot be lowered. The same whether
  /// ranks are folded and links looked at or not: so that nobody gets another answer for looking.
  std::optional<lowering::StepBound> BoundOf(const transforms::RankOrders& orders);
  /// The run of so many batches with its report. `orders`: in place of those of the schedule; as in
  /// lowering::StepExtent.
  absl::StatusOr<Run> PlayRounds(int32_t rounds, const transforms::RankOrders* orders = nullptr);
  /// The same with one rank of each stage, however few tasks there are.
  absl::StatusOr<Run> PlayFolded(int32_t rounds) const;
  /// The run of the first microbatches of one batch whose brief report is of all; none where no
  /// steady state was found, or it is not worth it. Of the numbers of microbatches that may do it
  /// tries those from the one at `first` on, and says which did: steps that are cut alike need
  /// about as many.
  std::optional<Run> PlaySkipping(size_t& first);
  /// Makes the report of a run of this step a whole one. What was skipped is seen once more in a
  /// run that is longer by a period: false where it is not so.
  bool Complete(Run& run);

 private:
  enum class Telling : uint8_t { kBriefly, kWhole };
  // The first microbatches of a batch, and the period of their steady state.
  struct Periodic {
    Run run;
    Period period;
    int64_t microbatches = 0;
  };
  std::optional<Periodic> PlayFew(int64_t few);
  std::optional<Periodic> PlayWholePeriods(const Periodic& found);
  absl::StatusOr<Run> PlayExtent(lowering::StepExtent extent, Telling telling);
  void AddLost(Run& run) const;
  bool MayRepeatIn(int64_t microbatches) const;
  absl::Status PrepareFor(int32_t rounds);

  const Played of_;
  const lowering::LoweringOptions options_;
  std::optional<lowering::PreparedStep> prepared_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_PLAY_STEP_H_
