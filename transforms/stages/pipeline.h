#ifndef ORRERY_TRANSFORMS_STAGES_PIPELINE_H_
#define ORRERY_TRANSFORMS_STAGES_PIPELINE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/schedules/schedule.h"
#include "transforms/sharding/facts/gathered.h"
#include "transforms/stages/stage_choice.h"
#include "transforms/training/pad_dimensions.h"

namespace orrery::transforms {

/// One phase of one stage. `origins` tells for each of its values which value of the sharded step
/// it stands for (invalid: none, it was made here); values of several functions with one origin are
/// one value.
struct StageFunction {
  ir::Function function;
  std::vector<ir::ValueId> origins;
};

/// The origin of a value of `part`; invalid where it has none.
inline ir::ValueId OriginOf(const StageFunction& part, ir::ValueId value) {
  return part.origins[static_cast<size_t>(value.index())];
}

/// What one stage runs: forward and backward for each microbatch, update once a step. Where
/// backward is split, `weights` is what makes the gradients of the weights, after the rest; else it
/// is empty.
struct PipelineStage {
  StageFunction forward, backward, weights, update;

  /// In this order.
  std::array<const StageFunction*, 4> parts() const {
    return {&forward, &backward, &weights, &update};
  }
};

/// Positions of a sequence.
struct SliceRange {
  int64_t begin = 0;
  int64_t rows = 0;
};

/// What the stages run for one slice of the sequence (transforms/slices/slice_sequence.h): the
/// functions of the step with other types. There is one update for all slices.
struct SequenceSlice {
  /// What one stage runs for the slice, as in PipelineStage.
  struct Stage {
    StageFunction forward, backward, weights;
  };
  SliceRange range;
  std::vector<Stage> stages;  // as many as the step has
};

/// What the ranks of a stage are, where stages have ranks of their own: a mesh with the axes of the
/// step's, of size 1 along "pp".
struct StagePlace {
  ir::Mesh mesh;
  std::vector<int32_t> devices;  // of its ranks, by their number in the cluster
  int64_t microbatch_size = 0;   // samples of a microbatch of its functions, of all its ranks
};

/// Stages that are not alike in their ranks (transforms/stages/join_stages.h).
struct UnequalStages {
  /// By position along "pp"; empty: all are as the mesh of the step says. Ranks are numbered
  /// position by position.
  std::vector<StagePlace> places = {};
  /// By position and microbatch the coordinate along "dp" of the ranks that have the whole of it,
  /// from the beginning again where more are run; empty: each is shared out to all ranks.
  std::vector<std::vector<int32_t>> replica_of = {};
  /// Whether stages are a graph, and places those of a placement's sets: then ranks run steps in
  /// the order in which their inputs come (transforms/stages/placed_orders.h).
  bool placed = false;

  bool dealt() const { return !replica_of.empty(); }
};

/// A training step cut into stages. It is not ordered yet: that is what a schedule does.
struct PipelinedStep {
  ir::Mesh mesh;
  int64_t microbatches = 1;
  std::vector<PipelineStage> stages;  // of pipelines of equally many, one after the other
  std::vector<int32_t> ranks = {};    // that hold each stage, as coordinates along "pp"
  std::vector<int64_t> layers = {};   // of each stage of one pipeline, as in StagePlan
  int64_t microbatch_size = 0;        // samples, of all data-parallel ranks; 0 without data
  std::vector<int32_t>
      devices;  // of each rank, by its number in the cluster; empty: rank r on device r

  /// What data-parallel ranks get of each other in a microbatch beside sums of gradients.
  std::vector<GatheredActivation> gathered = {};
  /// What is longer than in the model, so that ranks hold the same.
  std::vector<PaddedDimension> padded = {};

  /// Where microbatches are slices of the sequence, those; `stages` are of `slice`, one like them.
  /// Empty: microbatches are parts of the batch, and alike.
  std::vector<SequenceSlice> slices = {};
  SliceRange slice = {};

  UnequalStages unequal = {};

  /// What a stage runs for a microbatch.
  struct Parts {
    const StageFunction &forward, &backward, &weights;
  };
  /// The parts of a stage for a microbatch: those of its slice where microbatches are slices, else
  /// those of all.
  Parts PartsOf(size_t stage, int64_t microbatch) const {
    if (slices.empty()) {
      return {stages[stage].forward, stages[stage].backward, stages[stage].weights};
    }
    const SequenceSlice::Stage& of = slices[static_cast<size_t>(microbatch)].stages[stage];
    return {of.forward, of.backward, of.weights};
  }

  /// All functions that have something to do, stage by stage: what `opt` prints.
  std::vector<ir::Function> Functions() const;
};

/// Where a step is cut, and which rank gets what.
struct PartitionOptions {
  bool equal_stages = false;    // see StageOptions
  bool split_backward = false;  // likewise
  int32_t chunks = 1;           // stages that a rank holds
  StagePlacement placement = StagePlacement::kLoop;
  StageChoice choice = {};      // where stages begin
  bool scatters_sends = false;  // see ScatterSends
  int32_t collect_dim = 0;      // of returned tensors, along which those of microbatches lie
  /// What a stage updates only with parts of gradients that come from earlier stages, it does by
  /// itself, apart from the others.
  bool late_updates = false;
};

/// Infeasible (kDivisibility) for more stages than a training step has ops: each has some of its
/// own. To be asked before anything is made for each stage.
absl::Status CheckStageCount(const PipelineShape& shape, int64_t ops);

/// What keeps PartitionStages from it, as far as the whole training step tells, of which neither
/// microbatches nor shards are made yet: too many stages, or places that `options.choice` names and
/// that there are not (CheckPlaces).
absl::Status CheckPartition(const ir::Function& whole, const ir::Mesh& mesh,
                            const PartitionOptions& options);

/// Where PartitionStages may cut the step, as StageChoice::positions: see CutsToTry of stages.
absl::StatusOr<std::vector<std::vector<size_t>>> PartitionsToTry(const ir::Function& function,
                                                                 const ir::Mesh& mesh,
                                                                 int64_t microbatches,
                                                                 const PartitionOptions& options);

/// Cuts the step of one microbatch into `chunks` stages for each rank that `mesh` has along "pp"
/// (see PlanStages). With two pipelines (StagePlacement::kTwoWay) into one a rank, of each of which
/// another rank has a copy for the microbatches that go the other way: they exchange the sums of
/// their gradients before the update.
/// The function is sharded over `mesh` already, or over nothing.
///
///  - What a stage makes and another needs is sent: Send at the end of the one, Receive in the
///  other.
///  - What forward leaves for backward, and backward for update, is returned as `saved`.
///  - With several microbatches, gradients are added up by Accumulate and returned tensors put
///    together by Collect. `batched[i]` tells whether output i of `function` has the batch as its
///    dimension 0 (or positions as its `collect_dim`); other outputs are sums over microbatches.
///  - An optimizer is cut into one for the parameters of each stage, or two (`late_updates`).
absl::StatusOr<PipelinedStep> PartitionStages(const ir::Function& function, const ir::Mesh& mesh,
                                              int64_t microbatches,
                                              const std::vector<bool>& batched,
                                              const PartitionOptions& options = {});

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_PIPELINE_H_
