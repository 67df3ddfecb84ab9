#ifndef ORRERY_COST_MODELS_OVER_LINKS_H_
#define ORRERY_COST_MODELS_OVER_LINKS_H_

#include "cost_models/cost_model.h"

namespace orrery::cost_models {

/// Of models that say what kernels take: messages and collectives take what the links of the
/// topology do, and share these with what else is under way.
class OverLinks : public CostModel {
 public:
  Duration Transfer(Bytes size, const cluster::PathInfo& path) const override;
  Duration Collective(CollectiveKind kind, Bytes size, std::span<const cluster::DeviceId> group,
                      const cluster::Topology& topology) const override;
  bool shares_links() const override { return true; }
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_OVER_LINKS_H_
