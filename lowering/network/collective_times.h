#ifndef ORRERY_LOWERING_NETWORK_COLLECTIVE_TIMES_H_
#define ORRERY_LOWERING_NETWORK_COLLECTIVE_TIMES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/cost_model.h"
#include "ir/mesh.h"
#include "lowering/network/geometry.h"
#include "transforms/redistribution/step.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

class ExchangeStore;

namespace redistribution = transforms::redistribution;

/// The collective that carries out a step of that kind; nothing where ranks exchange nothing. Its
/// size is what a rank brings; of an all-gather what it ends up with.
std::optional<cost_models::CollectiveKind> CollectiveOf(redistribution::MoveKind kind);

/// What lowering gives a collective that stands alone in a program.
/// So many parameters: whose ranks, on what, by which model.
class CollectiveTimes {
 public:
  /// `devices`: of each rank, by its number; empty: rank r is on device r. `cluster` and
  /// `cost_model` live longer.
  CollectiveTimes(const ir::Mesh& mesh, std::vector<int32_t> devices,
                  const cluster::Cluster& cluster, const cost_models::CostModel& cost_model,
                  const cost_models::CollectiveChoice& algorithms);

  CollectiveTimes(const CollectiveTimes&) = delete;
  CollectiveTimes& operator=(const CollectiveTimes&) = delete;

  /// Of all groups of ranks of a pipeline stage along `axes`, ascending, at once. Memoised, so not
  /// for several threads.
  Duration Of(cost_models::CollectiveKind kind, const ir::AxisList& axes, Bytes size) const;

  /// What the rank that adds most adds to what it has, in the first group of ranks along `axes`, by
  /// the algorithm that a library chooses: nothing where switches reduce, or nothing is reduced.
  Bytes Added(cost_models::CollectiveKind kind, const ir::AxisList& axes, Bytes size) const;

 private:
  const cluster::Cluster& cluster_;
  const cost_models::CostModel& cost_model_;
  const cost_models::CollectiveChoice algorithms_;
  const transforms::PipelinedStep step_;  // of no ops: the mesh as lowering sees it
  const Geometry geometry_;
  std::shared_ptr<ExchangeStore> exchanges_;
  using Key = std::tuple<cost_models::CollectiveKind, ir::AxisList, int64_t>;
  mutable std::map<Key, Duration> times_;
  mutable std::map<Key, Bytes> added_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_COLLECTIVE_TIMES_H_
