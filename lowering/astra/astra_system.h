#ifndef ORRERY_LOWERING_ASTRA_ASTRA_SYSTEM_H_
#define ORRERY_LOWERING_ASTRA_ASTRA_SYSTEM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/topology.h"
#include "cost_models/collectives/collective_kind.h"
#include "simulator/network/network_model.h"
#include "simulator/program/program.h"
#include "support/units.h"

// What ASTRA-sim's system layer does with one collective: it cuts it into chunks, takes each chunk
// through the dimensions of the network, so many at a time in each, and charges endpoints and local
// memory for every message. Here to compare with its results (docs/collectives.md); our own model
// of a collective is in cost_models/collectives. All its times are whole nanoseconds.
//
// - A chunk waits in the queue of its dimension. In each, `active_chunks` are under way: of each
//   rank, which takes up the next when it is done with one.
// - A rank sends the messages of a phase when it has those of the phase before: `endpoint_delay`
//   after the chunk began there, or as soon as it has processed a message once all have arrived.
// - Processing takes `endpoint_delay`, and for a message that is reduced three passes through local
//   memory. The last phase is over when all is processed.
// - All-reduce: reduce-scatter up the dimensions, all-reduce in the last, all-gather down
//   (`local_bandwidth_aware`); or all-reduce in one dimension after the other. All-gather goes down
//   the dimensions and its size is what a rank brings; reduce-scatter and all-to-all go up.

namespace orrery::lowering {

/// One dimension of ASTRA-sim's network: the ranks that differ in it alone.
struct AstraDimension {
  cluster::Topology topology;
  /// By kind of collective, for all its steps: "ring", "direct", "halvingDoubling",
  /// "doubleBinaryTree".
  std::vector<std::string> algorithms;
};

/// A collective as ASTRA-sim is asked for it: what its system layer reads of its input files.
struct AstraCollective {
  cost_models::CollectiveKind kind = cost_models::CollectiveKind::kAllReduce;
  Bytes size = {};  // what each rank brings, for an all-gather too
  std::vector<AstraDimension> dimensions = {};
  int64_t endpoint_delay_ns = 10;
  Bandwidth local_memory = {};
  int64_t chunks = 1;
  int64_t active_chunks = 1;
  bool local_bandwidth_aware = true;
};

/// One dimension that a chunk passes through, and what happens to it there.
struct AstraStep {
  size_t dimension = 0;
  cost_models::CollectiveKind kind = cost_models::CollectiveKind::kAllReduce;
  Bytes size = {};
};

/// The steps of a chunk of `size` bytes, one after the other; none where there is but one rank.
/// Dimensions of one rank are left out.
std::vector<AstraStep> AstraStepsOf(const AstraCollective& collective, Bytes size);

/// Makes the network on which the flows of a program travel.
using NetworkFactory =
    std::function<std::unique_ptr<simulator::NetworkModel>(const simulator::Program&)>;

/// When the last rank has finished. By symmetry one group of each dimension is played.
/// InvalidArgument for an algorithm that is not known, or not for that kind or number of ranks.
absl::StatusOr<Duration> PlayAstra(const AstraCollective& collective,
                                   const NetworkFactory& network);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_ASTRA_ASTRA_SYSTEM_H_
