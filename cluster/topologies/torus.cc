#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cluster/topologies.h"
#include "cluster/topologies/level.h"

// A torus of any number of dimensions: a ring along each. levels of 3 x 2, by device number:
//
//     3 - 4 - 5 - (3)
//     |   |   |
//     0 - 1 - 2 - (0)
//
// Dimension-order routing: a message goes along levels[0] by the shorter way round (up, where both
// are as long), then along levels[1], and so on. Two members share one link each way.

namespace orrery::cluster {
namespace {

constexpr LevelKind kKind = LevelKind::kRing;

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

// Known where the longest ring is even: it is cut in two places, a short one (of 2) in one, and all
// links are alike (Azizoglu & Egecioglu 2003 for tori).
std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  int32_t longest = 1;
  for (const Level& level : shape.levels) {
    longest = std::max(longest, level.size);
    if (level.speed.rate != shape.levels.front().speed.rate) return std::nullopt;
  }
  if (longest == 1) return Bandwidth(0);
  const bool is_ring = shape.devices == longest;
  if (longest % 2 != 0 && !is_ring) return std::nullopt;
  const int64_t lines = shape.devices / longest;
  return Aggregate(shape.levels.front().speed.rate, lines * std::min(longest - 1, 2));
}

}  // namespace

constinit const TopologyKind kTorusTopology = {
    .name = "torus",
    .summary =
        "A ring along each dimension; a message goes along the first dimension first, the shorter "
        "way.",
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
