#include "lowering/network/sharding_prices.h"

#include "support/check.h"
#include "transforms/strategies/strategy_graph.h"

namespace orrery::lowering {

using redistribution::MoveKind;

ClusterShardingPrices::ClusterShardingPrices(const ir::Mesh& mesh, const cluster::Cluster& cluster,
                                             const cost_models::CostModel& cost_model,
                                             const ShardingPricesOptions& options)
    : mesh_(mesh),
      cluster_(cluster),
      cost_model_(cost_model),
      kind_(options.kind),
      times_(mesh, options.devices, cluster, cost_model, options.algorithms) {}

double ClusterShardingPrices::OpSeconds(const transforms::LocalOp& op) const {
  const cost_models::OpView view{
      .kind = op.kind, .attributes = op.attributes, .operands = op.operands, .results = op.results};
  return cost_model_.Compute(view, cluster_.kind(kind_)).seconds();
}

double ClusterShardingPrices::StepSeconds(MoveKind kind, const ir::AxisList& axes,
                                          Bytes size) const {
  const auto collective = CollectiveOf(kind);
  if (!collective.has_value()) return 0;
  for (const ir::AxisIndex axis : axes.axes()) {
    ORRERY_CHECK(axis < mesh_.axes().size()) << "axis " << int{axis} << " of another mesh";
  }
  const bool to_all = *collective == cost_models::CollectiveKind::kAllToAll;
  if (to_all && mesh_.size(axes) > cost_models::kMostRanksOfAllToAll) {
    return transforms::strategies::kImpossible;
  }
  return times_.Of(*collective, axes, size).seconds();
}

}  // namespace orrery::lowering
