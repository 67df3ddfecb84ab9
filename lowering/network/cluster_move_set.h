#ifndef ORRERY_LOWERING_NETWORK_CLUSTER_MOVE_SET_H_
#define ORRERY_LOWERING_NETWORK_CLUSTER_MOVE_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/cost_model.h"
#include "lowering/network/collective_times.h"
#include "transforms/redistribution/move_set.h"

namespace orrery::lowering {

namespace redistribution = transforms::redistribution;

/// Where the ranks of the mesh are, and what collectives take there.
struct ClusterMoveSetOptions {
  std::vector<int32_t> devices = {};  // of each rank, by its number; empty: rank r is on device r
  cost_models::CollectiveChoice algorithms = {};
};

/// Redistributions on a real cluster, in microseconds. A step is one collective over any set of
/// axes, and its cost is what lowering gives the op that carries it out: all groups of ranks at
/// once, sharing the links that they share. Of that time, what the algorithm's ranks add up, by the
/// memory's bandwidth (two reads and a write), is `reduction`; it is all of `transfer` at most.
/// Beside it stand kernels that put data in order, as a collective takes the parts of ranks one
/// after another: before it where parts are of a dimension that is not the outermost of more than
/// one, behind it likewise; a launch each, and `copy`, a read and a write. Views, as slices, are
/// free. Steps:
///  - slice by an axis that replicates; all-gather of the innermost axes of a dimension; all-to-all
///    that moves them to the inner end of another;
///  - all-reduce over any set of partial axes of one reduction, or of sums and averages;
///  reduce-scatter of them to the inner
///    end of a dimension;
///  - permutations: another order of the axes of a dimension, another axis of the same size, or the
///    target itself, where each dimension keeps its number of parts;
///  - other blocks of a dimension, by a general all-to-all;
///  - replicas made summands, where the target is partial.
/// A rank holds source and result of a step at once, except of slices and all-reduces; what is put
/// in order is not counted again.
class ClusterMoveSet final : public redistribution::MoveSet {
 public:
  /// The mesh has at most as many ranks as the cluster devices. `cluster` and `cost_model` live
  /// longer than the move set.
  ClusterMoveSet(const redistribution::Problem& problem, const cluster::Cluster& cluster,
                 const cost_models::CostModel& cost_model,
                 const ClusterMoveSetOptions& options = {});

  void Expand(const redistribution::PackedLayout& layout,
              std::vector<redistribution::Move>& moves) const override;
  redistribution::StepCost CostOf(const redistribution::PackedLayout& before,
                                  const redistribution::Step& step) const override;
  redistribution::StepVolume VolumeOf(const redistribution::PackedLayout& before,
                                      const redistribution::Step& step) const override;
  int64_t Elements(const redistribution::PackedLayout& layout) const override;
  std::string NameOf(const redistribution::PackedLayout& before,
                     const redistribution::Step& step) const override;
  /// Without axes of one rank.
  redistribution::PackedLayout Normal(const redistribution::PackedLayout& layout) const override;

 private:
  class Expansion;

  // Before and behind a collective: the bytes that a rank puts in another order, 0 where there is
  // no need to.
  struct Copies {
    Bytes before, behind;
  };
  Copies CopiesOf(const redistribution::PackedLayout& before,
                  const redistribution::Step& step) const;
  // Whether the parts of dimension `dim` lie one after another in what the fullest rank holds.
  bool IsOutermost(const redistribution::PackedLayout& layout, int dim) const;
  redistribution::StepCost CostOfMakingPartial(const redistribution::Step& step, Bytes size) const;

  const redistribution::Problem problem_;
  const cluster::Cluster& cluster_;
  const ClusterMoveSetOptions options_;
  const CollectiveTimes times_;  // memoised, so a move set is not for several threads
  redistribution::PackedLayout target_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_CLUSTER_MOVE_SET_H_
