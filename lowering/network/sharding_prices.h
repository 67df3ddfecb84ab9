#ifndef ORRERY_LOWERING_NETWORK_SHARDING_PRICES_H_
#define ORRERY_LOWERING_NETWORK_SHARDING_PRICES_H_

#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/cost_model.h"
#include "lowering/network/collective_times.h"
#include "transforms/sharding/sharding_prices.h"

namespace orrery::lowering {

namespace redistribution = transforms::redistribution;

/// Where the ranks of the mesh are, and which algorithms carry out their collectives.
struct ShardingPricesOptions {
  std::vector<int32_t> devices = {};  // of each rank, by its number; empty: rank r is on device r
  cost_models::CollectiveChoice algorithms = {};
  int32_t kind = 0;  // of the devices that compute, by its number in the cluster
};

/// What lowering gives the ops of a training step on a cluster: kernels by the cost model,
/// collectives as if each stood alone. Memoised, so not for several threads.
class ClusterShardingPrices final : public transforms::ShardingPrices {
 public:
  /// The mesh has at most as many ranks as the cluster devices. `cluster` and `cost_model` live
  /// longer.
  ClusterShardingPrices(const ir::Mesh& mesh, const cluster::Cluster& cluster,
                        const cost_models::CostModel& cost_model,
                        const ShardingPricesOptions& options = {});

  double OpSeconds(const transforms::LocalOp& op) const override;
  double StepSeconds(redistribution::MoveKind kind, const ir::AxisList& axes,
                     Bytes size) const override;

 private:
  const ir::Mesh mesh_;
  const cluster::Cluster& cluster_;
  const cost_models::CostModel& cost_model_;
  const int32_t kind_;
  const CollectiveTimes times_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_SHARDING_PRICES_H_
