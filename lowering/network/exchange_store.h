#ifndef ORRERY_LOWERING_NETWORK_EXCHANGE_STORE_H_
#define ORRERY_LOWERING_NETWORK_EXCHANGE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/topology.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/cost_model.h"
#include "ir/mesh.h"
#include "lowering/network/exchange.h"
#include "lowering/network/link_classes.h"
#include "lowering/network/places.h"

namespace orrery::lowering {

/// An exchange of a step, and what its ranks can do beside it.
struct PlacedExchange {
  const Exchange* exchange = nullptr;
  absl::InlinedVector<Lane, 2> lanes = {};
  bool alike = true;  // all groups of the stage, by themselves; some may choose otherwise

  friend bool operator==(const PlacedExchange&, const PlacedExchange&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const PlacedExchange& placed) {
    return H::combine(std::move(hash), placed.exchange, placed.lanes, placed.alike);
  }
};

/// Which groups of ranks: those at a position of "pp" along axes, or that send to another position,
/// in the order in which algorithms of a kind of collective number them.
struct GroupsKey {
  ir::Mesh mesh;
  std::vector<int32_t> devices = {};  // of its ranks, as Geometry has them
  int32_t position = 0;
  int32_t to = -1;         // of sends
  int32_t pairs = -1;      // of sends, as SendRequest has them
  ir::AxisList axes = {};  // of collectives
  cost_models::CollectiveKind kind = cost_models::CollectiveKind::kSendReceive;

  friend bool operator==(const GroupsKey&, const GroupsKey&) = default;
  // Steps of one plan have one mesh.
  template <typename H>
  friend H AbslHashValue(H hash, const GroupsKey& key) {
    return H::combine(std::move(hash), key.position, key.to, key.axes, key.kind);
  }
};

/// Groups of ranks that exchange something, each with those of its own, as devices.
struct GroupList {
  cost_models::CollectiveKind kind = cost_models::CollectiveKind::kSendReceive;
  bool sends = false;  // from position to position: pairs of ranks, whatever the kind
  std::vector<Devices> groups;
  std::vector<PlaceId> places = {};  // of each
};

/// Numbers of groups, in lists of those that look the same to a library, so that it chooses the
/// same for them.
using Layouts = std::vector<std::vector<int32_t>>;

/// Exchanges on one topology and the classes of links that they make, each found once: ways to
/// carry out one plan differ in cuts and orders, less in sizes, and hardly in who exchanges with
/// whom. Groups are priced once a place, whatever exchanges they are of. Not for several threads.
class ExchangeStore {
 public:
  /// `topology` lives longer.
  explicit ExchangeStore(const cluster::Topology& topology)
      : topology_(topology), places_(topology), loads_(topology) {}

  const cluster::Topology& topology() const { return topology_; }

  /// MakeExchange of those groups, which carry out the rounds of what was chosen for the first of
  /// them. It stays where it is for as long as the store lives.
  const Exchange& Find(const std::vector<Devices>& groups,
                       const cost_models::ChosenCollective& chosen);

  /// What `make` makes of the key, once. Likewise.
  const GroupList& Groups(const GroupsKey& key, const std::function<std::vector<Devices>()>& make);

  /// The layouts of a list of this store; all sends to a position are alike. Likewise.
  const Layouts& LayoutsOf(const GroupList& list);

  /// Find of those groups of a list of this store. Requires one of the list's own layouts.
  const Exchange& Find(const GroupList& list, const std::vector<int32_t>& layout,
                       const cost_models::ChosenCollective& chosen);

  /// What the cost model plans for the request, found once; where groups of that place were planned
  /// for, what was planned for the first, which it names. Likewise; the model lives longer.
  const cost_models::ChosenCollective& PlanOf(const cost_models::CostModel& cost_model,
                                              const cost_models::CollectiveRequest& request,
                                              const cost_models::CollectiveChoice& choice);

  /// The classes of links by what those exchanges put on them. Likewise. Requires exchanges that
  /// live as long as the store, as its own do.
  const LinkClasses& ClassesOf(std::span<const PlacedExchange> exchanges);

  /// Whether all groups of each of those exchanges see the same classes.
  bool GroupsSeeTheSame(std::span<const PlacedExchange> exchanges);

 private:
  const Exchange& Find(const std::vector<Devices>& groups, const std::vector<PlaceId>& places,
                       const cost_models::ChosenCollective& chosen);
  // The devices of all groups in a row, how many a group, and what they carry out.
  using Key = std::tuple<std::vector<cluster::DeviceId>, size_t, cost_models::RoundsKey>;
  // Of a list, the first group of a layout, which is in no other one.
  using ListKey = std::tuple<const GroupList*, int32_t, cost_models::RoundsKey>;

  // All that a plan follows from, but the topology.
  struct PlanKey {
    PlaceId place;
    const cost_models::CostModel* cost_model = nullptr;
    cost_models::CollectiveKind kind = cost_models::CollectiveKind::kSendReceive;
    Bytes size;
    cost_models::CollectiveChoice choice;

    friend bool operator==(const PlanKey&, const PlanKey&) = default;
    // Choices of one plan are one.
    template <typename H>
    friend H AbslHashValue(H hash, const PlanKey& key) {
      return H::combine(std::move(hash), key.place, key.cost_model, key.kind, key.size.count());
    }
  };

  // What follows from exchanges together.
  struct Seen {
    LinkClasses classes;
    bool the_same = true;
  };
  const Seen& SeenBy(std::span<const PlacedExchange> exchanges);

  const cluster::Topology& topology_;
  Places places_;
  absl::flat_hash_map<std::pair<PlaceId, cost_models::RoundsKey>, std::unique_ptr<GroupPrice>>
      prices_;
  absl::flat_hash_map<PlaceId, cost_models::KeptCosts> costs_;  // of plans
  absl::flat_hash_map<PlanKey, std::unique_ptr<const cost_models::ChosenCollective>> plans_;
  absl::flat_hash_map<Key, std::unique_ptr<const Exchange>> exchanges_;
  absl::flat_hash_map<ListKey, const Exchange*> exchanges_of_lists_;
  absl::flat_hash_map<GroupsKey, std::unique_ptr<const GroupList>> lists_;
  absl::flat_hash_map<const GroupList*, std::unique_ptr<const Layouts>> layouts_;
  LinkLoads loads_;
  absl::flat_hash_map<const Exchange*, int32_t> loaded_;  // numbers of exchanges in loads_
  absl::flat_hash_map<std::vector<PlacedExchange>, std::unique_ptr<const Seen>> seen_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_EXCHANGE_STORE_H_
