#ifndef ORRERY_LOWERING_NETWORK_TRANSFERS_H_
#define ORRERY_LOWERING_NETWORK_TRANSFERS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "cluster/topology.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/collectives/rounds.h"
#include "simulator/program/program.h"

// Every transfer of a collective as a message of its own: what a simulation without folding plays,
// and what the prices of collectives are tested against.

namespace orrery::lowering {

/// Adds the links of a topology to a program as resources, each when it is first asked for.
class LinkResources {
 public:
  LinkResources(const cluster::Topology& topology, simulator::Program& program)
      : topology_(topology), program_(program) {}

  /// The resource of a link, which the program gets where it has it not yet.
  simulator::ResourceId Find(cluster::LinkNumber link);
  /// The flow of a message over `route`, which loads each of its links once.
  simulator::FlowId AddMessage(Bytes size, std::span<const cluster::LinkNumber> route);

  const cluster::Topology& topology() const { return topology_; }
  /// The program that gets the resources.
  simulator::Program& program() { return program_; }

 private:
  const cluster::Topology& topology_;
  simulator::Program& program_;
  absl::flat_hash_map<cluster::LinkNumber, simulator::ResourceId> resources_;
  std::vector<simulator::Load> loads_;
};

/// The most transfers that AddTransfers adds.
inline constexpr int64_t kMaxTransfers = int64_t{1} << 22;

/// Adds to the program a task for every transfer of `rounds` among `group`, whose rank r is device
/// r. A transfer begins when both its ends have sent and received everything of the rounds before;
/// among rounds that overlap, when what it sends has arrived, so that rings of different lengths go
/// on at their own pace. Parts are of whole bytes, rounded up. ResourceExhausted when there would
/// be more than kMaxTransfers.
absl::Status AddTransfers(cost_models::DeviceGroup group, const cost_models::Rounds& rounds,
                          Bytes size, LinkResources& links);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_TRANSFERS_H_
