#ifndef ORRERY_TRANSFORMS_PLAN_PARALLEL_PLAN_H_
#define ORRERY_TRANSFORMS_PLAN_PARALLEL_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/collectives/choice.h"
#include "cost_models/gradient_compression.h"
#include "support/units.h"
#include "transforms/memory/offload.h"
#include "transforms/memory/recompute.h"
#include "transforms/plan/mesh_order.h"
#include "transforms/plan/schedule_choice.h"
#include "transforms/plan/stage_meshes.h"
#include "transforms/plan/step_dtype.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/slices/slice_lengths.h"
#include "transforms/stages/placement.h"
#include "transforms/stages/stage_choice.h"

// The plan: everything that a user chooses about how a training step is parallelized over devices,
// cut into stages, ordered, kept in memory and played. What follows from a plan and a cluster
// stands in a PlanContext (transforms/plan/plan_context.h) beside it.

namespace orrery::transforms {

using cost_models::CollectiveChoice;
using cost_models::GradientCompression;

/// How the axes but dp and pp are used: as costs least; by Megatron's pattern; or hp alone, for
/// column and row products and nothing else, as DistIR does (Santhanam et al. 2021).
enum class ShardingMethod : uint8_t { kAuto, kMegatron, kDistir };

/// Which other samples a contrastive loss holds each sample of a microbatch against: those of all
/// data-parallel ranks, which are gathered, or those of its own rank.
enum class ContrastiveNegatives : uint8_t { kGathered, kLocal };

/// One way to train: a value that prints, parses, compares and hashes
/// (transforms/plan/plan_text.h). Its fields are the axes of plan_axes.def; what each means, which
/// values it takes and what it applies to stands in the record of the axis.
struct ParallelPlan {
#define ORRERY_PLAN_AXIS(Name, field, type, value, file) type field = value;
#include "transforms/plan/plan_axes.def"
#undef ORRERY_PLAN_AXIS

  /// The product of the degrees; where stages have ranks of their own, the sum of these.
  int64_t ranks() const {
    if (!placement.empty()) return placement.ranks();
    return stage_meshes.empty() ? dp * hp * pp * cp * ep : stage_meshes.ranks();
  }
  /// Whether stages have ranks of their own, or replicas microbatches of their own.
  bool unequal() const { return !stage_meshes.empty() || shares.dealt() || !placement.empty(); }
  /// The dp, and the hp, of the stage that has most of it.
  int64_t most_dp() const {
    if (!placement.empty()) return placement.most_dp();
    return stage_meshes.empty() ? dp : stage_meshes.most_dp();
  }
  int64_t most_hp() const {
    if (!placement.empty()) return placement.most_hp();
    return stage_meshes.empty() ? hp : stage_meshes.most_hp();
  }
  /// Whether shardings are by Megatron's pattern, as sequence parallelism wants it, or by the
  /// products of it alone; else by cost.
  bool by_pattern() const {
    return sharding != ShardingMethod::kAuto || sequence_parallel == SequenceParallel::kOn;
  }
  /// Whether of that pattern there are column and row products alone, which ask for no prices.
  bool by_products() const {
    return sharding == ShardingMethod::kDistir && sequence_parallel != SequenceParallel::kOn;
  }

  /// The type of the copies that products of linear layers read (transforms/training/fp8_mixed.h);
  /// nothing: they read no copies.
  std::optional<ir::DType> copies() const { return CopyDType(dtype); }

  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ParallelPlan& plan) {
#define ORRERY_PLAN_AXIS(Name, field, type, value, file) h = H::combine(std::move(h), plan.field);
#include "transforms/plan/plan_axes.def"
#undef ORRERY_PLAN_AXIS
    return h;
  }
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_PARALLEL_PLAN_H_
