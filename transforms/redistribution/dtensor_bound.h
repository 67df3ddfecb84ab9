#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_BOUND_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_BOUND_H_

#include <cstdint>
#include <vector>

#include "ir/mesh.h"
#include "ir/type.h"
#include "transforms/redistribution/dtensor_price.h"
#include "transforms/redistribution/packed_layout.h"

namespace orrery::transforms::redistribution {

/// What a mesh axis does in the target of a redistribution.
struct DtensorGoal {
  ir::AxisIndex axis = 0;
  AxisRole role = AxisRole::kReplicates;
  ir::Reduction reduction = ir::Reduction::kSum;  // of a partial axis
  int dim = -1;                                   // that it splits
  int position = 0;                               // within how many other axes
  ir::AxisIndex outside = 0;                      // the next of these, if there are any
  int32_t classes = 1, stride = 1;                // of the axis in the numbers of nodes
};

/// A lower bound of what a redistribution with DTensor's moves costs from any layout: exactly the
/// least cost in a smaller graph, in which an axis only replicates, is partial, splits as it
/// should, splits elsewhere, or is stuck: in its dimension, but not within the axes that it should
/// be within, so that it must leave and come back. Each step of the move set is a step in there, of
/// the same cost, since prices depend only on which axes split the tensor. The graph has at most 5
/// to the number of axes nodes; all are solved at once, backwards from the target.
/// So many parameters: made at one place.
class DtensorBound {
 public:
  /// `make_partial` has what it costs to make an axis partial, by the axes that split the tensor.
  /// `merge`: steps may be over several axes. Such a step costs at least one launch, and what steps
  /// over one axis each cost without theirs.
  DtensorBound(const DtensorTopology& topology, const DtensorPrices& prices,
               const std::vector<double>& make_partial, const PackedLayout& target, bool merge);

  double operator()(const PackedLayout& layout) const;

 private:
  std::vector<DtensorGoal> goals_;  // an axis comes after those outside of it
  std::vector<double> least_;       // by node
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_BOUND_H_
