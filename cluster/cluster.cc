#include "cluster/cluster.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cluster/cluster_file.h"
#include "cluster/part_file.h"
#include "cluster/spelling.h"
#include "cluster/topologies.h"
#include "support/check.h"
#include "support/names/near_names.h"
#include "support/status.h"

namespace orrery::cluster {
namespace cluster_cc {
namespace {

constexpr absl::string_view kUniformExample = "uniform:16@200Gbps";
constexpr size_t kMaxSpecLength = 200;

// Keeps what follows from quoting control characters or pages of text in its errors.
absl::Status CheckReadable(absl::string_view spec) {
  if (spec.size() <= kMaxSpecLength && std::ranges::all_of(spec, absl::ascii_isprint)) {
    return absl::OkStatus();
  }
  const bool too_long = spec.size() > kMaxSpecLength;
  return absl::InvalidArgumentError(absl::StrCat(
      "`cluster` '", absl::CEscape(spec.substr(0, 40)), too_long ? "...': got " : "': got ",
      too_long ? absl::StrCat(spec.size(), " characters") : "a character that does not print",
      "; wanted at most ", kMaxSpecLength, " printable ones, as in ", kUniformExample));
}

absl::StatusOr<Device> ParseDeviceOption(absl::string_view option) {
  if (absl::ConsumePrefix(&option, "device=")) return FindDeviceOrFile(option);
  return absl::InvalidArgumentError(absl::StrCat("got option '", option, "'; wanted device=NAME",
                                                 ", as in ", kUniformExample, ",device=a100-80gb"));
}

// "16@200Gbps,device=a100-80gb"
absl::StatusOr<Cluster> ParseUniform(absl::string_view text) {
  const Halves count_rest = SplitAt(text, '@');
  ORRERY_ASSIGN_OR_RETURN(const int32_t devices,
                          ParseCount(count_rest.before, {"devices", 1, kUniformExample}));
  const Halves rate_option = SplitAt(count_rest.after, ',');
  ORRERY_ASSIGN_OR_RETURN(const Bandwidth rate, ParseBandwidth(rate_option.before));
  Cluster cluster;
  ORRERY_ASSIGN_OR_RETURN(cluster.device, rate_option.found ? ParseDeviceOption(rate_option.after)
                                                            : FindDevice(kDefaultDevice));
  ORRERY_ASSIGN_OR_RETURN(
      cluster.topology,
      Topology::Create(kFullyConnectedTopology, {.devices = devices, .port = {.rate = rate}}));
  return cluster;
}

constexpr absl::string_view kPresetOptions =
    "device port nic nic-latency nics boards bridge used rails oversubscription collectives "
    "ideal-collectives";

// The nodes' count, near to a cube or a square: each dimension takes a prime factor in turn, the
// largest first, for the one that is least.
std::vector<int32_t> NearlyEqualFactors(int32_t number, int32_t count) {
  std::vector<int32_t> primes;
  for (int32_t factor = 2; number > 1; ++factor) {
    if (int64_t{factor} * factor > number) factor = number;
    for (; number % factor == 0; number /= factor) primes.push_back(factor);
  }
  std::vector<int32_t> factors(static_cast<size_t>(count), 1);
  for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime) {
    *std::ranges::min_element(factors) *= *prime;
  }
  std::ranges::sort(factors);
  return factors;
}

// "4" hosts, or "4x4x8" chips.
absl::StatusOr<TopologyShape> TorusShape(const ClusterPreset& preset, absl::string_view text,
                                         absl::string_view example) {
  std::vector<int32_t> sizes;
  if (absl::StrContains(text, 'x')) {
    ORRERY_ASSIGN_OR_RETURN(sizes, ParseSizes(text, example));
  } else {
    ORRERY_ASSIGN_OR_RETURN(
        const int32_t nodes,
        ParseCount(text, {.things = "nodes", .each = preset.devices_per_node, .example = example}));
    sizes = NearlyEqualFactors(nodes * preset.devices_per_node, preset.torus_dimensions);
  }
  if (sizes.size() != static_cast<size_t>(preset.torus_dimensions)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got sizes '", text, "'; wanted ", preset.torus_dimensions, " of them"));
  }
  TopologyShape shape;
  for (const int32_t size : sizes) {
    shape.levels.push_back({.size = size, .speed = preset.port});
    shape.devices *= size;
  }
  return shape;
}

// A generation's latency is across leaf switches; a rail is one. Of what is no generation nothing
// more is known.
Duration LatencyToRail(const PathInfo& nic) {
  for (const LinkGeneration& generation : AllLinkGenerations()) {
    if (generation.latency_to_rail == Duration(0)) continue;
    if (generation.speed.latency == nic.latency) return generation.latency_to_rail;
  }
  return nic.latency;
}

absl::StatusOr<Topology> NodesOf(const ClusterPreset& preset, int32_t nodes, const Device& device,
                                 const OptionList& options) {
  ORRERY_ASSIGN_OR_RETURN(const int32_t used, options.Count("used", preset.devices_per_node));
  if (used < 1 || used > preset.devices_per_node) {
    return absl::InvalidArgumentError(absl::StrCat("got used=", used, "; wanted 1 to all ",
                                                   preset.devices_per_node, " devices of a node"));
  }
  TopologyShape shape = {.devices = nodes * used, .devices_per_node = used};
  shape.port_switch_reduces = preset.port_switch_reduces;
  ORRERY_ASSIGN_OR_RETURN(const bool asked_for_rails, options.Flag("rails"));
  const bool rails = asked_for_rails || options.Has("oversubscription");
  ORRERY_ASSIGN_OR_RETURN(shape.port, options.Speed("port", preset.port));
  ORRERY_ASSIGN_OR_RETURN(shape.nic, options.Speed("nic", preset.nic));
  const Duration across = shape.nic.latency;
  const Duration to_rail = LatencyToRail(shape.nic);
  if (rails) shape.nic.latency = to_rail;
  ORRERY_ASSIGN_OR_RETURN(shape.nic.latency, options.Latency("nic-latency", shape.nic.latency));
  ORRERY_ASSIGN_OR_RETURN(shape.nics_per_node, options.Count("nics", preset.nics_per_node));
  const int32_t of_a_board = preset.devices_per_node / preset.boards_per_node;
  ORRERY_ASSIGN_OR_RETURN(shape.boards_per_node,
                          options.Count("boards", used > of_a_board ? preset.boards_per_node : 1));
  ORRERY_ASSIGN_OR_RETURN(
      shape.bridge,
      options.Speed("bridge", shape.boards_per_node > 1 ? preset.bridge : PathInfo()));
  ORRERY_ASSIGN_OR_RETURN(const double ratio, options.Ratio("oversubscription"));
  if (shape.nics_per_node == shape.devices_per_node) shape.nics_per_node = 0;
  if (preset.pairs) {
    const Level pairs = {preset.devices_per_node, shape.port, LevelKind::kFullyConnected};
    return Topology::Create(
        kProductTopology,
        {.devices = shape.devices, .levels = {pairs, {nodes, shape.nic, LevelKind::kSwitch}}});
  }
  shape.host = device.host;
  if (!rails) return Topology::Create(kNodesTopology, shape);
  if (shape.nics_per_node != 0) {
    return absl::InvalidArgumentError(absl::StrCat("got rails for ", shape.nics_per_node,
                                                   " NICs that devices share; wanted a "
                                                   "NIC for each, as in dgx-h100:16,rails"));
  }
  if (shape.boards_per_node != 1) {
    return absl::InvalidArgumentError(
        "got rails and boards=; wanted one of them, as in dgx-a100:16,boards=2,bridge=126GB/s");
  }
  shape.spine = SpineOf(shape.nic, nodes, ratio);
  // So that the whole way across takes what the generation says.
  if (across > to_rail) shape.spine.latency = across - to_rail;
  return Topology::Create(kRailsTopology, shape);
}

// "4", nodes; "4,nic=hdr"
absl::StatusOr<Cluster> ParsePreset(const ClusterPreset& preset, absl::string_view text) {
  const std::string example = absl::StrCat(preset.name, ":4");
  const Halves size_options = SplitAt(text, ',');
  const bool is_torus = preset.torus_dimensions > 0;
  const absl::string_view known = is_torus       ? "device"
                                  : preset.pairs ? "device collectives ideal-collectives"
                                                 : kPresetOptions;
  ORRERY_ASSIGN_OR_RETURN(
      const OptionList options,
      OptionList::Parse(size_options.after, known, absl::StrCat(example, ",device=h200")));
  if (size_options.found && size_options.after.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("got no option after ','; wanted one, as in ", example, ",device=h200"));
  }
  Cluster cluster;
  ORRERY_ASSIGN_OR_RETURN(cluster.device, options.OfDevice(preset.device));
  if (is_torus) {
    ORRERY_ASSIGN_OR_RETURN(const TopologyShape shape,
                            TorusShape(preset, size_options.before, example));
    ORRERY_ASSIGN_OR_RETURN(cluster.topology, Topology::Create(kTorusTopology, shape));
    return cluster;
  }
  ORRERY_ASSIGN_OR_RETURN(
      const int32_t nodes,
      ParseCount(size_options.before,
                 {.things = "nodes", .each = preset.devices_per_node, .example = example}));
  ORRERY_ASSIGN_OR_RETURN(cluster.topology, NodesOf(preset, nodes, cluster.device, options));
  ORRERY_ASSIGN_OR_RETURN(const bool ideal, options.Flag("ideal-collectives"));
  if (ideal && options.Has("collectives")) {
    return absl::InvalidArgumentError(
        absl::StrCat("got collectives= and ideal-collectives; wanted one of them, as in ", example,
                     ",collectives=ideal"));
  }
  if (ideal) return cluster;
  ORRERY_ASSIGN_OR_RETURN(
      CollectiveProfile profile,
      FindCollectivesOrFile(options.Find("collectives").value_or(preset.collectives)));
  cluster.topology.SetCollectiveProfile(std::move(profile));
  return cluster;
}

// And no spelling that ends with the file of a part.
bool IsFile(absl::string_view spec) {
  return IsClusterFile(spec) && !absl::StrContains(spec, ",device=") &&
         !absl::StrContains(spec, ",collectives=");
}

absl::StatusOr<Cluster> ParseKind(absl::string_view spec) {
  if (IsFile(spec)) return ReadClusterFile(std::string(spec));
  const Halves kind_rest = SplitAt(spec, ':');
  if (kind_rest.before == "uniform") return ParseUniform(kind_rest.after);
  std::vector<std::string> names;
  for (const ClusterPreset& preset : AllClusterPresets()) {
    if (kind_rest.before == preset.name) return ParsePreset(preset, kind_rest.after);
    names.emplace_back(preset.name);
  }
  for (const TopologyKind* kind : AllTopologies()) {
    if (kind->spelling == SizeSpelling::kNone) continue;
    if (kind_rest.before == SpelledName(*kind)) return ParseTopology(*kind, kind_rest.after);
    names.push_back(SpelledName(*kind));
  }
  const std::string all = absl::StrCat("wanted uniform or one of ", absl::StrJoin(names, ", "),
                                       ", or a .textproto or .json file, as in ", kUniformExample);
  std::vector<absl::string_view> known(names.begin(), names.end());
  known.emplace_back("uniform");
  return absl::InvalidArgumentError(
      absl::StrCat("got kind '", kind_rest.before, "'; ",
                   WantedNames(kind_rest.before, known, "list-clusters", all)));
}

}  // namespace
}  // namespace cluster_cc

const Device& Cluster::kind(int32_t number) const {
  ORRERY_CHECK(number >= 0 && number < kind_count()) << "kind " << number << " of " << kind_count();
  return number == 0 ? device : other_kinds[static_cast<size_t>(number - 1)];
}

int32_t Cluster::kind_of(DeviceId id) const {
  ORRERY_CHECK(id.valid() && id.index() < size()) << id << " of " << size();
  return kind_by_device.empty() ? 0 : kind_by_device[static_cast<size_t>(id.index())];
}

void Cluster::AddDevices(const Device& added, int32_t count) {
  int32_t number = 0;
  if (kind_by_device.empty()) device = added;
  while (number < kind_count() && kind(number).name != added.name) ++number;
  if (number == kind_count()) other_kinds.push_back(added);
  kind_by_device.insert(kind_by_device.end(), static_cast<size_t>(count), number);
}

std::vector<ClusterSpelling> ListClusters() {
  std::vector<ClusterSpelling> list = {
      {std::string(cluster_cc::kUniformExample),
       "Equal devices, each pair with its own link at that rate and no latency."}};
  for (const ClusterPreset& preset : AllClusterPresets()) {
    list.push_back(
        {absl::StrCat(preset.name, ":4"),
         absl::StrCat(preset.torus_dimensions > 0 ? "" : "Nodes of ", preset.summary, ".")});
  }
  for (const TopologyKind* kind : AllTopologies()) {
    if (kind->spelling == SizeSpelling::kNone) continue;
    list.push_back({std::string(kind->example), std::string(kind->summary)});
  }
  list.push_back(
      {"cluster.textproto", "A cluster file, in Protobuf's text format or (.json) JSON."});
  return list;
}

absl::StatusOr<Cluster> ParseCluster(absl::string_view spec) {
  ORRERY_RETURN_IF_ERROR(cluster_cc::CheckReadable(spec));
  absl::StatusOr<Cluster> cluster = cluster_cc::ParseKind(spec);
  // A file's errors say where by themselves.
  if (!cluster.ok() && cluster_cc::IsFile(spec)) return cluster;
  if (!cluster.ok()) return Annotate(cluster.status(), absl::StrCat("`cluster` '", spec, "'"));
  if (!cluster_cc::IsFile(spec)) cluster->name = std::string(spec);
  return cluster;
}

}  // namespace orrery::cluster
