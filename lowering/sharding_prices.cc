#include "lowering/sharding_prices.h"

namespace orrery::lowering {

using cost_models::CollectiveKind;
using redistribution::StepKind;

ClusterShardingPrices::ClusterShardingPrices(const ir::Mesh& mesh, const cluster::Cluster& cluster,
                                             const cost_models::CostModel& cost_model,
                                             const ShardingPricesOptions& options)
    : cluster_(cluster),
      cost_model_(cost_model),
      times_(mesh, options.devices, cluster, cost_model, options.algorithms) {}

double ClusterShardingPrices::OpSeconds(const transforms::LocalOp& op) const {
  const cost_models::OpView view{
      .kind = op.kind, .attributes = op.attributes, .operands = op.operands, .results = op.results};
  return cost_model_.Compute(view, cluster_.device).seconds();
}

double ClusterShardingPrices::StepSeconds(StepKind kind, const ir::AxisList& axes,
                                          Bytes size) const {
  const auto seconds = [&](CollectiveKind collective) {
    return times_.Of(collective, axes, size).seconds();
  };
  switch (kind) {
    case StepKind::kAllGather:
      return seconds(CollectiveKind::kAllGather);
    case StepKind::kReduceScatter:
      return seconds(CollectiveKind::kReduceScatter);
    case StepKind::kAllReduce:
      return seconds(CollectiveKind::kAllReduce);
    case StepKind::kAllToAll:
    case StepKind::kReblock:
      return seconds(CollectiveKind::kAllToAll);
    case StepKind::kPermute:
      return seconds(CollectiveKind::kSendReceive);
    case StepKind::kSlice:
    case StepKind::kLocalCopy:
      return 0;
    case StepKind::kMakePartial:  // reads and writes all of it
      return (cluster_.device.launch_overhead +
              TransferTime(size * 2, cluster_.device.memory_bandwidth))
          .seconds();
  }
  return 0;
}

}  // namespace orrery::lowering
