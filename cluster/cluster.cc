#include "cluster/cluster.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cluster/topologies.h"
#include "support/status.h"

namespace orrery::cluster {
namespace {

constexpr absl::string_view kDefaultDevice = "v100-32gb";
constexpr absl::string_view kUniformExample = "uniform:16@200Gbps";
constexpr size_t kMaxSpecLength = 200;

constexpr Bandwidth GigabytesPerSecond(int64_t gigabytes) {
  return Bandwidth(gigabytes * 1'000'000'000);
}

// Latencies are measured from end to end, over the two links of a path; that each link has half of
// it is an assumption. NVLink: 1.8 to 2.3 us for a write to a peer (NVIDIA/cuda-samples #230).
constexpr Duration kNvlinkLatency(1'000'000);
// InfiniBand: 64 bytes take 3.7 us across leaf switches and 2.8 us under one (DeepSeek-V3, ISCA
// 2025). Across, as a cluster worth planning has more than one.
constexpr Duration kInfinibandLatency(1'850'000);

constexpr std::array kPresets = {
    ClusterPreset{.name = "dgx-a100",
                  .device = "a100-80gb",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(300), kNvlinkLatency},
                  .nic = {GigabytesPerSecond(25), kInfinibandLatency},
                  .source = "NVLink 3, 12 links; HDR InfiniBand, 8 x 200 Gb/s (NVIDIA)"},
    ClusterPreset{
        .name = "dgx-h100",
        .device = "h100-80gb",
        .devices_per_node = 8,
        .port = {GigabytesPerSecond(450), kNvlinkLatency},
        .nic = {GigabytesPerSecond(50), kInfinibandLatency},
        .source = "NVLink 4, 18 links; NDR InfiniBand, 8 x 400 Gb/s (stas00/ml-engineering)"},
};

// Keeps what follows from quoting control characters or pages of text in its errors.
absl::Status CheckReadable(absl::string_view spec) {
  if (spec.size() <= kMaxSpecLength && std::ranges::all_of(spec, absl::ascii_isprint)) {
    return absl::OkStatus();
  }
  const bool too_long = spec.size() > kMaxSpecLength;
  return absl::InvalidArgumentError(absl::StrCat(
      "--cluster '", absl::CEscape(spec.substr(0, 40)), too_long ? "...': got " : "': got ",
      too_long ? absl::StrCat(spec.size(), " characters") : "a character that does not print",
      "; wanted at most ", kMaxSpecLength, " printable ones, as in ", kUniformExample));
}

struct Halves {
  absl::string_view before;
  absl::string_view after = {};
  bool found = false;
};

// What stands before and after the first `separator`; all of it before, when there is none.
Halves SplitAt(absl::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == absl::string_view::npos) return {.before = text};
  return {.before = text.substr(0, at), .after = text.substr(at + 1), .found = true};
}

// A number of things, of which `each` devices make one.
absl::StatusOr<int32_t> ParseCount(absl::string_view text, absl::string_view things, int32_t each,
                                   absl::string_view example) {
  const int32_t most = kMaxDevices / each;
  int32_t count = 0;
  // SimpleAtoi would take signs and spaces.
  if (std::ranges::all_of(text, absl::ascii_isdigit) && absl::SimpleAtoi(text, &count) &&
      count >= 1 && count <= most) {
    return count;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("got '", text, "' ", things, "; wanted 1 to ", most, ", as in ", example));
}

absl::StatusOr<Device> ParseDeviceOption(absl::string_view option) {
  if (absl::ConsumePrefix(&option, "device=")) return FindDevice(option);
  return absl::InvalidArgumentError(absl::StrCat("got option '", option, "'; wanted device=NAME",
                                                 ", as in ", kUniformExample, ",device=a100-80gb"));
}

// "16@200Gbps,device=a100-80gb"
absl::StatusOr<Cluster> ParseUniform(absl::string_view text) {
  const Halves count_rest = SplitAt(text, '@');
  ORRERY_ASSIGN_OR_RETURN(const int32_t devices,
                          ParseCount(count_rest.before, "devices", 1, kUniformExample));
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

// "4", nodes
absl::StatusOr<Cluster> ParsePreset(const ClusterPreset& preset, absl::string_view text) {
  ORRERY_ASSIGN_OR_RETURN(const int32_t nodes, ParseCount(text, "nodes", preset.devices_per_node,
                                                          absl::StrCat(preset.name, ":4")));
  Cluster cluster;
  ORRERY_ASSIGN_OR_RETURN(cluster.device, FindDevice(preset.device));
  ORRERY_ASSIGN_OR_RETURN(
      cluster.topology,
      Topology::Create(kNodesTopology, {.devices = nodes * preset.devices_per_node,
                                        .devices_per_node = preset.devices_per_node,
                                        .port = preset.port,
                                        .nic = preset.nic}));
  return cluster;
}

absl::StatusOr<Cluster> ParseKind(absl::string_view spec) {
  const Halves kind_rest = SplitAt(spec, ':');
  if (kind_rest.before == "uniform") return ParseUniform(kind_rest.after);
  for (const ClusterPreset& preset : kPresets) {
    if (kind_rest.before == preset.name) return ParsePreset(preset, kind_rest.after);
  }
  const auto append_name = [](std::string* out, const ClusterPreset& preset) {
    absl::StrAppend(out, preset.name);
  };
  return absl::InvalidArgumentError(
      absl::StrCat("got kind '", kind_rest.before, "'; wanted uniform or one of ",
                   absl::StrJoin(kPresets, ", ", append_name), ", as in ", kUniformExample));
}

}  // namespace

std::span<const ClusterPreset> AllClusterPresets() { return kPresets; }

absl::StatusOr<Cluster> ParseCluster(absl::string_view spec) {
  ORRERY_RETURN_IF_ERROR(CheckReadable(spec));
  absl::StatusOr<Cluster> cluster = ParseKind(spec);
  if (!cluster.ok()) return Annotate(cluster.status(), absl::StrCat("--cluster '", spec, "'"));
  cluster->name = std::string(spec);
  return cluster;
}

}  // namespace orrery::cluster
