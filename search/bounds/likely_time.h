#ifndef ORRERY_SEARCH_BOUNDS_LIKELY_TIME_H_
#define ORRERY_SEARCH_BOUNDS_LIKELY_TIME_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "cost_models/collectives/collective_kind.h"
#include "search/bounds/least_memory.h"
#include "search/bounds/time_bound.h"
#include "search/settings/setting.h"
#include "support/units.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/mesh_order.h"

namespace orrery::search {

/// What ranks have to tell each other of a step of one device, over the whole batch, once it is
/// split in Megatron's way (Shoeybi et al. 1909.08053, section 3): bytes, and in how many parts.
struct LikelyTraffic {
  double hp_bytes = 0;  // all-reduced: of each two products in a row the narrow side, both ways
  double hp_count = 0;
  double cp_bytes = 0;  // keys and values, which attention gathers
  double cp_count = 0;
};
/// That of a step.
LikelyTraffic TrafficOf(const ir::Function& step);

/// How long the steps of plans are likely to take: the bound, longer where stages cannot all have
/// as many layers, and collectives as if nothing hid them, but what ZeRO's third stage gathers. No
/// bound: for who cannot play all plans, and asks which to begin with. Remembers what plans share:
/// not for several threads at once.
class LikelyTime {
 public:
  /// `setting` lives longer.
  explicit LikelyTime(const Setting& setting);

  /// Seconds of a step, which takes `least`.
  double SecondsOf(const ParallelPlan& plan, Duration least);

 private:
  // Of a collective: what it takes however small it is, and for each byte.
  struct Price {
    double start_s = 0, byte_s = 0;
  };
  Price PriceOf(cost_models::CollectiveKind kind, int64_t ranks, int64_t stride);
  int64_t StrideOf(const ParallelPlan& plan, absl::string_view axis);
  void TakeOrder(const transforms::MeshOrder& order);

  const Setting& setting_;
  const LikelyTraffic traffic_;
  const WeightBytes weights_;
  const double layers_;  // 0: none are alike
  std::map<std::tuple<cost_models::CollectiveKind, int64_t, int64_t>, Price> prices_;
  transforms::MeshOrder order_;                    // of the last plan
  std::vector<const transforms::AxisInfo*> axes_;  // in that order
  KnownSplits splits_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_BOUNDS_LIKELY_TIME_H_
