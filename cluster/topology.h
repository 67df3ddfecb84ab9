#ifndef ORRERY_CLUSTER_TOPOLOGY_H_
#define ORRERY_CLUSTER_TOPOLOGY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/collective_profile.h"
#include "cluster/link.h"

// A topology says how devices are connected. It is a value of a few numbers, and computes what it
// is asked for, whatever its size: a path's rate and latency, the links of a route, a link from its
// number. cluster/link_graph.h has the explicit graph: of all links of a topology, or one that no
// kind describes.

namespace orrery::cluster {

class LinkGraph;

/// The most devices that a topology may have.
inline constexpr int32_t kMaxDevices = 1 << 20;

/// How the members along one dimension of a product are linked.
enum class LevelKind : uint8_t { kRing, kOneWayRing, kLine, kFullyConnected, kSwitch };

/// One dimension of a torus, mesh or product, one level of a fat tree or dragonfly: the one whose
/// members are nearest comes first.
struct Level {
  int32_t size = 1;                   // members: of the level below, or devices; >= 1
  PathInfo speed = {};                // of a link of this level
  LevelKind kind = LevelKind::kRing;  // product only
  int32_t parents = 1;                // fat tree: switches above each member. Dragonfly: links of
                                      // each router to other groups
  bool reduces = false;               // its switches add up what they are sent

  friend bool operator==(const Level&, const Level&) = default;
};

/// The numbers that a topology is made from; each kind says which of them it reads. So many fields:
/// those of all kinds.
struct TopologyShape {
  int32_t devices = 1;               // 1 to kMaxDevices
  int32_t devices_per_node = 1;      // >= 1
  PathInfo port = {};                // a device's link into its node, or to each of its neighbours
  PathInfo nic = {};                 // a link out of the node: of a device, or of a few
  PathInfo host = {};                // from a device to a nic that it shares
  PathInfo spine = {};               // from a rail's switch to what joins the rails
  PathInfo bridge = {};              // from a board's switch to what joins the boards of a node
  int32_t nics_per_node = 0;         // that its devices share; 0: each has its own
  int32_t boards_per_node = 1;       // each has a switch; >= 1
  bool one_way = false;              // a ring whose messages go round in one direction
  bool port_switch_reduces = false;  // switches between ports add up what they are sent (NVLS)
  bool nic_switch_reduces = false;   // likewise of those between nics (SHARP)
  std::vector<Level> levels = {};    // at most kMaxLevels
  std::shared_ptr<const LinkGraph> graph = {};  // an explicit graph: immutable, copies share it
};

/// The most levels that a topology may have.
inline constexpr size_t kMaxLevels = 8;

/// A link by its number within its topology: 0 to link_count() - 1. A number of 64 bits, as a
/// million devices fully connected have 10^12 links.
using LinkNumber = int64_t;

/// A way to renumber devices that changes nothing: of each device, the digit number / stride % size
/// becomes the next one, and the last the first. Routes become routes, link by link, of the same
/// speeds and kinds, and links that differed differ; likewise the switches that they pass, which
/// reduce where those did.
struct Rotation {
  int32_t stride = 1;
  int32_t size = 1;

  /// Where the device is then.
  DeviceId Of(DeviceId device) const {
    const int32_t digit = device.index() / stride % size;
    return DeviceId(device.index() + (digit + 1 < size ? stride : -digit * stride));
  }
};

/// Devices by their number: it leaves `rest` when divided by `stride`, and number / stride % size
/// is `first` to `last` - 1.
struct DeviceSet {
  int32_t stride = 1;
  int32_t rest = 0;
  int32_t size = 1;
  int32_t first = 0;
  int32_t last = 0;

  /// Whether the device is one of them.
  bool Holds(DeviceId device) const {
    const int32_t digit = device.index() / stride % size;
    return device.index() % stride == rest && digit >= first && digit < last;
  }
};

/// How --cluster spells the size of a topology, behind its name and a colon.
enum class SizeSpelling : uint8_t {
  kNone,     // not at all: only files have it
  kDevices,  // ring:8@50GB/s
  kNodes,    // rails:16x8@450GB/s,nic=50GB/s: nodes and devices of each
  kLevels,   // torus:4x4x2@50GB/s
  kTree,     // fat-tree:1024@50GB/s,radix=64
  kProduct,  // product:ring(4)@100GB/s,switch(8)@50GB/s
};

/// The one record of a kind of topology. All that a new one needs, besides its line in
/// topologies.def. The functions may rely on a shape that `check` accepted.
/// A kind fills in what it needs of so many fields.
struct TopologyKind {
  absl::string_view name;     // "nodes"
  absl::string_view summary;  // one sentence
  /// The fields of a shape that it reads, besides devices: "devices_per_node port nic".
  absl::string_view parameters = {};
  LevelKind usual_level = LevelKind::kRing;  // of a level that does not say
  SizeSpelling spelling = SizeSpelling::kNone;
  absl::string_view example = {};  // of --cluster, where it is spelled
  /// What is wrong with a shape, beyond what Topology::Create checks for every kind.
  absl::Status (*check)(const TopologyShape& shape) = nullptr;
  /// How many links there are.
  int64_t (*link_count)(const TopologyShape& shape) = nullptr;
  /// The link of that number, 0 to link_count - 1. Vertices 0 to devices-1 are the devices, then
  /// come the switches.
  Link (*link_at)(const TopologyShape& shape, LinkNumber link) = nullptr;
  /// Appends the links from one device to another, in order. Called from many threads at once.
  void (*append_route)(const TopologyShape& shape, DeviceId from, DeviceId to,
                       std::vector<LinkNumber>& route) = nullptr;
  /// Rate and latency of that route in closed form. Left out, its links are joined.
  PathInfo (*path)(const TopologyShape& shape, DeviceId from, DeviceId to) = nullptr;
  /// See Topology::Bisection. Left out, no closed form is known for any shape.
  std::optional<Bandwidth> (*bisection)(const TopologyShape& shape) = nullptr;
  /// See Topology::SwitchReduces. Left out, no switch does.
  bool (*reduces)(const TopologyShape& shape, VertexId vertex) = nullptr;
  /// See Topology::Rotations. Left out, none is known.
  std::vector<Rotation> (*rotations)(const TopologyShape& shape) = nullptr;
  /// See Topology::AppendDestinations. Left out, nothing is known of where routes part.
  void (*append_destinations)(const TopologyShape& shape, DeviceId from,
                              std::vector<DeviceSet>& sets) = nullptr;
  /// The name of a vertex; left out, they are numbered.
  std::string (*vertex_name)(const TopologyShape& shape, VertexId vertex) = nullptr;
  /// Whether the levels are the dimensions of a grid: the device number counts along levels[0]
  /// first, and devices that differ along one dimension only meet within it.
  bool grid = false;
  /// Whether no route has more links than it needs; a test holds routes to that.
  bool fewest_links = true;
  /// Whether any way to renumber devices changes nothing, as a Rotation does not.
  bool interchangeable = false;
};

/// All kinds of topology, in the order of topologies.def.
std::span<const TopologyKind* const> AllTopologies();

/// How the devices of a cluster are linked: a kind, and the numbers that make it this one. As cheap
/// to copy as its shape, however many devices it has.
class Topology {
 public:
  /// One device, alone.
  Topology();
  /// A topology of that kind; InvalidArgument says which number of the shape is wrong and why.
  /// `kind` must outlive it: it is one of AllTopologies().
  static absl::StatusOr<Topology> Create(const TopologyKind& kind, const TopologyShape& shape);

  const TopologyKind& kind() const { return *kind_; }
  const TopologyShape& shape() const { return shape_; }
  int32_t devices() const { return shape_.devices; }

  /// Rate and latency from one device to another when nobody else sends: of the links of its
  /// route, joined. Requires two different devices of this topology.
  PathInfo Path(DeviceId from, DeviceId to) const;

  /// How many links it has, one way each.
  int64_t link_count() const { return kind_->link_count(shape_); }

  /// The link of that number. Requires 0 <= link < link_count().
  Link LinkAt(LinkNumber link) const;

  /// Appends the links that a message takes, in order. In O(links), without a search where the
  /// kind is structured; any number of threads may ask. Requires two different devices of this
  /// topology.
  void AppendRoute(DeviceId from, DeviceId to, std::vector<LinkNumber>& route) const;

  /// The same by another of the ways that an explicit graph has between the two, as good as that of
  /// AppendRoute, which is way 0. Ways beyond their number begin anew. Of other kinds of topology
  /// there is way 0 alone. Requires 0 <= way.
  void AppendWay(DeviceId from, DeviceId to, int32_t way, std::vector<LinkNumber>& route) const;

  /// "", or "nic*4" where links are faster than those that the topology was made of; those that are
  /// slower are named behind, each by itself.
  std::string FasterLinks() const;

  /// The same, but that all links of that kind ("nic") have `factor` times their rate:
  /// for questions of what if. Bisection stays what it is without.
  Topology WithFasterLinks(absl::string_view kind, int64_t factor) const;

  /// The same, but that these links have `share` of their rate, each rounded to no less than a byte
  /// a second: degraded ones. What was slowed down before stays so. Requires links of this topology
  /// and a positive share. It has no closed forms and rotations, which knew nothing of that.
  Topology WithSlowerLinks(std::span<const LinkNumber> links, double share) const;

  /// Whether any way to renumber devices changes nothing.
  bool interchangeable() const { return kind_->interchangeable && slower_ == nullptr; }

  /// "device3" or, counted from 0 after the devices, "switch0".
  std::string VertexName(VertexId vertex) const;
  /// "device3 -> switch0 (port)".
  std::string LinkName(LinkNumber link) const;

  /// Whether a switch adds up what its ports send it and sends the sum (NVLS, SHARP).
  bool SwitchReduces(VertexId vertex) const;

  /// Over all ways to cut the devices into two halves (of n/2 rounded down and up), the least rate
  /// at which one half can send to the other; 0 for one device. At most what the type holds.
  /// Nothing where no closed form is known.
  std::optional<Bandwidth> Bisection() const;

  /// Rotations that are known of it, by which ranks that are alike are found; not all that there
  /// are.
  std::vector<Rotation> Rotations() const;

  /// Appends sets of devices that hold every other device between them: all routes from `from` to
  /// those of one set begin with the same link, and have the same one as their narrowest, or the
  /// first of several. None where that is not known; then it looks at each device.
  void AppendDestinations(DeviceId from, std::vector<DeviceSet>& sets) const;

  /// What the communication library of these devices adds to the links; ideal unless it was set.
  const CollectiveProfile& collective_profile() const;
  /// Requires a profile that CheckCollectiveProfile accepts.
  void SetCollectiveProfile(CollectiveProfile profile);

 private:
  Topology(const TopologyKind& kind, const TopologyShape& shape) : kind_(&kind), shape_(shape) {}

  const TopologyKind* kind_;
  TopologyShape shape_;
  std::shared_ptr<const CollectiveProfile> profile_ = {};  // null: ideal; copies share it
  std::string faster_ = {};  // kind of the links with `factor_` times their rate
  int64_t factor_ = 1;
  std::shared_ptr<const std::map<LinkNumber, double>> slower_ = {};  // shares; null: none
};

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_TOPOLOGY_H_
