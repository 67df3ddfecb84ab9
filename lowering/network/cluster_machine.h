#ifndef ORRERY_LOWERING_NETWORK_CLUSTER_MACHINE_H_
#define ORRERY_LOWERING_NETWORK_CLUSTER_MACHINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "lowering/network/transfers.h"
#include "simulator/ranks/rank_programs.h"

namespace orrery::lowering {

/// A cluster as what programs of ranks run on: rank r is device r. A message is a flow on its
/// route. A collective is one flow with the loads of the algorithm that is chosen for it (see
/// docs/adr/0007), so that communicators that share links slow each other down.
class ClusterMachine : public simulator::Machine {
 public:
  /// Adds links and flows to `program`. Both must outlive this.
  ClusterMachine(const cluster::Cluster& cluster, simulator::Program& program,
                 cost_models::CollectiveChoice choice = {});

  absl::StatusOr<simulator::RankClass> RankOf(int32_t rank) override;
  absl::StatusOr<simulator::Task> TimeOf(const simulator::Call& call) override;

  /// The names of all kinds of collective.
  static std::vector<absl::string_view> Collectives();

 private:
  const cluster::Cluster& cluster_;
  simulator::Program& program_;
  cost_models::CollectiveChoice choice_;
  LinkResources links_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_CLUSTER_MACHINE_H_
