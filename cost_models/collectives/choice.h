#ifndef ORRERY_COST_MODELS_COLLECTIVES_CHOICE_H_
#define ORRERY_COST_MODELS_COLLECTIVES_CHOICE_H_

#include <array>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/pricing.h"

// Which algorithm carries out a collective: the one of the least predicted time, as communication
// libraries choose, or the one that was asked for.

namespace orrery::cost_models {

/// For each kind an algorithm, or none: then the fastest is taken.
class CollectiveChoice {
 public:
  /// Reads "auto" (all open), "ring" (for each kind that it is for), or
  /// "all-reduce=ring,broadcast=tree".
  static absl::StatusOr<CollectiveChoice> Parse(absl::string_view text);

  /// The algorithm of a kind; null where it is open.
  const CollectiveAlgorithm* of(CollectiveKind kind) const {
    return algorithms_[static_cast<size_t>(kind)];
  }
  /// "auto", or "all-reduce=ring,broadcast=tree", which Parse reads.
  std::string ToString() const;

  friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const CollectiveChoice& choice) {
    return H::combine(std::move(h), choice.ToString());
  }

 private:
  std::array<const CollectiveAlgorithm*, kCollectiveKindCount> algorithms_ = {};
};

/// One collective of a group of devices. Rank r is device r, for kinds with a root; for others the
/// order does not matter.
struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Bytes size = {};  // see CollectiveKind
  std::span<const cluster::DeviceId> group;
  /// Whether nobody asks its cost what links carry, but for the busiest (CostOfBusiest).
  bool only_busiest = false;
  /// Where costs are kept for other sizes of the same group on the same topology, or of groups that
  /// a rotation moves onto it; null: nowhere.
  KeptCosts* costs = nullptr;
};

/// What was chosen, and what it costs.
struct ChosenCollective {
  const CollectiveAlgorithm* algorithm = nullptr;
  std::vector<cluster::DeviceId> group;  // in the order in which the algorithm numbers the ranks
  CollectiveCall call = {};              // its size is what is moved: nothing for a barrier
  Rounds rounds = {};                    // to be priced: CollectiveAlgorithm::RoundsToPrice
  RoundsCost cost = {};
  cluster::CollectiveProtocol protocol = {};  // the fastest of the topology's profile
  Duration time = {};
};

/// InvalidArgument when a device of `group` is not of `topology` or stands in it twice, or when
/// there are less than two.
absl::Status CheckGroup(std::span<const cluster::DeviceId> group,
                        const cluster::Topology& topology);

/// The devices of `group` in the order in which algorithms number the ranks: as they are for kinds
/// with a root, else by device, and on an explicit graph as a ring passes through them.
std::vector<cluster::DeviceId> RanksOf(CollectiveKind kind,
                                       std::span<const cluster::DeviceId> group,
                                       const cluster::Topology& topology);

/// The collective as algorithms see it: how the group lies in nodes, and what its neighbours meet.
/// Requires a group that CheckGroup accepts, in the order of the ranks.
CollectiveCall MakeCall(const CollectiveRequest& request, const cluster::Topology& topology);

/// The algorithm asked for, or that of the least time, by the fastest protocol of the topology's
/// profile; of equal ones the first of collectives.def, and the first protocol.
/// InvalidArgument when the group is impossible, or the algorithm is not for that kind and group.
absl::StatusOr<ChosenCollective> ChooseCollective(const CollectiveRequest& request,
                                                  const cluster::Topology& topology,
                                                  const CollectiveChoice& choice = {});

/// All-to-alls among more ranks are carried out by no algorithm here.
inline constexpr int64_t kMostRanksOfAllToAll = 1024;

/// The time of ChooseCollective, for requests that are possible.
Duration FastestTime(const CollectiveRequest& request, const cluster::Topology& topology,
                     const CollectiveChoice& choice = {});

/// What the steps of a ring meet that passes through `group` in the order given and back to its
/// first device: the narrowest rate and the largest latency of its hops. Requires at least two
/// devices, all different, of `topology`.
cluster::PathInfo SlowestHop(std::span<const cluster::DeviceId> group,
                             const cluster::Topology& topology);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_CHOICE_H_
