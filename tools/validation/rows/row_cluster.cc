#include "tools/validation/rows/row_cluster.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"

namespace orrery::tools {
namespace row_cluster_cc {
namespace {

// What a row's device says, and the preset; the first that fits.
struct Machine {
  absl::string_view device, preset;
  int64_t devices_a_node = 8;
};
constexpr Machine kMachines[] = {{"HBM2e", "h100-torchtitan"},
                                 {"GH200", "gh200", 4},
                                 {"GB200", "gb200-nvl72", 72},
                                 {"GB300", "gb300-nvl72", 72},
                                 {"B300", "dgx-b300"},
                                 {"B200", "dgx-b200"},
                                 {"H200", "dgx-h200"},
                                 {"MI350", "mi350x"},
                                 {"MI355", "mi355x"},
                                 {"L40S", "l40s"},
                                 {"RTX-PRO-6000-Server", "rtx-pro-6000-server"},
                                 {"v6e", "tpu-v6e", 4},
                                 {"v5p", "tpu-v5p", 4},
                                 {"H100", "dgx-h100"},
                                 {"A100-SXM4-40GB", "dgx-a100-40gb"},
                                 {"A100", "dgx-a100"},
                                 {"V100", "dgx-v100"}};

// NICs of a node: how many, and each one's rate, in Gb/s. None: the row does not say.
struct Nics {
  double count = 0, rate = 0;
};

// "4x Omni-Path 100 Gb/s per node", "Slingshot-11 200 Gb/s per GPU", "400 Gb/s/GPU", and "800 Gb/s
// per node total", which is taken as a NIC for each device.
Nics NicsOf(const std::string& fabric, int64_t devices_a_node) {
  static const RE2& each = *new RE2(R"((?i)(\d+)x [^,;(]*?(\d+(?:\.\d+)?) ?Gb/s per node)");
  static const RE2& own = *new RE2(R"((?i)(\d+(?:\.\d+)?) ?Gb/s ?(?:/|per )GPU)");
  static const RE2& all = *new RE2(R"((?i)(\d+(?:\.\d+)?) ?Gb/s per node)");
  const auto devices = static_cast<double>(devices_a_node);
  Nics nics;
  if (RE2::PartialMatch(fabric, each, &nics.count, &nics.rate)) return nics;
  if (RE2::PartialMatch(fabric, own, &nics.rate)) return {devices, nics.rate};
  if (RE2::PartialMatch(fabric, all, &nics.rate)) return {devices, nics.rate / devices};
  return {};
}

const cluster::ClusterPreset& PresetOf(absl::string_view name) {
  const auto presets = cluster::AllClusterPresets();
  return *std::ranges::find(presets, name, &cluster::ClusterPreset::name);
}

// What differs from the preset's.
std::string NicOptions(const MeasuredStep& step, const Machine& machine) {
  const cluster::ClusterPreset& preset = PresetOf(machine.preset);
  const Nics nics = NicsOf(step.fabric, machine.devices_a_node);
  if (nics.rate <= 0 || nics.count < 1) return "";
  const double usual = static_cast<double>(preset.nic.rate.bytes_per_second()) / 0.125e9;
  const auto count = static_cast<int64_t>(nics.count);
  const int64_t usual_count =
      preset.nics_per_node > 0 ? preset.nics_per_node : preset.devices_per_node;
  std::string options;
  if (nics.rate != usual) absl::StrAppend(&options, ",nic=", nics.rate, "Gbps");
  if (count != usual_count && machine.devices_a_node % count == 0) {
    absl::StrAppend(&options, ",nics=", count);
  }
  return options;
}

// "PCIe (simulator constant 77 Gb/s)" of V100, which have NVLink elsewhere.
std::string OverPcie(const MeasuredStep& step) {
  static const RE2& pcie = *new RE2(R"(^PCIe.*?(\d+) ?Gb/s)");
  int64_t rate = 0;
  const bool found =
      absl::StrContains(step.device, "V100") && RE2::PartialMatch(step.links, pcie, &rate);
  return found ? absl::StrCat("uniform:", step.devices, "@", rate, "Gbps,device=v100-16gb") : "";
}

// "ICI 3D torus 4x4x8" of chips with two cores, of which a row counts cores: a core has a link to
// the other, six times as fast as one to another chip (Google), and half of the chip's links.
std::string OfTwoCores(const MeasuredStep& step) {
  static const RE2& torus = *new RE2(R"(torus (\d+)x(\d+)x(\d+))");
  int64_t sizes[3] = {};
  if (!absl::StrContains(step.device, "TPU7x") ||
      !RE2::PartialMatch(step.links, torus, &sizes[0], &sizes[1], &sizes[2])) {
    return "";
  }
  std::string cluster = "product:fully-connected(2)@600GB/s+1us";
  for (const int64_t size : sizes) {
    if (size > 1) absl::StrAppend(&cluster, ",ring(", size, ")@50GB/s+1us");
  }
  return absl::StrCat(cluster, ",device=tpu-v7-core");
}

}  // namespace
}  // namespace row_cluster_cc

absl::StatusOr<std::string> ClusterOf(const MeasuredStep& step) {
  if (std::string pcie = row_cluster_cc::OverPcie(step); !pcie.empty()) return pcie;
  if (std::string cores = row_cluster_cc::OfTwoCores(step); !cores.empty()) return cores;
  for (const row_cluster_cc::Machine& machine : row_cluster_cc::kMachines) {
    if (!absl::StrContains(step.device, machine.device)) continue;
    const int64_t nodes = (step.devices - 1) / machine.devices_a_node + 1;
    // As many of each rack, where they are more than one.
    const int64_t used = step.devices / nodes;
    const bool aligned = nodes > 1 && machine.devices_a_node > 8 && step.devices % nodes == 0;
    // Published runs on A100 are of the libraries of those years.
    const bool older = absl::StartsWith(machine.preset, "dgx-a100");
    // Nodes of Jean Zay have two boards of four A100, each on four slots of PCIe 4.
    const bool boards = absl::StrContains(step.fabric, "Jean Zay");
    return absl::StrCat(
        machine.preset, ":", nodes, nodes > 1 ? row_cluster_cc::NicOptions(step, machine) : "",
        boards ? ",boards=2,bridge=126GB/s" : "", older ? ",collectives=nccl-ampere-2023" : "",
        aligned ? absl::StrCat(",used=", used) : "");
  }
  if (absl::StrContains(step.device, "/") && step.links.empty() && step.fabric.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("what joins devices of several kinds is not said ('", step.device, "')"));
  }
  return absl::FailedPreconditionError(absl::StrCat("no cluster for device '", step.device, "'"));
}

}  // namespace orrery::tools
