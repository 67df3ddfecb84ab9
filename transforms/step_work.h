#ifndef ORRERY_TRANSFORMS_STEP_WORK_H_
#define ORRERY_TRANSFORMS_STEP_WORK_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/memory/zero.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/plan/plan_context.h"
#include "transforms/sharding/split_axis.h"
#include "transforms/stages/pipeline.h"

// How a training step becomes a pipelined one: a list of stages of work, each of which says whether
// it has something to do, what is not feasible, and does it. All say what is not feasible before
// any does its work.

namespace orrery::transforms {

/// A training step on its way from one device to all. Copies are made only where there is something
/// to change: most of the time of small searches is here.
struct StepWork {
  const ir::Function& whole;  // of the global batch, on one device
  const ParallelPlan& plan;
  const PlanContext& context;
  ir::Mesh mesh;

  std::optional<ir::Function> one = {};      // of one microbatch or slice, unless that is the whole
  std::optional<ir::Function> sharded = {};  // of all ranks, unless that is the one
  /// Whether each output has the batch (or the positions of a slice) as a dimension that
  /// microbatches divide.
  std::vector<bool> batched = {};
  std::optional<SplitAxisPrices> prices = {};  // of the mesh with ZeRO's groups
  /// Where stages begin, as StageChoice::positions; none: where the plan has it.
  std::optional<std::vector<size_t>> positions = {};
  std::optional<PipelinedStep> step = {};  // once it is cut into stages

  bool sliced() const { return !context.slices.empty(); }
  const ir::Function& part() const { return one.has_value() ? *one : whole; }
  const ir::Function& last() const { return sharded.has_value() ? *sharded : part(); }
  /// The functions as they are now: what `opt --print-after-all` prints.
  std::vector<ir::Function> Functions() const;
};

/// One stage of that work.
struct StepStage {
  absl::string_view name;     // "shard"
  absl::string_view summary;  // one line
  /// Whether it changes anything; null: always.
  bool (*applies)(const StepWork& work) = nullptr;
  /// Which choices of the plan do not go together. Null: all do.
  absl::Status (*check)(const StepWork& work) = nullptr;
  /// What step and mesh do not divide into: ranks of a pin, samples, layers. Null: nothing.
  absl::Status (*divides)(const StepWork& work) = nullptr;
  /// Ways to do the work each of which may be the best once the step is played, as values of
  /// StepWork::positions. Null: there is one.
  absl::StatusOr<std::vector<std::vector<size_t>>> (*ways)(const StepWork& work) = nullptr;
  /// Does the work. Infeasible for what is found only on the way.
  absl::Status (*run)(StepWork& work) = nullptr;
};

/// All stages of work, in the order of step_stages.def.
std::span<const StepStage* const> AllStepStages();

/// What makes the work impossible, as far as plan and whole step tell, also of stages that do not
/// apply: first each `check`, then each `divides`. Of `work` they see whole, plan, context and
/// mesh.
absl::Status CheckStep(const StepWork& work);

// What several stages share.

/// The slice that everything is decided on (PlanContext::decided_on).
SliceRange DecidedOn(const ir::Function& whole, const PlanContext& context);

/// What the plan wants of ZeRO; stage 0 has no groups.
ZeroOptions ZeroOf(const ParallelPlan& plan);

/// Whether what is gathered of activations is kept in parts, and gathered again.
bool GathersAgain(const StepWork& work);

/// Infeasible (kUnsupported).
absl::Status Unsupported(std::string detail);

/// A function that fits one device and one microbatch, and cannot be cut or sharded like this,
/// makes the plan infeasible (kUnsupported); it is no error of the model.
absl::Status AsFeasible(const absl::Status& status);
absl::StatusOr<ir::Function> AsFeasible(absl::StatusOr<ir::Function> function);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STEP_WORK_H_
