#ifndef ORRERY_CLUSTER_LEVEL_H_
#define ORRERY_CLUSTER_LEVEL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/topology.h"

// How the members along one line of a dimension are linked, and products of such dimensions: what
// ring, torus, mesh and product are made of.

namespace orrery::cluster {

/// Stands for the switch of a line, where members have numbers from 0.
inline constexpr int32_t kSwitchMember = -1;

/// One end and the other of a link of a line.
struct LineLink {
  int32_t from = 0;
  int32_t to = 0;
};

/// Members from `first` to `last` - 1.
struct MemberRange {
  int32_t first = 0;
  int32_t last = 0;
};

/// The record of a level kind. Links of a line of `size` members are numbered from 0.
struct LevelRule {
  absl::string_view name;  // "ring", as a cluster file says it
  absl::string_view link;  // what a link is called
  bool has_switch = false;
  int64_t (*link_count)(int32_t size) = nullptr;
  LineLink (*link_at)(int32_t size, int64_t link) = nullptr;
  /// Appends `base` and more to `route`: the links from one member to another.
  void (*append)(int32_t size, LineLink ends, int64_t base,
                 std::vector<LinkNumber>& route) = nullptr;
  /// How many links that is.
  int32_t (*hops)(int32_t size, LineLink ends) = nullptr;
  /// Appends ranges that hold every other member between them: from member `from`, the ways to
  /// those of a range begin with the same link.
  void (*append_ways)(int32_t size, int32_t from, std::vector<MemberRange>& ranges) = nullptr;
};

const LevelRule& RuleOf(LevelKind kind);

/// All records, in the order of LevelKind.
std::span<const LevelRule> AllLevelRules();

// A product of dimensions. The device number counts along levels[0] first. A message goes along
// levels[0] until it is right there, then along levels[1], and so on. Links are numbered dimension
// by dimension, then line by line, then as the rule says; switches likewise.

int64_t ProductLinkCount(std::span<const Level> levels);
Link ProductLinkAt(std::span<const Level> levels, LinkNumber link);
void AppendProductRoute(std::span<const Level> levels, DeviceId from, DeviceId to,
                        std::vector<LinkNumber>& route);
PathInfo ProductPath(std::span<const Level> levels, DeviceId from, DeviceId to);
bool ProductReduces(std::span<const Level> levels, VertexId vertex);
/// Of all dimensions but lines, whose ends differ from their middle.
std::vector<Rotation> ProductRotations(std::span<const Level> levels);
/// Topology::AppendDestinations. None where a set of that form cannot tell whether levels of
/// different rates narrow a way: of three dimensions and more.
void AppendProductDestinations(std::span<const Level> levels, DeviceId from,
                               std::vector<DeviceSet>& sets);

/// The record of a topology that reads its levels as such a product: `record` with the functions
/// that follow from that.
constexpr TopologyKind OfLevels(TopologyKind record) {
  record.parameters = "levels";
  record.grid = true;
  record.link_count = [](const TopologyShape& shape) { return ProductLinkCount(shape.levels); };
  record.link_at = [](const TopologyShape& shape, LinkNumber link) {
    return ProductLinkAt(shape.levels, link);
  };
  record.append_route = [](const TopologyShape& shape, DeviceId from, DeviceId to,
                           std::vector<LinkNumber>& route) {
    AppendProductRoute(shape.levels, from, to, route);
  };
  record.path = [](const TopologyShape& shape, DeviceId from, DeviceId to) {
    return ProductPath(shape.levels, from, to);
  };
  record.rotations = [](const TopologyShape& shape) { return ProductRotations(shape.levels); };
  record.append_destinations = [](const TopologyShape& shape, DeviceId from,
                                  std::vector<DeviceSet>& sets) {
    AppendProductDestinations(shape.levels, from, sets);
  };
  return record;
}

/// CheckLevels, and that all levels are of that kind.
absl::Status CheckLevelsAre(LevelKind kind, const TopologyShape& shape);

/// The bisection of lines of links that are all alike, where the longest is even or the only one:
/// each of the longest lines is cut, in `cuts` places where it is long enough (1 of a line, 2 of a
/// ring; Azizoglu & Egecioglu 2003 for tori). Nothing for others.
std::optional<Bandwidth> BisectionOfLines(const TopologyShape& shape, int32_t cuts);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_LEVEL_H_
