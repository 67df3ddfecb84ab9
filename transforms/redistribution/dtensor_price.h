#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_PRICE_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_PRICE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "ir/mesh.h"
#include "transforms/redistribution/move_set.h"

// What PyTorch's DTensor takes a collective to cost
// (torch/distributed/tensor/_collective_utils.py): a launch, a hop for each neighbour in the ring,
// and the bytes over the ring's link. Microseconds.

namespace orrery::transforms::redistribution {

/// Microseconds that a collective takes before the first hop.
inline constexpr double kDtensorLaunch = 6.6;

/// Ranks in a ring of equal links.
struct DtensorRing {
  int64_t ranks = 1;
  double bandwidth = 0;  // 2^30 bytes a second
  double latency = 0;    // microseconds a hop
};

/// Gathering what makes `bytes` together; reduce-scattering `bytes` costs the same.
StepCost DtensorAllGather(const DtensorRing& ring, double bytes);
/// All-reducing `bytes`.
StepCost DtensorAllReduce(const DtensorRing& ring, double bytes);
/// Exchanging the `bytes` that each rank holds; DTensor adds a penalty of a microsecond.
StepCost DtensorAllToAll(const DtensorRing& ring, double bytes, double penalty);

/// Mesh axes as bits.
using AxisMask = uint32_t;
AxisMask MaskOf(const ir::AxisList& axes);

/// Which link each axis of a mesh uses: one within hosts or one between them. An axis is between
/// hosts as soon as it and those to its right have more ranks than a host has devices. As in
/// DTensor, a group of an axis within hosts that straddles two is not noticed.
class DtensorTopology {
 public:
  /// Requires at least one device a host.
  DtensorTopology(const ir::Mesh& mesh, int64_t devices_per_host);

  int axes() const { return axes_; }
  const DtensorRing& ring(ir::AxisIndex axis) const { return rings_[axis]; }
  /// One ring through all ranks of `axes`, over the slowest of their links.
  DtensorRing Flat(AxisMask axes) const;

 private:
  int axes_ = 0;
  std::array<DtensorRing, ir::kMaxAxes> rings_;
};

/// Prices of all collectives over a tensor, by the axes that they work over and the axes that split
/// the tensor. Sizes are the tensor's over the number of its parts, as if all split evenly: DTensor
/// counts so.
///
/// DTensor has no price for a collective over several axes. Here it is the least of
///  - one flat ring over the slowest of the links, with one launch, and
///  - stages over parts of the axes, each a flat ring with a launch of its own: an all-reduce
///    reduce-scatters over some axes, all-reduces over the rest, and gathers again (hierarchical).
/// So each byte is paid for on links that it can take, and a launch is only saved where one group
/// does all. Stages that reduce the same numbers in several groups at once are not among them: each
/// number is reduced by one group, and all ranks get that group's bits.
class DtensorPrices {
 public:
  /// Of a tensor of `bytes`, with `penalty` on each all-to-all. Without `merge`, the price for
  /// several axes is that of the flat ring.
  DtensorPrices(const DtensorTopology& topology, double bytes, double penalty, bool merge);

  /// What a rank holds when `splitting` axes split the tensor.
  double bytes(AxisMask splitting) const { return bytes_[splitting]; }
  /// Reduce-scattering over `axes` when `splitting`, none of them among `axes`, split the tensor;
  /// also all-gathering over `axes`, when `splitting` are those that split it after.
  double scatter(AxisMask axes, AxisMask splitting) const { return scatter_[At(axes, splitting)]; }
  double reduce(AxisMask axes, AxisMask splitting) const { return reduce_[At(axes, splitting)]; }
  /// An all-to-all over `axis`, one of `splitting`.
  double exchange(ir::AxisIndex axis, AxisMask splitting) const {
    return exchange_[At(axis, splitting)];
  }

  /// The same with their parts.
  StepCost ScatterCost(AxisMask axes, AxisMask splitting) const;
  StepCost ReduceCost(AxisMask axes, AxisMask splitting) const;
  StepCost ExchangeCost(ir::AxisIndex axis, AxisMask splitting) const;

 private:
  size_t At(AxisMask row, AxisMask splitting) const {
    return (static_cast<size_t>(row) << topology_.axes()) + splitting;
  }
  void Fill(AxisMask axes, AxisMask splitting, bool stages);

  DtensorTopology topology_;
  double penalty_;
  std::vector<double> bytes_;                           // by splitting axes
  std::vector<double> scatter_;                         // by At
  std::vector<double> reduce_;                          // by At
  std::vector<double> exchange_;                        // by At
  std::vector<AxisMask> scatter_first_, reduce_first_;  // axes of the first stage, by At
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_PRICE_H_
