#include "cluster/level.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"
#include "cluster/topologies.h"
#include "support/check.h"

namespace orrery::cluster {
namespace level_cc {
namespace {

// Of a ring, links 0 to size-1 lead up from each member, then as many lead down. Two members share
// one link each way, which leads up.

int32_t Up(int32_t size, LineLink ends) { return (ends.to - ends.from + size) % size; }

// The shorter way round; up, where both are as long.
bool GoesUp(int32_t size, LineLink ends) { return 2 * int64_t{Up(size, ends)} <= size; }

int64_t RingLinks(int32_t size) { return int64_t{size} * std::min(size - 1, 2); }

LineLink RingLinkAt(int32_t size, int64_t link) {
  const auto from = static_cast<int32_t>(link % size);
  return {from, link < size ? (from + 1) % size : (from + size - 1) % size};
}

void AppendRing(int32_t size, LineLink ends, int64_t base, std::vector<LinkNumber>& route) {
  const bool up = GoesUp(size, ends);
  for (int32_t at = ends.from; at != ends.to;) {
    route.push_back(base + (up ? 0 : size) + at);
    at = (at + (up ? 1 : size - 1)) % size;
  }
}

int32_t RingHops(int32_t size, LineLink ends) {
  return std::min(Up(size, ends), size - Up(size, ends));
}

// Members `first` to `last` - 1, where those from `size` on begin anew.
void AppendAroundRing(int32_t size, int64_t first, int64_t last, std::vector<MemberRange>& ranges) {
  const auto begin = static_cast<int32_t>(first % size);
  const auto count = static_cast<int32_t>(last - first);
  const int32_t straight = std::min(count, size - begin);
  if (straight > 0) ranges.push_back({begin, begin + straight});
  if (count > straight) ranges.push_back({0, count - straight});
}

void AppendRingWays(int32_t size, int32_t from, std::vector<MemberRange>& ranges) {
  const int64_t up = size / 2;
  AppendAroundRing(size, int64_t{from} + 1, from + 1 + up, ranges);
  AppendAroundRing(size, from + 1 + up, int64_t{from} + size, ranges);
}

int64_t OneWayRingLinks(int32_t size) { return size > 1 ? size : 0; }

void AppendOneWayRing(int32_t size, LineLink ends, int64_t base, std::vector<LinkNumber>& route) {
  for (int32_t at = ends.from; at != ends.to; at = (at + 1) % size) route.push_back(base + at);
}

// Of a line, even links lead up from link / 2 and odd ones back.

int64_t LineLinks(int32_t size) { return 2 * (int64_t{size} - 1); }

LineLink LineLinkAt(int32_t, int64_t link) {
  const auto lower = static_cast<int32_t>(link / 2);
  return link % 2 == 0 ? LineLink{lower, lower + 1} : LineLink{lower + 1, lower};
}

// The members before and after one, to which lead two ways, or one and the same.
void AppendSides(int32_t size, int32_t from, std::vector<MemberRange>& ranges) {
  if (from > 0) ranges.push_back({0, from});
  if (from + 1 < size) ranges.push_back({from + 1, size});
}

void AppendLine(int32_t, LineLink ends, int64_t base, std::vector<LinkNumber>& route) {
  for (int64_t at = ends.from; at < ends.to; ++at) route.push_back(base + 2 * at);
  for (int64_t at = ends.from; at > ends.to; --at) route.push_back(base + 2 * at - 1);
}

int32_t LineHops(int32_t, LineLink ends) { return std::abs(ends.from - ends.to); }

// All pairs: rows of links from a member, in the order of where they lead.

int64_t PairLinks(int32_t size) { return int64_t{size} * (size - 1); }

LineLink PairLinkAt(int32_t size, int64_t link) {
  const auto from = static_cast<int32_t>(link / (size - 1));
  const auto position = static_cast<int32_t>(link % (size - 1));
  return {from, position < from ? position : position + 1};
}

void AppendPair(int32_t size, LineLink ends, int64_t base, std::vector<LinkNumber>& route) {
  const int32_t position = ends.to < ends.from ? ends.to : ends.to - 1;
  route.push_back(base + int64_t{ends.from} * (size - 1) + position);
}

void AppendEachMember(int32_t size, int32_t from, std::vector<MemberRange>& ranges) {
  for (int32_t member = 0; member < size; ++member) {
    if (member != from) ranges.push_back({member, member + 1});
  }
}

// Of a switch, even links lead to it from link / 2 and odd ones back.

int64_t SwitchLinks(int32_t size) { return size > 1 ? 2 * int64_t{size} : 0; }

LineLink SwitchLinkAt(int32_t, int64_t link) {
  const auto member = static_cast<int32_t>(link / 2);
  return link % 2 == 0 ? LineLink{member, kSwitchMember} : LineLink{kSwitchMember, member};
}

void AppendSwitch(int32_t, LineLink ends, int64_t base, std::vector<LinkNumber>& route) {
  route.push_back(base + 2 * int64_t{ends.from});
  route.push_back(base + 2 * int64_t{ends.to} + 1);
}

constexpr std::array kRules = {
    LevelRule{.name = "ring",
              .link = "ring",
              .link_count = RingLinks,
              .link_at = RingLinkAt,
              .append = AppendRing,
              .hops = RingHops,
              .append_ways = AppendRingWays},
    LevelRule{.name = "one_way_ring",
              .link = "ring",
              .link_count = OneWayRingLinks,
              .link_at = RingLinkAt,
              .append = AppendOneWayRing,
              .hops = Up,
              .append_ways = AppendSides},
    LevelRule{.name = "line",
              .link = "line",
              .link_count = LineLinks,
              .link_at = LineLinkAt,
              .append = AppendLine,
              .hops = LineHops,
              .append_ways = AppendSides},
    LevelRule{.name = "fully_connected",
              .link = "pair",
              .link_count = PairLinks,
              .link_at = PairLinkAt,
              .append = AppendPair,
              .hops = [](int32_t, LineLink) { return 1; },
              .append_ways = AppendEachMember},
    LevelRule{.name = "switch",
              .link = "port",
              .has_switch = true,
              .link_count = SwitchLinks,
              .link_at = SwitchLinkAt,
              .append = AppendSwitch,
              .hops = [](int32_t, LineLink) { return 2; },
              .append_ways = AppendSides},
};

// One dimension of a product: where its lines, links and switches are among all.
struct Dimension {
  const Level* level = nullptr;
  const LevelRule* rule = nullptr;
  int64_t stride = 1;        // from one member's device number to the next's
  int64_t lines = 1;         // side by side
  int64_t line_links = 0;    // of each
  int64_t first_link = 0;    // of the first line
  int64_t first_switch = 0;  // vertex of the first line's, where lines have switches

  int64_t size() const { return level->size; }
  int64_t end_link() const { return first_link + lines * line_links; }
  int64_t end_switch() const { return first_switch + (HasSwitches() ? lines : 0); }
  bool HasSwitches() const { return rule->has_switch && level->size > 1; }
  int32_t MemberOf(int64_t device) const { return static_cast<int32_t>(device / stride % size()); }
  int64_t LineOf(int64_t device) const {
    return device / (stride * size()) * stride + device % stride;
  }
  VertexId VertexOf(int64_t line, int32_t member) const {
    if (member == kSwitchMember) return VertexId(static_cast<int32_t>(first_switch + line));
    return VertexId(
        static_cast<int32_t>(line / stride * stride * size() + member * stride + line % stride));
  }
};

// Calls `visit` for one dimension after the other, until it returns true.
template <typename Visit>
void ForEachDimension(std::span<const Level> levels, Visit visit) {
  int64_t devices = 1;
  for (const Level& level : levels) devices *= level.size;
  Dimension dimension = {.first_switch = devices};
  for (const Level& level : levels) {
    dimension.level = &level;
    dimension.rule = &RuleOf(level.kind);
    dimension.lines = devices / level.size;
    dimension.line_links = dimension.rule->link_count(level.size);
    if (visit(dimension)) return;
    dimension.first_link = dimension.end_link();
    dimension.first_switch = dimension.end_switch();
    dimension.stride *= level.size;
  }
}

// Whether the dimensions that `is_free` tells of are all of those with several members, or none of
// them; `free` says which.
template <typename IsFree>
bool AllOrNone(std::span<const Level> levels, IsFree is_free, bool& free) {
  bool any = false, all = true;
  for (const Level& level : levels) {
    if (level.size == 1) continue;
    any |= is_free(level);
    all &= is_free(level);
  }
  free = any;
  return all || !any;
}

}  // namespace
}  // namespace level_cc

std::span<const LevelRule> AllLevelRules() { return level_cc::kRules; }

const LevelRule& RuleOf(LevelKind kind) { return level_cc::kRules[static_cast<size_t>(kind)]; }

int64_t ProductLinkCount(std::span<const Level> levels) {
  int64_t count = 0;
  level_cc::ForEachDimension(levels, [&](const level_cc::Dimension& dimension) {
    count = dimension.end_link();
    return false;
  });
  return count;
}

Link ProductLinkAt(std::span<const Level> levels, LinkNumber link) {
  Link row;
  level_cc::ForEachDimension(levels, [&](const level_cc::Dimension& dimension) {
    if (link >= dimension.end_link()) return false;
    const int64_t line = (link - dimension.first_link) / dimension.line_links;
    const LineLink ends = dimension.rule->link_at(
        dimension.level->size, (link - dimension.first_link) % dimension.line_links);
    row = {dimension.VertexOf(line, ends.from), dimension.VertexOf(line, ends.to),
           dimension.level->speed, dimension.rule->link};
    return true;
  });
  return row;
}

void AppendProductRoute(std::span<const Level> levels, DeviceId from, DeviceId to,
                        std::vector<LinkNumber>& route) {
  int64_t at = from.index();
  level_cc::ForEachDimension(levels, [&](const level_cc::Dimension& dimension) {
    const LineLink ends = {dimension.MemberOf(at), dimension.MemberOf(to.index())};
    if (ends.from == ends.to) return false;
    const int64_t base = dimension.first_link + dimension.LineOf(at) * dimension.line_links;
    dimension.rule->append(dimension.level->size, ends, base, route);
    at += (ends.to - ends.from) * dimension.stride;
    return at == to.index();
  });
}

PathInfo ProductPath(std::span<const Level> levels, DeviceId from, DeviceId to) {
  PathInfo path;
  bool is_first = true;
  level_cc::ForEachDimension(levels, [&](const level_cc::Dimension& dimension) {
    const LineLink ends = {dimension.MemberOf(from.index()), dimension.MemberOf(to.index())};
    if (ends.from == ends.to) return false;
    const PathInfo& speed = dimension.level->speed;
    const int32_t hops = dimension.rule->hops(dimension.level->size, ends);
    const PathInfo part = {.rate = speed.rate, .latency = speed.latency * hops};
    path = is_first ? part : Join(path, part);
    is_first = false;
    return false;
  });
  return path;
}

// A way is narrowest where it first turns into one of its slowest dimensions. So before that it
// only went along faster ones, and after it along none that is slower.
void AppendProductDestinations(std::span<const Level> levels, DeviceId from,
                               std::vector<DeviceSet>& sets) {
  const size_t before_any = sets.size();
  std::vector<MemberRange> ranges;
  size_t d = 0;
  level_cc::ForEachDimension(levels, [&](const level_cc::Dimension& dimension) {
    const Level& level = *dimension.level;
    const auto is_faster = [&](const Level& other) { return other.speed.rate > level.speed.rate; };
    const auto is_as_fast = [&](const Level& other) {
      return other.speed.rate >= level.speed.rate;
    };
    bool free_before = false, free_after = false;
    if (!level_cc::AllOrNone(levels.first(d), is_faster, free_before) ||
        !level_cc::AllOrNone(levels.subspan(d + 1), is_as_fast, free_after)) {
      sets.resize(before_any);
      return true;
    }
    ++d;
    ranges.clear();
    const int32_t member = dimension.MemberOf(from.index());
    dimension.rule->append_ways(level.size, member, ranges);
    const auto stride = static_cast<int32_t>(dimension.stride);
    const int32_t own = from.index() % stride;
    // Where dimensions after it must not differ, their part of the number stays.
    const int32_t base = free_after ? 0 : from.index() / stride - member;
    for (int32_t rest = free_before ? 0 : own; rest < (free_before ? stride : own + 1); ++rest) {
      for (const MemberRange& range : ranges) {
        sets.push_back({.stride = stride,
                        .rest = rest,
                        .size = free_after ? level.size : std::numeric_limits<int32_t>::max(),
                        .first = base + range.first,
                        .last = base + range.last});
      }
    }
    return false;
  });
}

absl::Status CheckLevelsAre(LevelKind kind, const TopologyShape& shape) {
  for (size_t i = 0; i < shape.levels.size(); ++i) {
    if (shape.levels[i].kind == kind) continue;
    return absl::InvalidArgumentError(absl::StrCat("got a ", RuleOf(shape.levels[i].kind).name,
                                                   " as level ", i, "; wanted only ",
                                                   RuleOf(kind).name, "s; product mixes them"));
  }
  return CheckLevels(shape);
}

std::optional<Bandwidth> BisectionOfLines(const TopologyShape& shape, int32_t cuts) {
  int32_t longest = 1;
  for (const Level& level : shape.levels) {
    longest = std::max(longest, level.size);
    if (level.speed.rate != shape.levels.front().speed.rate) return std::nullopt;
  }
  if (longest == 1) return Bandwidth(0);
  if (longest % 2 != 0 && shape.devices != longest) return std::nullopt;
  const int64_t lines = shape.devices / longest;
  return Aggregate(shape.levels.front().speed.rate, lines * std::min(longest - 1, cuts));
}

bool ProductReduces(std::span<const Level> levels, VertexId vertex) {
  bool reduces = false;
  level_cc::ForEachDimension(levels, [&](const level_cc::Dimension& dimension) {
    const bool found =
        vertex.index() >= dimension.first_switch && vertex.index() < dimension.end_switch();
    reduces = found && dimension.level->reduces;
    return found;
  });
  return reduces;
}

std::vector<Rotation> ProductRotations(std::span<const Level> levels) {
  std::vector<Rotation> rotations;
  level_cc::ForEachDimension(levels, [&](const level_cc::Dimension& dimension) {
    if (dimension.level->kind != LevelKind::kLine) {
      rotations.push_back(
          {.stride = static_cast<int32_t>(dimension.stride), .size = dimension.level->size});
    }
    return false;
  });
  return rotations;
}

}  // namespace orrery::cluster
