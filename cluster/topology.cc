#include "cluster/topology.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/link_graph.h"
#include "cluster/topologies.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::cluster {
namespace topology_cc {
namespace {

constexpr std::array kTopologies = {
#define ORRERY_TOPOLOGY(Name, file) &k##Name##Topology,
#include "cluster/topologies.def"
#undef ORRERY_TOPOLOGY
};

absl::Status CheckCount(absl::string_view what, int32_t count) {
  if (count >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", count, " ", what, "; wanted at least 1"));
}

// Of a link, as double: 2^62.
constexpr double kMostRate = 4611686018427387904.0;

// Less than that a link, no route's latency is more than its type holds.
constexpr Duration kMostLatency(1'000'000'000'000);

absl::Status CheckSpeed(absl::string_view what, const PathInfo& speed) {
  if (speed.rate < Bandwidth(0) || speed.latency < Duration(0)) {
    return absl::InvalidArgumentError(absl::StrCat("got a ", what, " of ", ToString(speed.rate),
                                                   " and ", ToString(speed.latency),
                                                   "; wanted neither below 0"));
  }
  if (speed.latency <= kMostLatency) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got a ", what, " of ", ToString(speed.latency),
                                                 "; wanted at most ", ToString(kMostLatency)));
}

absl::Status CheckEveryLevel(const TopologyShape& shape) {
  if (shape.levels.size() > kMaxLevels) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", shape.levels.size(), " levels; wanted at most ", kMaxLevels));
  }
  for (size_t i = 0; i < shape.levels.size(); ++i) {
    const Level& level = shape.levels[i];
    if (level.size < 1 || level.size > kMaxDevices || level.parents < 1 ||
        level.parents > kMaxDevices) {
      return absl::InvalidArgumentError(absl::StrCat("got level ", i, " of ", level.size, " with ",
                                                     level.parents, " parents; wanted 1 to ",
                                                     kMaxDevices));
    }
    ORRERY_RETURN_IF_ERROR(CheckSpeed(absl::StrCat("level ", i), level.speed));
  }
  return absl::OkStatus();
}

void CheckPair(const Topology& topology, DeviceId from, DeviceId to) {
  ORRERY_CHECK(from.valid() && to.valid() && from != to && from.index() < topology.devices() &&
               to.index() < topology.devices())
      << "from " << from << " to " << to << " of " << topology.devices();
}

}  // namespace
}  // namespace topology_cc

absl::Status CheckRate(absl::string_view what, const PathInfo& speed) {
  if (speed.rate > Bandwidth(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got a ", what, " of 0 bytes/s; wanted a positive rate"));
}

absl::Status CheckWholeNodes(const TopologyShape& shape) {
  if (shape.devices % shape.devices_per_node == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", shape.devices, " devices in nodes of ",
                                                 shape.devices_per_node,
                                                 "; wanted a whole number of nodes"));
}

absl::Status CheckLevels(const TopologyShape& shape) {
  if (shape.levels.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("got no levels; wanted 1 to ", kMaxLevels));
  }
  int64_t product = 1;
  for (size_t i = 0; i < shape.levels.size(); ++i) {
    const Level& level = shape.levels[i];
    product = std::min<int64_t>(product * level.size, int64_t{kMaxDevices} + 1);
    if (level.size > 1) ORRERY_RETURN_IF_ERROR(CheckRate(absl::StrCat("level ", i), level.speed));
  }
  if (product == shape.devices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got ", shape.devices, " devices; wanted the product of the levels, ", product));
}

void AppendAround(DeviceRange outer, DeviceRange inner, std::vector<DeviceSet>& sets) {
  AppendEvery(1, 0, {outer.begin, inner.begin}, sets);
  AppendEvery(1, 0, {inner.end, outer.end}, sets);
}

void AppendEvery(int64_t stride, int64_t rest, DeviceRange range, std::vector<DeviceSet>& sets) {
  // Of numbers below 0 nothing is asked: rest < stride, so these round to 0.
  const auto digit = [&](int64_t number) {
    return static_cast<int32_t>((number - rest + stride - 1) / stride);
  };
  const DeviceSet set = {.stride = static_cast<int32_t>(stride),
                         .rest = static_cast<int32_t>(rest),
                         .size = std::numeric_limits<int32_t>::max(),
                         .first = digit(range.begin),
                         .last = digit(range.end)};
  if (set.first < set.last) sets.push_back(set);
}

std::span<const TopologyKind* const> AllTopologies() { return topology_cc::kTopologies; }

Topology::Topology() : Topology(kFullyConnectedTopology, TopologyShape{}) {}

absl::StatusOr<Topology> Topology::Create(const TopologyKind& kind, const TopologyShape& shape) {
  ORRERY_RETURN_IF_ERROR(topology_cc::CheckCount("devices", shape.devices));
  if (shape.devices > kMaxDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", shape.devices, " devices; wanted at most ", kMaxDevices));
  }
  ORRERY_RETURN_IF_ERROR(topology_cc::CheckCount("devices a node", shape.devices_per_node));
  ORRERY_RETURN_IF_ERROR(topology_cc::CheckSpeed("port", shape.port));
  ORRERY_RETURN_IF_ERROR(topology_cc::CheckSpeed("nic", shape.nic));
  ORRERY_RETURN_IF_ERROR(topology_cc::CheckSpeed("host", shape.host));
  ORRERY_RETURN_IF_ERROR(topology_cc::CheckSpeed("spine", shape.spine));
  ORRERY_RETURN_IF_ERROR(topology_cc::CheckSpeed("bridge", shape.bridge));
  ORRERY_RETURN_IF_ERROR(topology_cc::CheckEveryLevel(shape));
  ORRERY_RETURN_IF_ERROR(kind.check(shape));
  return Topology(kind, shape);
}

PathInfo Topology::Path(DeviceId from, DeviceId to) const {
  topology_cc::CheckPair(*this, from, to);
  if (kind_->path != nullptr && faster_.empty() && slower_ == nullptr) {
    return kind_->path(shape_, from, to);
  }
  std::vector<LinkNumber> route;
  kind_->append_route(shape_, from, to, route);
  PathInfo path = LinkAt(route.front()).speed;
  for (size_t i = 1; i < route.size(); ++i) path = Join(path, LinkAt(route[i]).speed);
  return path;
}

Link Topology::LinkAt(LinkNumber link) const {
  ORRERY_CHECK(link >= 0 && link < link_count()) << "link " << link << " of " << link_count();
  Link row = kind_->link_at(shape_, link);
  if (!faster_.empty() && row.kind == faster_) row.speed.rate = Aggregate(row.speed.rate, factor_);
  if (slower_ == nullptr) return row;
  if (const auto slow = slower_->find(link); slow != slower_->end()) {
    const double rate = static_cast<double>(row.speed.rate.bytes_per_second()) * slow->second;
    row.speed.rate = Bandwidth(static_cast<int64_t>(std::clamp(rate, 1.0, topology_cc::kMostRate)));
  }
  return row;
}

Topology Topology::WithFasterLinks(absl::string_view kind, int64_t factor) const {
  ORRERY_CHECK(factor >= 1) << factor;
  Topology other = *this;
  other.faster_ = std::string(kind);
  other.factor_ = factor;
  return other;
}

Topology Topology::WithSlowerLinks(std::span<const LinkNumber> links, double share) const {
  ORRERY_CHECK(share > 0) << share;
  auto slower = std::make_shared<std::map<LinkNumber, double>>();
  if (slower_ != nullptr) *slower = *slower_;
  for (const LinkNumber link : links) {
    ORRERY_CHECK(link >= 0 && link < link_count()) << "link " << link << " of " << link_count();
    const auto [known, is_new] = slower->try_emplace(link, share);
    if (!is_new) known->second *= share;
  }
  Topology other = *this;
  other.slower_ = std::move(slower);
  return other;
}

void Topology::AppendRoute(DeviceId from, DeviceId to, std::vector<LinkNumber>& route) const {
  topology_cc::CheckPair(*this, from, to);
  kind_->append_route(shape_, from, to, route);
}

void Topology::AppendWay(DeviceId from, DeviceId to, int32_t way,
                         std::vector<LinkNumber>& route) const {
  topology_cc::CheckPair(*this, from, to);
  ORRERY_CHECK(way == 0 || (way > 0 && shape_.graph != nullptr)) << "way " << way;
  if (way == 0) return kind_->append_route(shape_, from, to, route);
  shape_.graph->AppendRoute(from, to, route, way);
}

std::string Topology::FasterLinks() const {
  std::string text = faster_.empty() ? "" : absl::StrCat(faster_, "*", factor_);
  if (slower_ == nullptr) return text;
  for (const auto& [link, share] : *slower_) absl::StrAppend(&text, " ", link, "*", share);
  return text;
}

std::string Topology::VertexName(VertexId vertex) const {
  if (kind_->vertex_name != nullptr) return kind_->vertex_name(shape_, vertex);
  if (vertex.index() < devices()) return ToString(DeviceId(vertex.index()));
  return absl::StrCat("switch", vertex.index() - devices());
}

std::string Topology::LinkName(LinkNumber link) const {
  const Link row = LinkAt(link);
  return absl::StrCat(VertexName(row.from), " -> ", VertexName(row.to), " (", row.kind, ")");
}

bool Topology::SwitchReduces(VertexId vertex) const {
  return kind_->reduces != nullptr && kind_->reduces(shape_, vertex);
}

std::optional<Bandwidth> Topology::Bisection() const {
  return kind_->bisection != nullptr ? kind_->bisection(shape_) : std::nullopt;
}

std::vector<Rotation> Topology::Rotations() const {
  if (kind_->rotations == nullptr || slower_ != nullptr) return {};
  return kind_->rotations(shape_);
}

void Topology::AppendDestinations(DeviceId from, std::vector<DeviceSet>& sets) const {
  // Where some links are faster, others are the narrowest.
  if (kind_->append_destinations == nullptr || !faster_.empty() || slower_ != nullptr) return;
  kind_->append_destinations(shape_, from, sets);
}

const CollectiveProfile& Topology::collective_profile() const {
  static const CollectiveProfile& ideal = *new CollectiveProfile;
  return profile_ == nullptr ? ideal : *profile_;
}

void Topology::SetCollectiveProfile(CollectiveProfile profile) {
  ORRERY_CHECK(CheckCollectiveProfile(profile).ok()) << CheckCollectiveProfile(profile).message();
  profile_ = std::make_shared<const CollectiveProfile>(std::move(profile));
}

}  // namespace orrery::cluster
