#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/redistribution/move_set.h"
#include "transforms/redistribution/search.h"

// PyTorch's DTensor: its steps, its prices in microseconds, and its greedy planner. Layouts are in
// nested chunks; a mesh axis of DTensor's placements is an axis here, and its shard order is the
// order of the axes of a dimension.

namespace orrery::transforms::redistribution {

/// Which plans leave the same bits in all replicas, although sums depend on their order.
enum class ReplicaConsistency : uint8_t {
  /// All plans, as in DTensor.
  kAny,
  /// Of ranks that differ only on axes over which the source holds no replicas and the target does,
  /// each number is reduced by one group and copied to the others: they hold the same bits whatever
  /// the order of additions in that group. Replicas that the source holds stay alike only as far as
  /// their groups add in the same order. To this end, nothing is reduced while an axis that does
  /// not replicate in the source replicates outside of the group. There is always a plan.
  kReducedOnce,
  /// Moreover, the axes that are partial in the source and replicate in the target are all-reduced
  /// in one step, by themselves, after all other reductions: (P,P,P) to (R,S,R) is a reduce-scatter
  /// over axis 1, then one all-reduce over axes 0 and 2.
  kOneAllReduce,
};

/// The machine that DTensor's costs are of, and which steps there are besides its own.
struct DtensorOptions {
  int64_t devices_per_host = 8;
  double all_to_all_penalty = 1;  // microseconds an all-to-all
  /// Also steps over several axes at once; see DtensorPrices for what they cost.
  bool merge = false;
  /// Replicate to partial: a kernel's launch, in microseconds, and its reading and writing of the
  /// shard at so many times 2^30 bytes a second (0: no time). DTensor takes both to be free.
  double partial_cost = 0;
  double memory_bandwidth = 0;
  ReplicaConsistency consistency = ReplicaConsistency::kAny;  // but kAny implies `merge`
};

/// Reads "devices_per_host=8,all_to_all_penalty=0,merge,partial_cost=7,memory_bandwidth=2000,
/// replica_consistent": each at most once; `replica_consistent=reduced-once` is kReducedOnce, and
/// without a value kOneAllReduce.
absl::StatusOr<DtensorOptions> ParseDtensorOptions(absl::string_view text);

/// An error for layouts in other blocks, and for a source or target that mixes reductions other
/// than sum and average: DTensor has neither. Requires layouts that fit the mesh and the dims.
absl::Status CheckDtensor(const Problem& problem, const DtensorOptions& options);

/// DTensor's graph of layouts for `problem`. A step changes one mesh axis: the innermost of those
/// that split a dimension is gathered or moved, innermost, to another dimension; a partial axis is
/// reduced, or reduced and scattered; a replicating axis splits a dimension, or becomes partial
/// with a reduction that the source or the target has. With `merge` also: partial axes are reduced,
/// or reduced and scattered (in ascending order, or in that of the target), together, and the
/// innermost axes of a dimension are gathered together.
///
/// A step's peak counts what a rank holds before and after a collective or a copy, since DTensor's
/// are not in place; a slice is. Errors are those of CheckDtensor.
absl::StatusOr<std::unique_ptr<const MoveSet>> MakeDtensor(const Problem& problem,
                                                           const DtensorOptions& options);

/// The plan of DTensor's default planner, which goes from axis to axis. Its cost is infinite where
/// DTensor gives up: it has no step from a split to a partial axis, nor from one reduction to
/// another (here a make-partial step of infinite cost). An error where DTensor would take its graph
/// planner: the axes of a dimension are not in ascending order.
absl::StatusOr<RedistributionPlan> DtensorGreedyPlan(const Problem& problem,
                                                     const DtensorOptions& options);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_H_
