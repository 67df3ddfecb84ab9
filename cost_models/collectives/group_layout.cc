#include "cost_models/collectives/group_layout.h"

#include <algorithm>

#include "cost_models/collectives/alike_ranks.h"

namespace orrery::cost_models {
namespace group_layout_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;

constexpr size_t kMostLinked = 1024;
constexpr size_t kFew = 32;

// The coordinates that the group has along each dimension, ascending; for each, the product of the
// sizes of the dimensions before.
struct Dimension {
  int64_t weight = 1;
  int32_t size = 1;
  std::vector<int32_t> taken = {};

  int32_t CoordinateOf(DeviceId device) const {
    return static_cast<int32_t>(device.index() / weight % size);
  }
};

std::vector<Dimension> DimensionsOf(const Topology& topology, std::span<const DeviceId> group) {
  std::vector<Dimension> dimensions;
  int64_t weight = 1;
  for (const cluster::Level& level : topology.shape().levels) {
    Dimension dimension{.weight = weight, .size = level.size};
    weight *= level.size;
    std::vector<bool> seen(static_cast<size_t>(level.size), false);
    for (const DeviceId device : group) {
      seen[static_cast<size_t>(dimension.CoordinateOf(device))] = true;
    }
    for (int32_t i = 0; i < level.size; ++i) {
      if (seen[static_cast<size_t>(i)]) dimension.taken.push_back(i);
    }
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

// Whether rank r has the coordinates that the digits of r name.
bool FillBox(std::span<const DeviceId> group, const std::vector<Dimension>& dimensions) {
  int64_t count = 1;
  for (const Dimension& dimension : dimensions) {
    count *= static_cast<int64_t>(dimension.taken.size());
    if (count > static_cast<int64_t>(group.size())) return false;
  }
  if (count != static_cast<int64_t>(group.size())) return false;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    size_t rest = rank;
    for (const Dimension& dimension : dimensions) {
      const size_t digit = rest % dimension.taken.size();
      rest /= dimension.taken.size();
      if (dimension.CoordinateOf(group[rank]) != dimension.taken[digit]) return false;
    }
  }
  return true;
}

// Whether that rank has a link to each other of its node, `each` ranks.
bool IsLinked(size_t from, size_t each, const Topology& topology, std::span<const DeviceId> group) {
  std::vector<cluster::LinkNumber> route;
  const size_t first = from / each * each;
  for (size_t to = first; to < first + each; ++to) {
    if (to == from) continue;
    route.clear();
    topology.AppendRoute(group[from], group[to], route);
    if (route.size() != 1) return false;
  }
  return true;
}

}  // namespace
}  // namespace group_layout_cc

bool AllLinked(const cluster::Topology& topology, std::span<const cluster::DeviceId> group,
               int32_t a_node) {
  const size_t each = a_node > 1 ? static_cast<size_t>(a_node) : group.size();
  if (each > group_layout_cc::kMostLinked) return false;
  // Most groups are out after the first; who is alike is only worth finding among many.
  if (!group_layout_cc::IsLinked(0, each, topology, group)) return false;
  if (each == group.size() && each > group_layout_cc::kFew) {
    return std::ranges::all_of(FindAlikeBlocks(topology, group, 1), [&](const AlikeBlocks& alike) {
      return group_layout_cc::IsLinked(alike.first, each, topology, group);
    });
  }
  for (size_t from = 1; from < group.size(); ++from) {
    if (!group_layout_cc::IsLinked(from, each, topology, group)) return false;
  }
  return true;
}

std::vector<int32_t> GridOf(const cluster::Topology& topology,
                            std::span<const cluster::DeviceId> group) {
  if (!topology.kind().grid) return {};
  const std::vector<group_layout_cc::Dimension> dimensions =
      group_layout_cc::DimensionsOf(topology, group);
  if (!group_layout_cc::FillBox(group, dimensions)) return {};
  std::vector<int32_t> sides;
  for (const group_layout_cc::Dimension& dimension : dimensions) {
    const auto side = static_cast<int32_t>(dimension.taken.size());
    if (side > 1) sides.push_back(side);
  }
  if (sides.size() < 2) return {};
  return sides;
}

}  // namespace orrery::cost_models
