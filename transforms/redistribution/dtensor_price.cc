#include "transforms/redistribution/dtensor_price.h"

#include <algorithm>

#include "support/check.h"

namespace orrery::transforms::redistribution {
namespace dtensor_price_cc {
namespace {

using ir::AxisIndex;

constexpr double kGigabyte = 1 << 30;
constexpr DtensorRing kWithinHosts = {.bandwidth = 87.7, .latency = 0.6};
constexpr DtensorRing kBetweenHosts = {.bandwidth = 87.7 * 0.22, .latency = 2.7};

StepCost Sum(const StepCost& a, const StepCost& b) {
  return {.launches = a.launches + b.launches,
          .latency = a.latency + b.latency,
          .transfer = a.transfer + b.transfer};
}

// The order of the operations is DTensor's, for the sake of the last bit.
StepCost Circled(const DtensorRing& ring, double bytes, double rounds) {
  const auto ranks = static_cast<double>(ring.ranks);
  const double hops = rounds * (ranks - 1);
  return {.launches = kDtensorLaunch,
          .latency = hops * ring.latency,
          .transfer = bytes / kGigabyte * (hops / ranks) / ring.bandwidth * 1e6};
}

}  // namespace
}  // namespace dtensor_price_cc

StepCost DtensorAllGather(const DtensorRing& ring, double bytes) {
  return dtensor_price_cc::Circled(ring, bytes, 1);
}

StepCost DtensorAllReduce(const DtensorRing& ring, double bytes) {
  return dtensor_price_cc::Circled(ring, bytes, 2);
}

StepCost DtensorAllToAll(const DtensorRing& ring, double bytes, double penalty) {
  StepCost cost = dtensor_price_cc::Circled(ring, bytes, 1);
  cost.copy = penalty;
  return cost;
}

AxisMask MaskOf(const ir::AxisList& axes) {
  AxisMask mask = 0;
  for (const ir::AxisIndex axis : axes.axes()) mask |= 1u << axis;
  return mask;
}

DtensorTopology::DtensorTopology(const ir::Mesh& mesh, int64_t devices_per_host)
    : axes_(static_cast<int>(mesh.axes().size())) {
  ORRERY_CHECK(devices_per_host >= 1) << devices_per_host;
  int64_t ranks = 1;
  for (int axis = axes_ - 1; axis >= 0; --axis) {
    const int64_t size = mesh.size(static_cast<ir::AxisIndex>(axis));
    ranks *= size;
    DtensorRing& ring = rings_[static_cast<size_t>(axis)];
    ring =
        ranks > devices_per_host ? dtensor_price_cc::kBetweenHosts : dtensor_price_cc::kWithinHosts;
    ring.ranks = size;
  }
}

DtensorRing DtensorTopology::Flat(AxisMask axes) const {
  DtensorRing flat = dtensor_price_cc::kWithinHosts;
  for (int axis = 0; axis < axes_; ++axis) {
    if ((axes >> axis & 1) == 0) continue;
    const DtensorRing& ring = rings_[static_cast<size_t>(axis)];
    flat.ranks *= ring.ranks;
    flat.bandwidth = std::min(flat.bandwidth, ring.bandwidth);
    flat.latency = std::max(flat.latency, ring.latency);
  }
  return flat;
}

DtensorPrices::DtensorPrices(const DtensorTopology& topology, double bytes, double penalty,
                             bool merge)
    : topology_(topology), penalty_(penalty) {
  const AxisMask sets = 1u << topology.axes();
  for (AxisMask splitting = 0; splitting < sets; ++splitting) {
    bytes_.push_back(bytes / static_cast<double>(topology.Flat(splitting).ranks));
  }
  for (auto* table : {&scatter_, &reduce_, &exchange_}) table->resize(At(sets, 0));
  scatter_first_.resize(At(sets, 0));
  reduce_first_.resize(At(sets, 0));
  // Stages after the first are over fewer axes, which come before.
  for (AxisMask axes = 1; axes < sets; ++axes) {
    for (AxisMask splitting = 0; splitting < sets; ++splitting) {
      if ((axes & splitting) == 0) Fill(axes, splitting, merge);
    }
  }
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(topology.axes()); ++axis) {
    for (AxisMask splitting = 0; splitting < sets; ++splitting) {
      exchange_[At(axis, splitting)] = ExchangeCost(axis, splitting).total();
    }
  }
}

void DtensorPrices::Fill(AxisMask axes, AxisMask splitting, bool stages) {
  const size_t at = At(axes, splitting);
  const DtensorRing ring = topology_.Flat(axes);
  scatter_[at] = DtensorAllGather(ring, bytes_[splitting]).total();
  reduce_[at] = DtensorAllReduce(ring, bytes_[splitting]).total();
  scatter_first_[at] = reduce_first_[at] = axes;
  if (!stages) return;
  for (AxisMask first = (axes - 1) & axes; first != 0; first = (first - 1) & axes) {
    const size_t rest = At(axes & ~first, splitting | first);
    const double stage = DtensorAllGather(topology_.Flat(first), bytes_[splitting]).total();
    if (stage + scatter_[rest] < scatter_[at]) {
      scatter_[at] = stage + scatter_[rest];
      scatter_first_[at] = first;
    }
    if (2 * stage + reduce_[rest] < reduce_[at]) {
      reduce_[at] = 2 * stage + reduce_[rest];
      reduce_first_[at] = first;
    }
  }
}

StepCost DtensorPrices::ScatterCost(AxisMask axes, AxisMask splitting) const {
  const AxisMask first = scatter_first_[At(axes, splitting)];
  ORRERY_CHECK(first != 0) << axes << " and " << splitting;
  const StepCost stage = DtensorAllGather(topology_.Flat(first), bytes_[splitting]);
  return first == axes
             ? stage
             : dtensor_price_cc::Sum(stage, ScatterCost(axes & ~first, splitting | first));
}

StepCost DtensorPrices::ReduceCost(AxisMask axes, AxisMask splitting) const {
  const AxisMask first = reduce_first_[At(axes, splitting)];
  ORRERY_CHECK(first != 0) << axes << " and " << splitting;
  if (first == axes) return DtensorAllReduce(topology_.Flat(first), bytes_[splitting]);
  const StepCost stage = DtensorAllGather(topology_.Flat(first), bytes_[splitting]);
  return dtensor_price_cc::Sum(dtensor_price_cc::Sum(stage, stage),
                               ReduceCost(axes & ~first, splitting | first));
}

StepCost DtensorPrices::ExchangeCost(ir::AxisIndex axis, AxisMask splitting) const {
  return DtensorAllToAll(topology_.ring(axis), bytes_[splitting], penalty_);
}

}  // namespace orrery::transforms::redistribution
