#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/topologies.h"

// An extended generalized fat tree (Öhring et al. 1995). levels[0].size devices make a leaf,
// levels[1].size leaves a pod, and so on; each member of a level hangs on levels[l].parents
// switches above it. Fewer parents than members are oversubscription. levels of (size 2, 1 parent)
// and (size 2, 2 parents):
//
//            switch2      switch3         top: height 2, switches 0 and 1
//             |    \      /    |
//             |     +----+     |
//             |    /      \    |
//            switch0      switch1         leaves: height 1
//             /   \        /   \.
//       device0 device1 device2 device3
//
// The last pod may be partly filled: there may be fewer devices than the sizes' product.
//
// A message climbs to the lowest switch above both ends and comes down. The way up is chosen by its
// destination alone (D-mod-k: at each height another digit of the destination's number), so that
// all messages to a device share one way down and unlike destinations spread over the switches.

namespace orrery::cluster {
namespace fat_tree_cc {
namespace {

// What holds at one height: a tree of height h has `reach` devices under it and `switches` at its
// top. Height 0 is a device.
struct Height {
  int64_t reach = 1;
  int64_t switches = 1;
  int64_t members = 1;       // all switches of this height, or all devices
  int64_t first_vertex = 0;  // of them
  int64_t first_link = 0;    // of the links from here up: up, down, for each member and parent
};

using Heights = std::array<Height, kMaxLevels + 1>;

// Heights 0 to `top`.
void FillHeights(const TopologyShape& shape, size_t top, Heights& heights) {
  heights[0] = {.members = shape.devices};
  for (size_t h = 0; h < top; ++h) {
    const Level& level = shape.levels[h];
    Height& above = heights[h + 1];
    above.reach = heights[h].reach * level.size;
    above.switches = heights[h].switches * level.parents;
    above.members = (shape.devices + above.reach - 1) / above.reach * above.switches;
    above.first_vertex = heights[h].first_vertex + heights[h].members;
    above.first_link = heights[h].first_link + 2 * heights[h].members * level.parents;
  }
}

// Bounds products before they are made: every height fits a vertex number.
absl::Status CheckSizes(const TopologyShape& shape) {
  constexpr int64_t kMostSwitches = 1 << 28;
  int64_t reach = 1, switches = 1, vertices = shape.devices;
  for (size_t i = 0; i < shape.levels.size(); ++i) {
    const Level& level = shape.levels[i];
    if (reach >= shape.devices && i > 0) {
      return absl::InvalidArgumentError(absl::StrCat("got level ", i, " above ", shape.devices,
                                                     " devices; wanted none, as those below reach ",
                                                     reach));
    }
    reach *= level.size;
    switches *= level.parents;
    vertices += (shape.devices + reach - 1) / reach * switches;
    if (reach > kMostSwitches || vertices > kMostSwitches) {
      return absl::InvalidArgumentError(absl::StrCat("got ", vertices, " vertices at level ", i,
                                                     "; wanted at most ", kMostSwitches));
    }
  }
  if (reach >= shape.devices) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", shape.devices, " devices, of which ",
                                                 shape.levels.size(), " levels reach ", reach,
                                                 "; wanted larger levels or one more"));
}

absl::Status Check(const TopologyShape& shape) {
  if (shape.levels.empty()) return absl::InvalidArgumentError("got no levels; wanted 1 to 8");
  for (size_t i = 0; i < shape.levels.size(); ++i) {
    absl::Status rate = CheckRate(absl::StrCat("level ", i), shape.levels[i].speed);
    if (!rate.ok()) return rate;
  }
  return CheckSizes(shape);
}

int64_t LinkCount(const TopologyShape& shape) {
  Heights heights;
  FillHeights(shape, shape.levels.size(), heights);
  return heights[shape.levels.size()].first_link;
}

// The parent that the link of a member to its choice-th one leads to. A switch's position in its
// tree is its digits: the choices that lead up to it, the lowest first.
VertexId Parent(const Level& level, const Height& here, const Height& above, int64_t member,
                int64_t choice) {
  const int64_t tree = member / here.switches;
  const int64_t position = member % here.switches + here.switches * choice;
  return VertexId(
      static_cast<int32_t>(above.first_vertex + tree / level.size * above.switches + position));
}

Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  Heights heights;
  FillHeights(shape, shape.levels.size(), heights);
  size_t h = 0;
  while (link >= heights[h + 1].first_link) ++h;
  const Level& level = shape.levels[h];
  const int64_t position = (link - heights[h].first_link) / 2;
  const int64_t member = position / level.parents;
  Link row = {VertexId(static_cast<int32_t>(heights[h].first_vertex + member)),
              Parent(level, heights[h], heights[h + 1], member, position % level.parents),
              level.speed, h == 0 ? "port" : "uplink"};
  if ((link - heights[h].first_link) % 2 == 1) std::swap(row.from, row.to);
  return row;
}

// The height of the lowest switch above both.
size_t MeetingHeight(const TopologyShape& shape, DeviceId from, DeviceId to) {
  int64_t a = from.index(), b = to.index();
  size_t height = 0;
  for (; a != b; ++height) {
    a /= shape.levels[height].size;
    b /= shape.levels[height].size;
  }
  return height;
}

void AppendRoute(const TopologyShape& shape, DeviceId from, DeviceId to,
                 std::vector<LinkNumber>& route) {
  const size_t top = MeetingHeight(shape, from, to);
  Heights heights;
  FillHeights(shape, top, heights);
  // Of a member at height h: its position in its tree, the same below `from` and above `to`.
  std::array<int64_t, kMaxLevels> positions;
  std::array<int64_t, kMaxLevels> choices;
  int64_t position = 0;
  for (size_t h = 0; h < top; ++h) {
    positions[h] = position;
    choices[h] = to.index() / heights[h].switches % shape.levels[h].parents;
    const int64_t member = from.index() / heights[h].reach * heights[h].switches + position;
    route.push_back(heights[h].first_link + 2 * (member * shape.levels[h].parents + choices[h]));
    position += heights[h].switches * choices[h];
  }
  for (size_t h = top; h-- > 0;) {
    const int64_t member = to.index() / heights[h].reach * heights[h].switches + positions[h];
    route.push_back(heights[h].first_link + 2 * (member * shape.levels[h].parents + choices[h]) +
                    1);
  }
}

PathInfo Path(const TopologyShape& shape, DeviceId from, DeviceId to) {
  const size_t top = MeetingHeight(shape, from, to);
  PathInfo path = Join(shape.levels[0].speed, shape.levels[0].speed);
  for (size_t h = 1; h < top; ++h) {
    path = Join(path, Join(shape.levels[h].speed, shape.levels[h].speed));
  }
  return path;
}

// Known for a full tree whose top joins an even number of members: half of them, through their
// narrowest height.
std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  if (shape.devices == 1) return Bandwidth(0);
  Heights heights;
  const size_t top = shape.levels.size();
  FillHeights(shape, top, heights);
  if (heights[top].reach != shape.devices || shape.levels.back().size % 2 != 0) return std::nullopt;
  Bandwidth least =
      Aggregate(shape.levels[0].speed.rate, heights[0].members / 2 * shape.levels[0].parents);
  for (size_t h = 1; h < top; ++h) {
    const int64_t links = heights[h].members / 2 * shape.levels[h].parents;
    least = std::min(least, Aggregate(shape.levels[h].speed.rate, links));
  }
  return least;
}

// Members of a level within each tree of the next one. Ways up go by what the destination's number
// leaves when divided by the switches of a height: that must move on with it, in all trees alike.
std::vector<Rotation> Rotations(const TopologyShape& shape) {
  Heights heights;
  const size_t top = shape.levels.size();
  FillHeights(shape, top, heights);
  std::vector<Rotation> rotations;
  for (size_t h = 0; h < top; ++h) {
    const int64_t reach = heights[h + 1].reach;
    bool moves_on = shape.devices % reach == 0;
    for (size_t k = 1; k <= top; ++k) moves_on &= reach % heights[k].switches == 0;
    if (!moves_on) continue;
    rotations.push_back(
        {.stride = static_cast<int32_t>(heights[h].reach), .size = shape.levels[h].size});
  }
  return rotations;
}

// Those that are met at each height, in whose trees the narrowest link is on the way up; the
// choices that lead there are what the destination leaves when divided by the switches above it.
void AppendDestinations(const TopologyShape& shape, DeviceId from, std::vector<DeviceSet>& sets) {
  Heights heights;
  FillHeights(shape, shape.levels.size(), heights);
  size_t narrowest = 0;
  DeviceRange below = {from.index(), from.index() + 1};
  for (size_t h = 0; h < shape.levels.size(); ++h) {
    if (shape.levels[h].speed.rate < shape.levels[narrowest].speed.rate) narrowest = h;
    const int64_t ways = heights[narrowest + 1].switches, reach = heights[h + 1].reach;
    const int64_t first = from.index() / reach * reach;
    const DeviceRange tree = {first, std::min<int64_t>(first + reach, shape.devices)};
    for (int64_t way = 0; way < std::min<int64_t>(ways, shape.devices); ++way) {
      AppendEvery(ways, way, {tree.begin, below.begin}, sets);
      AppendEvery(ways, way, {below.end, tree.end}, sets);
    }
    below = tree;
  }
}

bool Reduces(const TopologyShape& shape, VertexId vertex) {
  Heights heights;
  FillHeights(shape, shape.levels.size(), heights);
  if (vertex.index() < shape.devices) return false;
  size_t h = 1;
  while (vertex.index() >= heights[h].first_vertex + heights[h].members) ++h;
  return shape.levels[h - 1].reduces;
}

}  // namespace
}  // namespace fat_tree_cc

constinit const TopologyKind kFatTreeTopology = {
    .name = "fat_tree",
    .summary =
        "A tree of switches with several parents each, as wide towards the top as its "
        "levels say; ways up are chosen by destination.",
    .parameters = "levels",
    .spelling = SizeSpelling::kTree,
    .example = "fat-tree:1024@50GB/s,radix=64,oversubscription=2",
    .check = fat_tree_cc::Check,
    .link_count = fat_tree_cc::LinkCount,
    .link_at = fat_tree_cc::LinkAt,
    .append_route = fat_tree_cc::AppendRoute,
    .path = fat_tree_cc::Path,
    .bisection = fat_tree_cc::Bisection,
    .reduces = fat_tree_cc::Reduces,
    .rotations = fat_tree_cc::Rotations,
    .append_destinations = fat_tree_cc::AppendDestinations,
};

}  // namespace orrery::cluster
