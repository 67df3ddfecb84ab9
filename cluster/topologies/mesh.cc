#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cluster/topologies.h"
#include "cluster/topologies/level.h"

// A mesh of any number of dimensions: a torus without the links that close its rings. A message
// goes along levels[0] first.

namespace orrery::cluster {
namespace {

constexpr LevelKind kKind = LevelKind::kLine;

// Levels come with the kind that a product would read; here there is only one.
absl::Status Check(const TopologyShape& shape) {
  for (size_t i = 0; i < shape.levels.size(); ++i) {
    if (shape.levels[i].kind == kKind) continue;
    return absl::InvalidArgumentError(absl::StrCat("got a ", RuleOf(shape.levels[i].kind).name,
                                                   " as level ", i, "; wanted only ",
                                                   RuleOf(kKind).name, "s; product mixes them"));
  }
  return CheckLevels(shape);
}

// Known where the longest line is even and all links are alike: that line is cut once.
std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  int32_t longest = 1;
  for (const Level& level : shape.levels) {
    longest = std::max(longest, level.size);
    if (level.speed.rate != shape.levels.front().speed.rate) return std::nullopt;
  }
  if (longest == 1) return Bandwidth(0);
  if (longest % 2 != 0 && shape.devices != longest) return std::nullopt;
  return Aggregate(shape.levels.front().speed.rate, shape.devices / longest);
}

}  // namespace

constinit const TopologyKind kMeshTopology = {
    .name = "mesh",
    .summary = "A line along each dimension; a message goes along the first dimension first.",
    .parameters = "levels",
    .check = Check,
    .link_count = [](const TopologyShape& shape) { return ProductLinkCount(shape.levels); },
    .link_at = [](const TopologyShape& shape,
                  LinkNumber link) { return ProductLinkAt(shape.levels, link); },
    .append_route =
        [](const TopologyShape& shape, DeviceId from, DeviceId to, std::vector<LinkNumber>& route) {
          AppendProductRoute(shape.levels, from, to, route);
        },
    .path = [](const TopologyShape& shape, DeviceId from,
               DeviceId to) { return ProductPath(shape.levels, from, to); },
    .bisection = Bisection,
};

}  // namespace orrery::cluster
