#ifndef ORRERY_LOWERING_PRICING_H_
#define ORRERY_LOWERING_PRICING_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "cluster/topology.h"
#include "cost_models/cost_model.h"
#include "lowering/block.h"
#include "lowering/geometry.h"

namespace orrery::lowering {

/// Prices of communication among the ranks of a pipelined step, each looked up once. Also answers
/// whether all groups of ranks pay the same, which is what folding needs.
class Pricing {
 public:
  Pricing(const Geometry& geometry, const cost_models::CostModel& cost_model,
          const cluster::Topology& topology)
      : geometry_(geometry), cost_model_(cost_model), topology_(topology) {}

  /// Announces what will be priced, for AllGroupsAlike.
  void Expect(int32_t stage, const BlockTask& task);
  void Expect(int32_t stage, const BlockSend& send);

  /// Whether everything announced costs the same for every group of ranks of its stage.
  bool AllGroupsAlike();

  /// Groups of the ranks of a stage along `axes`, as places within the stage.
  const std::vector<std::vector<int32_t>>& GroupsOf(const ir::AxisList& axes);

  /// Time of a collective in group number `group` of a stage; zero when the group is one rank.
  Duration Collective(int32_t stage, const BlockTask& task, size_t group);

  /// Time of a send from rank number `place` of a stage to the same one of stage send.to.
  Duration Send(int32_t stage, const BlockSend& send, size_t place);

 private:
  using CollectiveKey = std::tuple<int32_t, ir::AxisList, cost_models::CollectiveKind, Bytes>;
  using SendKey = std::tuple<int32_t, int32_t, Bytes>;
  static CollectiveKey KeyOf(int32_t stage, const BlockTask& task) {
    return {stage, task.group, task.collective, task.bytes};
  }
  static SendKey KeyOf(int32_t stage, const BlockSend& send) {
    return {stage, send.to, send.bytes};
  }
  Duration PriceCollective(const CollectiveKey& key, size_t group);
  Duration PriceSend(const SendKey& key, size_t place) const;

  const Geometry& geometry_;
  const cost_models::CostModel& cost_model_;
  const cluster::Topology& topology_;
  std::map<ir::AxisList, std::vector<std::vector<int32_t>>> groups_;
  std::map<CollectiveKey, std::vector<Duration>> collectives_;  // by group
  std::map<SendKey, std::vector<Duration>> sends_;              // by place
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PRICING_H_
