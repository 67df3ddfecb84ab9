#ifndef ORRERY_TRANSFORMS_STAGES_STAGE_PLAN_H_
#define ORRERY_TRANSFORMS_STAGES_STAGE_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/stages/stage_choice.h"
#include "transforms/stages/stage_units.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {

/// What stages there are.
struct StageOptions {
  int64_t stages = 1;
  /// Layers that are all alike make stages of equally many, or none. Else some have one more.
  bool equal_stages = false;
  /// The gradients of weights apart from those that other stages wait for (StepPhase::kWeights).
  bool split_backward = false;
  std::vector<int32_t> ranks = {};  // that hold each stage; empty: one each
  StageChoice choice = {};          // where stages begin
  int64_t microbatches = 1;         // of a step: how often a stage runs for one update
};

/// Where each op of a training step goes.
struct StagePlan {
  IdTable<ir::OpId, StepPhase> phase;
  IdTable<ir::OpId, int32_t> stage;    // of an optimizer: 0; it is split by parameter
  IdTable<ir::ValueId, int32_t> home;  // of an input: the stage that holds it; -1 if unused
  /// Of a parameter that several stages read: the last of them on each rank that has any,
  /// ascending. The last of all is its home.
  absl::flat_hash_map<ir::ValueId, std::vector<int32_t>> copies = {};
  /// Ops that every stage runs for itself which wants the result: a shared parameter, cast say.
  IdTable<ir::OpId, char> repeated;
  /// Of an op that puts the gradient of such a parameter together: where it runs.
  absl::flat_hash_map<ir::OpId, std::vector<int32_t>> runs_on = {};
  std::vector<int64_t> layers = {};  // whole ones of each stage; empty: there is one stage
  std::vector<int32_t> sets = {};    // of a placement: of its sets, which runs each stage
  /// Of a placement: all ops, so that those of a stage which need not wait for another set come
  /// first; empty: in the order of the function.
  std::vector<ir::OpId> order = {};
  bool late_updates = false;  // see PartitionOptions

  /// Whether the stage holds the parameter, its optimizer state, and updates both.
  bool Holds(int32_t of_stage, ir::ValueId parameter) const {
    const auto found = copies.find(parameter);
    if (found == copies.end()) return home[parameter] == of_stage;
    return std::find(found->second.begin(), found->second.end(), of_stage) != found->second.end();
  }
};

/// Errors of places that the user names, `split_at` or `layers_per_stage`: a training step has the
/// same names and whole layers before it is sharded. Where nobody names any, OK: how many ops and
/// products can be parted then depends on how they are sharded.
absl::Status CheckPlaces(const ir::Function& function, const StageOptions& options);

/// Cuts a training step into stages, as `options.choice` says: docs/pipeline_stages.md. A backward
/// op goes where the parameters and forward values that it reads are, and no earlier than what
/// reads its gradients. A parameter that several stages read has a copy on each (ShareParameters).
/// Infeasible when there are too few layers, or they do not divide (kDivisibility), or a gradient
/// is made where its parameter is not (kUnsupported).
absl::StatusOr<StagePlan> PlanStages(const ir::Function& function, const StageOptions& options);

/// How backward finds its stages: as on a chain, where it is enough that what an op reads is there;
/// or where the forward op is whose gradient it makes, by what both read, or by names, too
/// (transforms/stages/mirrored_stage.h). Then a sum of gradients goes to where it is read.
enum class Mirroring : uint8_t { kNone, kByReads, kByNames };

/// Where stages begin: positions of the chain, of all but the first, ascending.
struct StageCuts {
  const IdTable<ir::OpId, StepPhase>& phase;
  const ForwardChain& chain;
  const std::vector<size_t>& positions;
  Mirroring mirroring = Mirroring::kNone;
};

/// Stages that cannot be parted there.
struct StageConflict {
  int32_t first = 0;
  int32_t last = 0;
};

/// The same with stages that begin at `cuts`. What is kUnsupported leaves the stages that are to
/// blame in `conflict`, if that is not null.
absl::StatusOr<StagePlan> AssignStages(const ir::Function& function, const StageOptions& options,
                                       const StageCuts& cuts, StageConflict* conflict = nullptr);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_STAGE_PLAN_H_
