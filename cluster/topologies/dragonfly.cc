#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/topologies.h"

// A dragonfly (Kim et al. 2008): levels[0].size devices on a router, levels[1].size routers in a
// group, each linked with each, levels[2].size groups, each linked with each by one link. The
// speeds are those of a port, of a link in a group and of one between groups. A router has at most
// levels[2].parents links to other groups.
//
//     group 0: router - router      group 1: router - router
//                 |      \______global______/    |
//                 +------ to the other groups ---+
//
// Minimal routing: in the group to the router that has the link to the other group, over it, and in
// that group to the device's router. (Two links between groups may now and then be a shorter way;
// no dragonfly routes so, because it would load two of its narrowest links.)

namespace orrery::cluster {
namespace dragonfly_cc {
namespace {

struct Sizes {
  int64_t devices;  // all
  int64_t ports;    // devices of a router
  int64_t routers;  // of a group
  int64_t groups;

  int64_t first_local() const { return 2 * devices; }
  int64_t locals() const { return routers * (routers - 1); }  // of a group
  int64_t first_global() const { return first_local() + groups * locals(); }
  int64_t globals() const { return groups - 1; }  // of a group
  VertexId Router(int64_t group, int64_t router) const {
    return VertexId(static_cast<int32_t>(devices + group * routers + router));
  }
  // The position of the link from one group to another among the globals of the first; a group's
  // links go round its routers.
  int64_t Position(int64_t from, int64_t to) const { return (to - from - 1 + groups) % groups; }
  int64_t Gateway(int64_t from, int64_t to) const { return Position(from, to) % routers; }
  LinkNumber Local(int64_t group, int64_t from, int64_t to) const {
    return first_local() + group * locals() + from * (routers - 1) + (to < from ? to : to - 1);
  }
};

Sizes SizesOf(const TopologyShape& shape) {
  return {shape.devices, shape.levels[0].size, shape.levels[1].size, shape.levels[2].size};
}

absl::Status Check(const TopologyShape& shape) {
  if (shape.levels.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", shape.levels.size(),
                     " levels; wanted 3: devices of a router, routers of a group, groups"));
  }
  if (absl::Status levels = CheckLevels(shape); !levels.ok()) return levels;
  if (absl::Status port = CheckRate("level 0", shape.levels[0].speed); !port.ok()) return port;
  const int64_t most = int64_t{shape.levels[1].size} * shape.levels[2].parents + 1;
  if (shape.levels[2].size <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "got ", shape.levels[2].size, " groups; wanted at most ", most, ", as each of ",
      shape.levels[1].size, " routers has ", shape.levels[2].parents, " links to other groups"));
}

int64_t LinkCount(const TopologyShape& shape) {
  const Sizes sizes = SizesOf(shape);
  return sizes.first_global() + sizes.groups * sizes.globals();
}

Link PortAt(const TopologyShape& shape, const Sizes& sizes, int64_t link) {
  const int64_t router = link / 2 / sizes.ports;
  Link row = {VertexId(static_cast<int32_t>(link / 2)), sizes.Router(0, router),
              shape.levels[0].speed, "port"};
  if (link % 2 == 1) std::swap(row.from, row.to);
  return row;
}

Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  const Sizes sizes = SizesOf(shape);
  if (link < sizes.first_local()) return PortAt(shape, sizes, link);
  if (link < sizes.first_global()) {
    const int64_t group = (link - sizes.first_local()) / sizes.locals();
    const int64_t position = (link - sizes.first_local()) % sizes.locals();
    const int64_t from = position / (sizes.routers - 1);
    const int64_t to = position % (sizes.routers - 1);
    return {sizes.Router(group, from), sizes.Router(group, to < from ? to : to + 1),
            shape.levels[1].speed, "local"};
  }
  const int64_t from = (link - sizes.first_global()) / sizes.globals();
  const int64_t position = (link - sizes.first_global()) % sizes.globals();
  const int64_t to = (from + position + 1) % sizes.groups;
  return {sizes.Router(from, sizes.Gateway(from, to)), sizes.Router(to, sizes.Gateway(to, from)),
          shape.levels[2].speed, "global"};
}

void AppendRoute(const TopologyShape& shape, DeviceId from, DeviceId to,
                 std::vector<LinkNumber>& route) {
  const Sizes sizes = SizesOf(shape);
  int64_t router = from.index() / sizes.ports % sizes.routers;
  const int64_t last = to.index() / sizes.ports % sizes.routers;
  const int64_t group = from.index() / (sizes.ports * sizes.routers);
  const int64_t last_group = to.index() / (sizes.ports * sizes.routers);
  route.push_back(2 * int64_t{from.index()});
  if (group != last_group) {
    const int64_t gateway = sizes.Gateway(group, last_group);
    if (router != gateway) route.push_back(sizes.Local(group, router, gateway));
    route.push_back(sizes.first_global() + group * sizes.globals() +
                    sizes.Position(group, last_group));
    router = sizes.Gateway(last_group, group);
  }
  if (router != last) route.push_back(sizes.Local(last_group, router, last));
  route.push_back(2 * int64_t{to.index()} + 1);
}

// Groups, as their links to others go round them all alike, and the devices of a router.
std::vector<Rotation> Rotations(const TopologyShape& shape) {
  const Sizes sizes = SizesOf(shape);
  return {{.stride = static_cast<int32_t>(sizes.ports * sizes.routers),
           .size = static_cast<int32_t>(sizes.groups)},
          {.size = static_cast<int32_t>(sizes.ports)}};
}

// Those of each router, or each other group, but where links in a group are the narrowest: then a
// way to the gateway's own group may end with one.
void AppendDestinations(const TopologyShape& shape, DeviceId from, std::vector<DeviceSet>& sets) {
  const Sizes sizes = SizesOf(shape);
  const int64_t a_group = sizes.ports * sizes.routers;
  const int64_t group = from.index() / a_group;
  const bool narrow = shape.levels[1].speed.rate < shape.levels[2].speed.rate;
  for (int64_t other = 0; other < sizes.groups; ++other) {
    const int64_t each = other == group || narrow ? sizes.ports : a_group;
    for (int64_t first = other * a_group; first < (other + 1) * a_group; first += each) {
      AppendEvery(1, 0, {first, first + each}, sets);
    }
  }
}

}  // namespace
}  // namespace dragonfly_cc

constinit const TopologyKind kDragonflyTopology = {
    .name = "dragonfly",
    .summary =
        "Groups of routers, all linked in a group and one link between each two groups; "
        "minimal routing.",
    .parameters = "levels",
    .spelling = SizeSpelling::kLevels,
    .example = "dragonfly:4x8x9@25GB/s",
    .check = dragonfly_cc::Check,
    .link_count = dragonfly_cc::LinkCount,
    .link_at = dragonfly_cc::LinkAt,
    .append_route = dragonfly_cc::AppendRoute,
    .rotations = dragonfly_cc::Rotations,
    .append_destinations = dragonfly_cc::AppendDestinations,
    .fewest_links = false,
};

}  // namespace orrery::cluster
