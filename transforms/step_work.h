#ifndef ORRERY_TRANSFORMS_STEP_WORK_H_
#define ORRERY_TRANSFORMS_STEP_WORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "support/units.h"
#include "transforms/memory/zero.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/plan/plan_context.h"
#include "transforms/sharding/split_axis.h"
#include "transforms/stages/pipeline.h"
#include "transforms/training/pad_dimensions.h"

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

  // Of one microbatch or slice, unless that is the whole; and of all ranks, unless that is the one.
  // Other plans may share them.
  std::shared_ptr<const ir::Function> one = {}, sharded = {};
  /// Whether each output has the batch (or the positions of a slice) as a dimension that
  /// microbatches divide.
  std::vector<bool> batched = {};
  std::optional<SplitAxisPrices> prices = {};  // of the mesh with ZeRO's groups
  std::vector<PaddedDimension> padded = {};    // of `one`
  /// Where stages begin, as StageChoice::positions; none: where the plan has it.
  std::optional<std::vector<size_t>> positions = {};
  std::optional<PipelinedStep> step = {};  // once it is cut into stages
  /// All that the work depends on as far as it is done, the stage of it that runs now with it:
  /// under this key its parts are kept for other plans. Empty: they are not.
  std::string key = {};

  bool sliced() const { return !context.slices.empty(); }
  const ir::Function& part() const { return one != nullptr ? *one : whole; }
  const ir::Function& last() const { return sharded != nullptr ? *sharded : part(); }
  /// The functions as they are now: what `opt --print-after-all` prints.
  std::vector<ir::Function> Functions() const;
};

/// One stage of that work. So many fields: what it says of itself, and what it does.
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
  /// All that `run` reads of `work` beside what the stages before it made, as text: so works with
  /// equal texts are alike where they were before. Null: nobody says, and from there on nothing is
  /// shared with other plans.
  std::string (*reads)(const StepWork& work) = nullptr;
  /// The same of `ways`.
  std::string (*ways_read)(const StepWork& work) = nullptr;
};

/// All stages of work, in the order of step_stages.def.
std::span<const StepStage* const> AllStepStages();

/// What makes the work impossible, as far as plan and whole step tell, also of stages that do not
/// apply: first each `check`, then each `divides`. Of `work` they see whole, plan, context and
/// mesh.
absl::Status CheckStep(const StepWork& work);

// What several stages share.

/// A text in which no other can begin: for keys that hold what users wrote.
std::string KeyOf(absl::string_view text);

/// Where the ranks of a stage are, as text: the sizes and strides of the axes of a mesh, but of
/// "pp" its place alone.
std::string PlacesInStage(const ir::Mesh& mesh);
/// Where all ranks are.
std::string Places(const ir::Mesh& mesh);

/// Equal for functions that are the same on meshes that differ in "pp" alone, within a run of the
/// program: names, inputs, ops and outputs.
uint64_t NumberOfAll(const ir::Function& function);
/// Of why there is none.
uint64_t NumberOf(const absl::Status& status);

/// A function that plans share.
struct FunctionPart {
  absl::StatusOr<std::shared_ptr<const ir::Function>> function;
  /// About how much memory it takes.
  Bytes held() const { return Bytes(function.ok() ? (*function)->held_bytes() : 0); }
  /// Equal for equal functions.
  uint64_t number() const {
    return function.ok() ? NumberOfAll(**function) : NumberOf(function.status());
  }
};
/// What `make` returns, or what it returned for another plan that shares the work's key.
absl::StatusOr<std::shared_ptr<const ir::Function>> SharedFunction(
    const StepWork& work, absl::string_view kind,
    const std::function<absl::StatusOr<ir::Function>()>& make);

/// The slice that everything is decided on (PlanContext::decided_on).
SliceRange DecidedOn(const ir::Function& whole, const PlanContext& context);

/// What the plan wants of ZeRO; stage 0 has no groups.
ZeroOptions ZeroOf(const ParallelPlan& plan);
/// How many dp ranks share one copy of what ZeRO shards by the plan; 1: it shards nothing.
int64_t ZeroGroupOf(const ParallelPlan& plan);

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
