#include "tools/measurements.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "support/status.h"

namespace orrery::tools {
namespace measurements_cc {
namespace {

using cluster::DeviceId;
using cost_models::MeasuredCurve;
using cost_models::MeasuredPoint;

// What a sweep's hw says, and the preset; the first that fits.
struct Machine {
  absl::string_view device, between_nodes, preset;
};
constexpr Machine kMachines[] = {{"GB200", "", "gb200-nvl72"},
                                 {"GB300", "", "gb300-nvl72"},
                                 {"B300", "", "dgx-b300"},
                                 {"B200", "EFA", "aws-p6-b200"},
                                 {"B200", "", "dgx-b200"},
                                 {"H200", "EFA", "aws-p5en"},
                                 {"H200", "", "dgx-h200"},
                                 {"H100", "EFA", "aws-p5"},
                                 {"H100", "", "dgx-h100"},
                                 {"A100", "EFA", "aws-p4de"},
                                 {"A100-SXM4-40GB", "", "dgx-a100-40gb"},
                                 {"A100", "", "dgx-a100"},
                                 {"V100", "", "dgx-v100"},
                                 {"L40S", "", "l40s"},
                                 {"RTX-PRO-6000-Server", "", "rtx-pro-6000-server"},
                                 {"RTX 3090", "", "rtx-3090"},
                                 {"RTX 4090", "", "rtx-4090"},
                                 {"RTX 5090", "", "rtx-5090"},
                                 {"MI300X", "", "mi300x"},
                                 {"MI250X", "", "mi250x"}};

const cluster::ClusterPreset* PresetOf(const MeasuredCurve& curve) {
  for (const Machine& machine : kMachines) {
    if (!absl::StrContains(curve.device, machine.device) ||
        !absl::StrContains(curve.between_nodes, machine.between_nodes)) {
      continue;
    }
    for (const cluster::ClusterPreset& preset : cluster::AllClusterPresets()) {
      if (preset.name == machine.preset) return &preset;
    }
  }
  return nullptr;
}

// Errors of some points, relative to what was measured.
struct Errors {
  int count = 0;
  double sum = 0, worst = 0;

  void Add(double error) {
    ++count;
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
  }
  std::string Text() const {
    if (count == 0) return "0,,";
    return absl::StrFormat("%d,%.1f%%,%.1f%%", count, 100 * sum / count, 100 * worst);
  }
};

std::vector<DeviceId> GroupOf(const MeasuredCurve& curve, const cluster::Cluster& cluster) {
  std::vector<DeviceId> group;
  // As many of each node.
  const int32_t a_node = cluster.topology.shape().devices_per_node;
  const int32_t nodes = cluster.size() / std::max(a_node, 1);
  const bool even = a_node > 1 && nodes > 1 && curve.devices % nodes == 0;
  const int32_t of_each = even ? curve.devices / nodes : curve.devices;
  for (int32_t i = 0; i < curve.devices; ++i) {
    group.push_back(DeviceId(even ? i / of_each * a_node + i % of_each : i));
  }
  return group;
}

// What is chosen for each point of a sweep.
absl::StatusOr<std::vector<cost_models::ChosenCollective>> Choose(const MeasuredCurve& curve,
                                                                  const std::string& spec) {
  ORRERY_ASSIGN_OR_RETURN(const cluster::Cluster cluster, cluster::ParseCluster(spec));
  const std::vector<DeviceId> group = GroupOf(curve, cluster);
  // A sweep that names its algorithm at the end of its id was forced to it.
  const std::string algorithm = absl::EndsWith(curve.id, "-Ring") ? "ring" : "auto";
  ORRERY_ASSIGN_OR_RETURN(const auto choice, cost_models::CollectiveChoice::Parse(algorithm));
  std::vector<cost_models::ChosenCollective> all;
  all.reserve(curve.points.size());
  for (const MeasuredPoint& point : curve.points) {
    ORRERY_ASSIGN_OR_RETURN(
        cost_models::ChosenCollective chosen,
        cost_models::ChooseCollective({.kind = curve.kind, .size = point.size, .group = group},
                                      cluster.topology, choice));
    all.push_back(std::move(chosen));
  }
  return all;
}

absl::StatusOr<std::string> Compare(const MeasuredCurve& curve, bool every_point) {
  const auto spec = ClusterOf(curve);
  if (!spec.ok()) return absl::StrCat(curve.id, ",", curve.split, ",no preset,,,,,,,\n");
  ORRERY_ASSIGN_OR_RETURN(const std::vector<cost_models::ChosenCollective> of_points,
                          Choose(curve, *spec));
  Errors judged, all;
  std::string points;
  for (size_t i = 0; i < of_points.size(); ++i) {
    const MeasuredPoint& point = curve.points[i];
    const cost_models::ChosenCollective& chosen = of_points[i];
    const double error = chosen.time.seconds() / point.seconds - 1;
    all.Add(error);
    if (point.size >= Bytes(64 << 10) && point.size <= Bytes(1 << 30)) judged.Add(error);
    absl::StrAppendFormat(&points, "%s,%d,%s,%s,%.2f,%.2f,%+.1f%%\n", curve.id, point.size.count(),
                          chosen.algorithm->name, chosen.protocol.name, point.seconds * 1e6,
                          chosen.time.microseconds(), 100 * error);
  }
  if (every_point) return points;
  const absl::string_view quote = absl::StrContains(*spec, ",") ? "\"" : "";
  return absl::StrCat(curve.id, ",", curve.split, ",", quote, *spec, quote, ",", curve.devices, ",",
                      judged.Text(), ",", all.Text(), "\n");
}

}  // namespace
}  // namespace measurements_cc

absl::StatusOr<std::string> ClusterOf(const cost_models::MeasuredCurve& curve) {
  const cluster::ClusterPreset* preset = measurements_cc::PresetOf(curve);
  if (preset == nullptr) {
    return absl::NotFoundError(absl::StrCat("no preset for '", curve.device, "'"));
  }
  const int32_t needed = (curve.devices - 1) / preset->devices_per_node + 1;
  // Racks are one node to us, whatever trays the source counts.
  const int32_t nodes = preset->devices_per_node > 8 ? needed : std::max(needed, curve.nodes);
  const bool roce = absl::StrContains(curve.between_nodes, "RoCE");
  const absl::string_view gigabits = absl::StrContains(preset->device, "a100") ? "200" : "400";
  return absl::StrCat(preset->name, ":", nodes,
                      roce && !preset->pairs ? absl::StrCat(",nic=", gigabits, "gbe") : "",
                      curve.library.empty() ? "" : absl::StrCat(",collectives=", curve.library));
}

absl::StatusOr<std::vector<double>> PredictCurve(const cost_models::MeasuredCurve& curve) {
  ORRERY_ASSIGN_OR_RETURN(const std::string spec, ClusterOf(curve));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<cost_models::ChosenCollective> chosen,
                          measurements_cc::Choose(curve, spec));
  std::vector<double> seconds;
  seconds.reserve(chosen.size());
  for (const cost_models::ChosenCollective& of_point : chosen) {
    seconds.push_back(of_point.time.seconds());
  }
  return seconds;
}

absl::StatusOr<std::string> CompareWithMeasurements(const cost_models::MeasuredCurves& curves,
                                                    bool every_point) {
  std::string out = every_point
                        ? "row,bytes,algorithm,protocol,measured_us,predicted_us,error\n"
                        : "row,split,cluster,devices,points_64KiB_1GiB,mean_error,worst_error,"
                          "all_points,mean_error,worst_error\n";
  for (const cost_models::MeasuredCurve& curve : curves.curves) {
    ORRERY_ASSIGN_OR_RETURN(const std::string lines, measurements_cc::Compare(curve, every_point));
    absl::StrAppend(&out, lines);
  }
  return out;
}

}  // namespace orrery::tools
