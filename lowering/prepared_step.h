#ifndef ORRERY_LOWERING_PREPARED_STEP_H_
#define ORRERY_LOWERING_PREPARED_STEP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lowering/network/geometry.h"
#include "lowering/network/pricing.h"
#include "lowering/placement/lowering_input.h"
#include "lowering/placement/stage.h"
#include "lowering/placement/stage_maker.h"
#include "lowering/step_bound.h"
#include "simulator/program/program.h"
#include "transforms/schedules/schedule.h"

// Work is done once: what tasks a step has, what they cost and what ranks hold does not depend on
// how many of its microbatches are run, nor in which order. Plays of one step share it.

namespace orrery::lowering {

/// How much of a prepared step a program runs, and in which order.
struct StepExtent {
  int32_t rounds = 1;              // as in LoweringInput
  int64_t first_microbatches = 0;  // likewise
  /// In place of those of the schedule. Two steps run at once in both or in none.
  const transforms::RankOrders* orders = nullptr;
  std::vector<LoweredStep>* lowered = nullptr;  // as in LoweringInput
};

/// A step that is lowered but for the order of its microbatches: templates, prices, ranks and what
/// they hold. So many fields: all that is made of it.
class PreparedStep {
 public:
  /// What `input` names must outlive this. It is made for input.rounds; what else of it is in
  /// StepExtent is not read.
  explicit PreparedStep(const LoweringInput& input);
  PreparedStep(const PreparedStep&) = delete;
  PreparedStep& operator=(const PreparedStep&) = delete;

  /// To come first, once. InvalidArgument where the step does not fit the schedule or the cluster,
  /// Infeasible where there are no orders for it or it has too many tasks.
  absl::Status Prepare();

  /// Whether Instantiate makes of so many rounds what it would make, had they been prepared for.
  bool Serves(int32_t rounds) const;

  /// Whether one rank stands for each stage. Requires that Prepare went well, as does all below.
  bool folded() const;
  /// Whether ranks are alike and run one phase at a time, in one pipeline that drains once.
  bool RunsInTurn() const;
  /// What is known of one batch before it is played, whose ranks run their steps in these orders.
  /// Requires that it is folded and runs in turn.
  StepBound BoundOf(const transforms::RankOrders& orders) const;

  /// The program of an extent that it serves.
  absl::StatusOr<simulator::Program> Instantiate(const StepExtent& extent);

 private:
  absl::Status CheckPlacement() const;
  Repetitions RepetitionsOf(int32_t rounds, int64_t first_microbatches) const;
  Repetitions OfARank(const Repetitions& all, int32_t stage) const;
  absl::StatusOr<transforms::RankOrders> OrdersOfDealt(int64_t microbatches) const;
  transforms::RankOrders OrdersOfPlaced(int64_t microbatches);
  transforms::StepDurations PhaseDurations();
  Duration DurationOf(int32_t s, const PhaseTemplates& templates);
  Bytes WithLost(simulator::RankClassId rank, Bytes use) const;

  const LoweringInput input_;
  Geometry geometry_;
  Pricing pricing_;
  const Repetitions repetitions_;  // of all that it is prepared for
  simulator::Program program_;     // without tasks
  std::optional<StageMaker> maker_;
  std::vector<Stage> stages_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PREPARED_STEP_H_
