#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/level.h"
#include "cluster/spelling.h"
#include "support/status.h"

// One function for each way that sizes are spelled: they fill the numbers of a shape.

namespace orrery::cluster {
namespace spelled_topologies_cc {
namespace {

// "SIZES@SPEED,options"
struct Spelled {
  absl::string_view sizes = {};
  PathInfo speed = {};
  OptionList options = {};
};

absl::StatusOr<Spelled> ParseParts(const TopologyKind& kind, absl::string_view text,
                                   absl::string_view options) {
  const Halves sizes_rest = SplitAt(text, '@');
  if (!sizes_rest.found) {
    return absl::InvalidArgumentError(
        absl::StrCat("got '", text, "' with no rate; wanted one, as in ", kind.example));
  }
  const Halves speed_options = SplitAt(sizes_rest.after, ',');
  Spelled spelled = {.sizes = sizes_rest.before};
  ORRERY_ASSIGN_OR_RETURN(spelled.speed, ParseSpeed(speed_options.before));
  ORRERY_ASSIGN_OR_RETURN(spelled.options,
                          OptionList::Parse(speed_options.after, options, kind.example));
  ORRERY_ASSIGN_OR_RETURN(spelled.speed.latency,
                          spelled.options.Latency("latency", spelled.speed.latency));
  return spelled;
}

struct Drawn {
  TopologyShape shape;
  OptionList options = {};
};

absl::StatusOr<Drawn> DrawDevices(const TopologyKind& kind, absl::string_view text) {
  const bool rings = absl::StrContains(kind.parameters, "one_way");
  const bool reduces = absl::StrContains(kind.parameters, "reduces");
  ORRERY_ASSIGN_OR_RETURN(Spelled spelled, ParseParts(kind, text,
                                                      rings     ? "device latency one-way"
                                                      : reduces ? "device latency reduces"
                                                                : "device latency"));
  Drawn drawn;
  ORRERY_ASSIGN_OR_RETURN(drawn.shape.devices,
                          ParseCount(spelled.sizes, {"devices", 1, kind.example}));
  drawn.shape.port = spelled.speed;
  ORRERY_ASSIGN_OR_RETURN(drawn.shape.one_way, spelled.options.Flag("one-way"));
  ORRERY_ASSIGN_OR_RETURN(drawn.shape.port_switch_reduces, spelled.options.Flag("reduces"));
  drawn.options = std::move(spelled.options);
  return drawn;
}

absl::StatusOr<Drawn> DrawNodes(const TopologyKind& kind, absl::string_view text) {
  const bool has_spine = absl::StrContains(kind.parameters, "spine");
  ORRERY_ASSIGN_OR_RETURN(
      Spelled spelled,
      ParseParts(kind, text,
                 has_spine ? "device latency nic nic-latency oversubscription reduces"
                           : "device latency nic nic-latency nics host boards bridge reduces"));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int32_t> sizes,
                          ParseSizes(spelled.sizes, kind.example));
  if (sizes.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got '", spelled.sizes, "'; wanted nodes x devices of each, as in ", kind.example));
  }
  Drawn drawn;
  TopologyShape& shape = drawn.shape;
  shape.devices = sizes[0] * sizes[1];
  shape.devices_per_node = sizes[1];
  shape.port = spelled.speed;
  ORRERY_ASSIGN_OR_RETURN(shape.port_switch_reduces, spelled.options.Flag("reduces"));
  ORRERY_ASSIGN_OR_RETURN(shape.nic, spelled.options.Speed("nic", {}));
  ORRERY_ASSIGN_OR_RETURN(shape.nic.latency,
                          spelled.options.Latency("nic-latency", shape.nic.latency));
  ORRERY_ASSIGN_OR_RETURN(const double ratio, spelled.options.Ratio("oversubscription"));
  if (has_spine) shape.spine = SpineOf(shape.nic, sizes[0], ratio);
  if (spelled.options.Has("nics")) {
    ORRERY_ASSIGN_OR_RETURN(shape.nics_per_node, spelled.options.Count("nics", 0));
    ORRERY_ASSIGN_OR_RETURN(shape.host, spelled.options.Speed("host", shape.port));
  }
  ORRERY_ASSIGN_OR_RETURN(shape.boards_per_node, spelled.options.Count("boards", 1));
  ORRERY_ASSIGN_OR_RETURN(shape.bridge, spelled.options.Speed("bridge", {}));
  drawn.options = std::move(spelled.options);
  return drawn;
}

absl::StatusOr<Drawn> DrawLevels(const TopologyKind& kind, absl::string_view text) {
  ORRERY_ASSIGN_OR_RETURN(Spelled spelled, ParseParts(kind, text, "device latency"));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int32_t> sizes,
                          ParseSizes(spelled.sizes, kind.example));
  Drawn drawn;
  for (const int32_t size : sizes) {
    drawn.shape.levels.push_back({.size = size, .speed = spelled.speed, .kind = kind.usual_level});
    drawn.shape.devices *= size;
  }
  // As many links of a router to other groups as a dragonfly's groups need.
  if (sizes.size() == 3) {
    drawn.shape.levels[2].parents = std::max((sizes[2] - 2) / sizes[1] + 1, 1);
  }
  drawn.options = std::move(spelled.options);
  return drawn;
}

// Switches of `radix` ports, half of them down. What the leaves have too few of is the way up:
// from there on all is as wide as they are.
absl::StatusOr<Drawn> DrawTree(const TopologyKind& kind, absl::string_view text) {
  ORRERY_ASSIGN_OR_RETURN(Spelled spelled,
                          ParseParts(kind, text, "device latency radix oversubscription"));
  Drawn drawn;
  TopologyShape& shape = drawn.shape;
  ORRERY_ASSIGN_OR_RETURN(shape.devices, ParseCount(spelled.sizes, {"devices", 1, kind.example}));
  ORRERY_ASSIGN_OR_RETURN(const int32_t radix, spelled.options.Count("radix", 64));
  ORRERY_ASSIGN_OR_RETURN(const double ratio, spelled.options.Ratio("oversubscription"));
  const int32_t half = radix / 2;
  const auto up = static_cast<int32_t>(half / ratio);
  if (radix < 4 || radix % 2 != 0 || up < 1 || up * ratio != half) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got radix ", radix, " with oversubscription ", ratio,
        "; wanted an even radix of 4 or more, and a ratio that divides its half, as in ",
        kind.example));
  }
  int64_t reach = 1;
  while (reach < shape.devices) {
    const bool is_top = reach * radix >= shape.devices;
    const int64_t needed = (shape.devices + reach - 1) / reach;
    const auto size = static_cast<int32_t>(is_top ? needed : half);
    const int32_t parents = reach == 1 ? 1 : shape.levels.size() == 1 ? up : half;
    shape.levels.push_back({.size = size, .speed = spelled.speed, .parents = parents});
    reach *= size;
  }
  if (shape.levels.empty()) shape.levels.push_back({.size = 1, .speed = spelled.speed});
  drawn.options = std::move(spelled.options);
  return drawn;
}

// "ring(4)@100GB/s"
absl::StatusOr<Level> ParseLevel(absl::string_view text, absl::string_view example) {
  const Halves kind_rest = SplitAt(text, '(');
  const Halves size_rest = SplitAt(kind_rest.after, ')');
  std::vector<std::string> names;
  for (size_t i = 0; i < AllLevelRules().size(); ++i) {
    std::string name(AllLevelRules()[i].name);
    std::ranges::replace(name, '_', '-');
    names.push_back(name);
    if (kind_rest.before != name || !absl::StartsWith(size_rest.after, "@")) continue;
    Level level = {.kind = static_cast<LevelKind>(i)};
    ORRERY_ASSIGN_OR_RETURN(level.size, ParseCount(size_rest.before, {"members", 1, example}));
    ORRERY_ASSIGN_OR_RETURN(level.speed, ParseSpeed(size_rest.after.substr(1)));
    return level;
  }
  return absl::InvalidArgumentError(absl::StrCat("got level '", text,
                                                 "'; wanted KIND(SIZE)@RATE, KIND one of ",
                                                 absl::StrJoin(names, ", "), ", as in ", example));
}

// "ring(4)@100GB/s,switch(8)@50GB/s,device=h200"
absl::StatusOr<Drawn> DrawProduct(const TopologyKind& kind, absl::string_view text) {
  Drawn drawn;
  int64_t devices = 1;
  bool more = true;
  while (more) {
    const Halves part = SplitAt(text, ',');
    if (!absl::StrContains(part.before, '(') && !drawn.shape.levels.empty()) break;
    ORRERY_ASSIGN_OR_RETURN(const Level level, ParseLevel(part.before, kind.example));
    devices = std::min<int64_t>(devices * level.size, int64_t{kMaxDevices} + 1);
    drawn.shape.levels.push_back(level);
    text = part.after;
    more = part.found;
  }
  drawn.shape.devices = static_cast<int32_t>(devices);
  ORRERY_ASSIGN_OR_RETURN(drawn.options, OptionList::Parse(text, "device latency", kind.example));
  for (Level& level : drawn.shape.levels) {
    ORRERY_ASSIGN_OR_RETURN(level.speed.latency,
                            drawn.options.Latency("latency", level.speed.latency));
  }
  return drawn;
}

absl::StatusOr<Drawn> Draw(const TopologyKind& kind, absl::string_view text) {
  switch (kind.spelling) {
    case SizeSpelling::kDevices:
      return DrawDevices(kind, text);
    case SizeSpelling::kNodes:
      return DrawNodes(kind, text);
    case SizeSpelling::kLevels:
      return DrawLevels(kind, text);
    case SizeSpelling::kTree:
      return DrawTree(kind, text);
    case SizeSpelling::kProduct:
      return DrawProduct(kind, text);
    case SizeSpelling::kNone:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a ", kind.name, " topology has no short name; wanted a file that lists it"));
}

}  // namespace
}  // namespace spelled_topologies_cc

PathInfo SpineOf(const PathInfo& nic, int32_t nodes, double oversubscription) {
  // 2.8 us under one leaf switch and 3.7 us across (DeepSeek-V3, ISCA 2025): 0.45 us a link.
  constexpr Duration kSpineLatency(450'000);
  const auto full = static_cast<double>(Aggregate(nic.rate, nodes).bytes_per_second());
  return {.rate = Bandwidth(static_cast<int64_t>(std::ceil(full / oversubscription))),
          .latency = kSpineLatency};
}

absl::StatusOr<Cluster> ParseTopology(const TopologyKind& kind, absl::string_view text) {
  ORRERY_ASSIGN_OR_RETURN(const spelled_topologies_cc::Drawn drawn,
                          spelled_topologies_cc::Draw(kind, text));
  Cluster cluster;
  ORRERY_ASSIGN_OR_RETURN(cluster.device, drawn.options.OfDevice(kDefaultDevice));
  ORRERY_ASSIGN_OR_RETURN(cluster.topology, Topology::Create(kind, drawn.shape));
  return cluster;
}

}  // namespace orrery::cluster
