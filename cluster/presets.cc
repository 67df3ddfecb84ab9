#include <array>

#include "cluster/cluster.h"

// What one can buy, with figures from data sheets.

namespace orrery::cluster {
namespace presets_cc {
namespace {

constexpr Bandwidth GigabytesPerSecond(int64_t gigabytes) {
  return Bandwidth(gigabytes * 1'000'000'000);
}

constexpr Bandwidth MegabytesPerSecond(int64_t megabytes) {
  return Bandwidth(megabytes * 1'000'000);
}

constexpr Bandwidth GigabitsPerSecond(int64_t gigabits) {
  return Bandwidth(gigabits * 125'000'000);
}

// Latencies are measured from end to end, over the two links of a path; that each link has half of
// it is an assumption. NVLink: 1.8 to 2.3 us for a write to a peer (NVIDIA/cuda-samples #230).
constexpr Duration kNvlinkLatency(1'000'000);
// InfiniBand: 64 bytes take 3.7 us across leaf switches and 2.8 us under one (DeepSeek-V3, ISCA
// 2025). Across, as a cluster worth planning has more than one.
constexpr Duration kInfinibandLatency(1'850'000);
constexpr Duration kInfinibandLatencyToRail(1'400'000);
// RoCE, likewise: 5.6 us across.
constexpr Duration kEthernetLatency(2'800'000);
constexpr Duration kEthernetLatencyToRail(1'800'000);  // 3.6 us under one
// Assumptions: no source.
constexpr Duration kPcieLatency(1'000'000);
constexpr Duration kXgmiLatency(1'000'000);
constexpr Duration kIciLatency(1'000'000);

constexpr PathInfo kHdr = {GigabitsPerSecond(200), kInfinibandLatency};
constexpr PathInfo kNdr = {GigabitsPerSecond(400), kInfinibandLatency};

constexpr PathInfo kPcie4 = {MegabytesPerSecond(31'500), kPcieLatency};
constexpr PathInfo kPcie5 = {MegabytesPerSecond(63'000), kPcieLatency};
// Fitted with the profiles nccl-pcie4 and nccl-pcie5 to nccl-tests of 2 and 8 devices: 8 go through
// the memory of two sockets, or past them where devices reach each other's.
constexpr PathInfo kSocketsOfPcie4 = {MegabytesPerSecond(2'500), kPcieLatency};
constexpr PathInfo kSocketsOfPcie5 = {MegabytesPerSecond(37'100), kPcieLatency};
constexpr absl::string_view kCardsOnOneSocket =
    "PCIe x16 (PCI-SIG), four cards on a socket; collectives as measured on servers of such links; "
    "one 25 GbE NIC: all but the first an assumption";

constexpr std::array kPresets = {
    ClusterPreset{.name = "dgx-a100",
                  .device = "a100-80gb",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(300), kNvlinkLatency},
                  .nic = kHdr,
                  .source = "NVLink 3, 12 links; HDR InfiniBand, 8 x 200 Gb/s (NVIDIA)",
                  .summary = "8 A100-80GB, NVLink 3, 8 x HDR",
                  .collectives = "nccl-ampere"},
    ClusterPreset{
        .name = "dgx-h100",
        .device = "h100-80gb",
        .devices_per_node = 8,
        .port = {GigabytesPerSecond(450), kNvlinkLatency},
        .nic = kNdr,
        .source = "NVLink 4, 18 links; NDR InfiniBand, 8 x 400 Gb/s (stas00/ml-engineering)",
        .port_switch_reduces = true,
        .summary = "8 H100-80GB, NVLink 4 with NVLS, 8 x NDR",
        .collectives = "nccl-hopper"},
    ClusterPreset{.name = "dgx-v100",
                  .device = "v100-32gb",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(150), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(100), kInfinibandLatency},
                  .source =
                      "DGX-1: NVLink 2, 6 links, here on a switch instead of a cube mesh; EDR "
                      "InfiniBand, 4 x 100 Gb/s (NVIDIA)",
                  .nics_per_node = 4,
                  .summary = "8 V100-32GB, NVLink 2, 4 x EDR shared by two each",
                  .collectives = "nccl-ampere-2023"},
    ClusterPreset{.name = "dgx-a100-40gb",
                  .device = "a100-40gb",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(300), kNvlinkLatency},
                  .nic = kHdr,
                  .source = "NVLink 3, 12 links; HDR InfiniBand, 8 x 200 Gb/s (NVIDIA)",
                  .summary = "8 A100-40GB, NVLink 3, 8 x HDR",
                  .collectives = "nccl-ampere"},
    ClusterPreset{.name = "dgx-h200",
                  .device = "h200",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(450), kNvlinkLatency},
                  .nic = kNdr,
                  .source = "NVLink 4 (stas00/ml-engineering); NDR InfiniBand as a DGX H100",
                  .port_switch_reduces = true,
                  .summary = "8 H200, NVLink 4 with NVLS, 8 x NDR",
                  .collectives = "nccl-hopper"},
    ClusterPreset{.name = "dgx-b200",
                  .device = "b200",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(900), kNvlinkLatency},
                  .nic = kNdr,
                  .source = "NVLink 5, 18 links; 8 x 400 Gb/s as AWS P6-B200 "
                            "(stas00/ml-engineering)",
                  .port_switch_reduces = true,
                  .summary = "8 B200, NVLink 5 with NVLS, 8 x NDR",
                  .collectives = "nccl-blackwell"},
    ClusterPreset{.name = "dgx-b300",
                  .device = "b300",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(900), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(800), kInfinibandLatency},
                  .source = "NVLink 5; 8 x 800 Gb/s (stas00/ml-engineering)",
                  .port_switch_reduces = true,
                  .summary = "8 B300, NVLink 5 with NVLS, 8 x XDR",
                  .collectives = "nccl-blackwell"},
    ClusterPreset{.name = "gb200-nvl72",
                  .device = "gb200",
                  .devices_per_node = 72,
                  .port = {GigabytesPerSecond(900), kNvlinkLatency},
                  .nic = kNdr,
                  .source = "NVLink 5 (stas00/ml-engineering); one 400 Gb/s CX-7 a GPU (NVIDIA)",
                  .port_switch_reduces = true,
                  .summary = "a rack of 72 GB200, NVLink 5 with NVLS, an NDR NIC each",
                  .collectives = "nccl-blackwell-rack"},
    ClusterPreset{.name = "gb300-nvl72",
                  .device = "gb300",
                  .devices_per_node = 72,
                  .port = {GigabytesPerSecond(900), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(800), kInfinibandLatency},
                  .source = "NVLink 5; one 800 Gb/s CX-8 a GPU (NVIDIA), not checked",
                  .port_switch_reduces = true,
                  .summary = "a rack of 72 GB300, NVLink 5 with NVLS, an XDR NIC each",
                  .collectives = "nccl-blackwell-rack"},
    ClusterPreset{.name = "gh200",
                  .device = "gh200",
                  .devices_per_node = 4,
                  .port = {GigabytesPerSecond(450), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(200), kInfinibandLatency},
                  .source = "NVLink 4, 6 links a pair; Slingshot 11, 4 x 200 Gb/s (CSCS Alps)",
                  .summary = "4 GH200, NVLink 4, 4 x 200 Gb/s Slingshot",
                  .collectives = "nccl-hopper"},
    ClusterPreset{.name = "aws-p4de",
                  .device = "a100-80gb",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(300), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(100), kEthernetLatency},
                  .source = "NVLink 3; EFA, 4 x 100 Gb/s (stas00/ml-engineering)",
                  .nics_per_node = 4,
                  .summary = "8 A100-80GB, NVLink 3, 4 x 100 Gb/s EFA shared by two each",
                  .collectives = "nccl-ampere-efa"},
    ClusterPreset{.name = "aws-p5",
                  .device = "h100-80gb",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(450), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(400), kEthernetLatency},
                  .source = "NVLink 4; EFA v2, 32 x 100 Gb/s (stas00/ml-engineering)",
                  .port_switch_reduces = true,
                  .summary = "8 H100-80GB, NVLink 4 with NVLS, 32 x 100 Gb/s EFA",
                  .collectives = "nccl-hopper-efa"},
    ClusterPreset{.name = "aws-p5en",
                  .device = "h200",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(450), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(400), kEthernetLatency},
                  .source = "NVLink 4; EFA v3, 16 x 200 Gb/s (stas00/ml-engineering)",
                  .port_switch_reduces = true,
                  .summary = "8 H200, NVLink 4 with NVLS, 16 x 200 Gb/s EFA",
                  .collectives = "nccl-hopper-efa"},
    ClusterPreset{.name = "aws-p6-b200",
                  .device = "b200",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(900), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(400), kEthernetLatency},
                  .source = "NVLink 5; EFA v4, 8 x 400 Gb/s (stas00/ml-engineering)",
                  .port_switch_reduces = true,
                  .summary = "8 B200, NVLink 5 with NVLS, 8 x 400 Gb/s EFA",
                  .collectives = "nccl-blackwell-efa"},
    ClusterPreset{.name = "h100-torchtitan",
                  .device = "h100-96gb-hbm2e",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(450), kNvlinkLatency},
                  .nic = {GigabitsPerSecond(400), kEthernetLatency},
                  .source = "torchtitan's H100 with 96 GB HBM2e; NVLink 4; 8 x 400 Gb/s RoCE is an "
                            "assumption, after Meta's Grand Teton",
                  .port_switch_reduces = true,
                  .summary = "8 H100 of 96 GB HBM2e, NVLink 4, 8 x 400 GbE",
                  .collectives = "nccl-hopper"},
    ClusterPreset{.name = "mi250x",
                  .device = "mi250x-gcd",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(175), kXgmiLatency},
                  .nic = {GigabitsPerSecond(200), kInfinibandLatency},
                  .source = "Frontier: 4 modules of 2 dies, xGMI 350 GB/s a module "
                            "(stas00/ml-engineering), half of it a die; 4 x 200 Gb/s Slingshot",
                  .nics_per_node = 4,
                  .summary = "4 MI250X, of which each die is a device; 4 x 200 Gb/s",
                  .collectives = "rccl-cdna"},
    ClusterPreset{.name = "mi300x",
                  .device = "mi300x",
                  .devices_per_node = 8,
                  .port = {GigabytesPerSecond(64), kXgmiLatency},
                  .nic = kNdr,
                  .source = "xGMI, 7 x 64 GB/s (stas00/ml-engineering); 8 x 400 Gb/s is an "
                            "assumption",
                  .pairs = true,
                  .summary = "8 MI300X, each pair linked by xGMI, 8 x NDR on rails",
                  .collectives = "rccl-cdna"},
    ClusterPreset{.name = "mi350x",
                  .device = "mi350x",
                  .devices_per_node = 8,
                  .port = {MegabytesPerSecond(76'500), kXgmiLatency},
                  .nic = kNdr,
                  .source = "as mi355x, which has the same links",
                  .pairs = true,
                  .summary = "8 MI350X, each pair linked by xGMI, 8 x NDR on rails",
                  .collectives = "rccl-cdna"},
    ClusterPreset{.name = "mi355x",
                  .device = "mi355x",
                  .devices_per_node = 8,
                  .port = {MegabytesPerSecond(76'500), kXgmiLatency},
                  .nic = kNdr,
                  .source = "xGMI, 535.5 GB/s over 7 links (stas00/ml-engineering); 8 x 400 Gb/s "
                            "is an assumption",
                  .pairs = true,
                  .summary = "8 MI355X, each pair linked by xGMI, 8 x NDR on rails",
                  .collectives = "rccl-cdna"},
    ClusterPreset{.name = "tpu-v4",
                  .device = "tpu-v4",
                  .devices_per_node = 4,
                  .port = {GigabytesPerSecond(50), kIciLatency},
                  .source = "2,400 Gb/s a chip over 6 links (Google)",
                  .torus_dimensions = 3,
                  .summary = "hosts of 4 TPU v4 in a 3-D torus; tpu-v4:4x4x8 gives its sizes"},
    ClusterPreset{.name = "tpu-v5p",
                  .device = "tpu-v5p",
                  .devices_per_node = 4,
                  .port = {GigabytesPerSecond(100), kIciLatency},
                  .source = "4,800 Gb/s a chip over 6 links (Google)",
                  .torus_dimensions = 3,
                  .summary = "hosts of 4 TPU v5p in a 3-D torus; tpu-v5p:4x4x8 gives its sizes"},
    ClusterPreset{.name = "tpu-v5e",
                  .device = "tpu-v5e",
                  .devices_per_node = 4,
                  .port = {GigabytesPerSecond(50), kIciLatency},
                  .source = "1,600 Gb/s a chip over 4 links (Google)",
                  .torus_dimensions = 2,
                  .summary = "hosts of 4 TPU v5e in a 2-D torus; tpu-v5e:16x16 gives its sizes"},
    ClusterPreset{.name = "tpu-v6e",
                  .device = "tpu-v6e",
                  .devices_per_node = 4,
                  .port = {GigabytesPerSecond(112), kIciLatency},
                  .source = "3,584 Gb/s a chip over 4 links (Google)",
                  .torus_dimensions = 2,
                  .summary = "hosts of 4 TPU v6e in a 2-D torus; tpu-v6e:16x16 gives its sizes"},
    ClusterPreset{.name = "tpu-v7",
                  .device = "tpu-v7",
                  .devices_per_node = 4,
                  .port = {GigabytesPerSecond(100), kIciLatency},
                  .source = "1,200 GB/s a chip, both ways together, over 6 links (Google)",
                  .torus_dimensions = 3,
                  .summary = "hosts of 4 TPU v7 in a 3-D torus; tpu-v7:4x4x8 gives its sizes"},
    ClusterPreset{.name = "l40s",
                  .device = "l40s",
                  .devices_per_node = 8,
                  .port = kPcie4,
                  .nic = {GigabitsPerSecond(200), kInfinibandLatency},
                  .source =
                      "PCIe 4 x16 (PCI-SIG); what lies between the two sockets is fitted to 8 "
                      "L40S; 4 x 200 Gb/s is an assumption",
                  .nics_per_node = 4,
                  .summary = "8 L40S on PCIe 4, four on a socket, 4 x HDR",
                  .collectives = "nccl-pcie4",
                  .boards_per_node = 2,
                  .bridge = kSocketsOfPcie4},
    ClusterPreset{.name = "rtx-pro-6000-server",
                  .device = "rtx-pro-6000-server",
                  .devices_per_node = 8,
                  .port = kPcie5,
                  .nic = kNdr,
                  .source =
                      "PCIe 5 x16 (PCI-SIG); what lies between the two sockets is fitted to 8 "
                      "RTX PRO 6000; 4 x 400 Gb/s is an assumption",
                  .nics_per_node = 4,
                  .summary = "8 RTX PRO 6000 Blackwell Server on PCIe 5, four on a socket, 4 x NDR",
                  .collectives = "nccl-pcie5",
                  .boards_per_node = 2,
                  .bridge = kSocketsOfPcie5},
    ClusterPreset{.name = "titan-rtx",
                  .device = "titan-rtx",
                  .devices_per_node = 4,
                  .port = {MegabytesPerSecond(15'750), kPcieLatency},
                  .nic = {GigabitsPerSecond(25), kEthernetLatency},
                  .source = kCardsOnOneSocket,
                  .nics_per_node = 1,
                  .summary = "4 Titan RTX on PCIe 3, one 25 GbE NIC for all",
                  .collectives = "nccl-pcie4"},
    ClusterPreset{.name = "rtx-3090",
                  .device = "rtx-3090",
                  .devices_per_node = 4,
                  .port = kPcie4,
                  .nic = {GigabitsPerSecond(25), kEthernetLatency},
                  .source = kCardsOnOneSocket,
                  .nics_per_node = 1,
                  .summary = "4 RTX 3090 on PCIe 4, one 25 GbE NIC for all",
                  .collectives = "nccl-pcie4"},
    ClusterPreset{.name = "rtx-4090",
                  .device = "rtx-4090",
                  .devices_per_node = 4,
                  .port = kPcie4,
                  .nic = {GigabitsPerSecond(25), kEthernetLatency},
                  .source = kCardsOnOneSocket,
                  .nics_per_node = 1,
                  .summary = "4 RTX 4090 on PCIe 4, one 25 GbE NIC for all",
                  .collectives = "nccl-pcie4"},
    ClusterPreset{.name = "rtx-5090",
                  .device = "rtx-5090",
                  .devices_per_node = 4,
                  .port = kPcie5,
                  .nic = {GigabitsPerSecond(25), kEthernetLatency},
                  .source = kCardsOnOneSocket,
                  .nics_per_node = 1,
                  .summary = "4 RTX 5090 on PCIe 5, one 25 GbE NIC for all",
                  .collectives = "nccl-pcie5"},
    ClusterPreset{.name = "pcie-workstation",
                  .device = "a100-80gb-pcie",
                  .devices_per_node = 4,
                  .port = {MegabytesPerSecond(31'500), kPcieLatency},
                  .nic = {GigabitsPerSecond(25), kEthernetLatency},
                  .source = "PCIe 4 x16 (PCI-SIG); one 25 GbE NIC is an assumption",
                  .nics_per_node = 1,
                  .summary = "4 A100-80GB PCIe on PCIe 4, one 25 GbE NIC for all"},
};

constexpr absl::string_view kDeepSeek = "latency: DeepSeek-V3, ISCA 2025; half a path's each link";
constexpr absl::string_view kPciSig = "PCI-SIG, x16; latency is an assumption";
constexpr absl::string_view kNvidia =
    "all links of a GPU (NVIDIA, stas00/ml-engineering); latency: NVIDIA/cuda-samples #230";

constexpr LinkGeneration kGenerations[] = {
    {"pcie3", {MegabytesPerSecond(15'750), kPcieLatency}, kPciSig},
    {"pcie4", {MegabytesPerSecond(31'500), kPcieLatency}, kPciSig},
    {"pcie5", {MegabytesPerSecond(63'000), kPcieLatency}, kPciSig},
    {"nvlink2", {GigabytesPerSecond(150), kNvlinkLatency}, kNvidia},
    {"nvlink3", {GigabytesPerSecond(300), kNvlinkLatency}, kNvidia},
    {"nvlink4", {GigabytesPerSecond(450), kNvlinkLatency}, kNvidia},
    {"nvlink5", {GigabytesPerSecond(900), kNvlinkLatency}, kNvidia},
    {"25gbe", {GigabitsPerSecond(25), kEthernetLatency}, kDeepSeek, kEthernetLatencyToRail},
    {"100gbe", {GigabitsPerSecond(100), kEthernetLatency}, kDeepSeek, kEthernetLatencyToRail},
    {"200gbe", {GigabitsPerSecond(200), kEthernetLatency}, kDeepSeek, kEthernetLatencyToRail},
    {"400gbe", {GigabitsPerSecond(400), kEthernetLatency}, kDeepSeek, kEthernetLatencyToRail},
    {"edr", {GigabitsPerSecond(100), kInfinibandLatency}, kDeepSeek, kInfinibandLatencyToRail},
    {"hdr", kHdr, kDeepSeek, kInfinibandLatencyToRail},
    {"ndr", kNdr, kDeepSeek, kInfinibandLatencyToRail},
    {"xdr", {GigabitsPerSecond(800), kInfinibandLatency}, kDeepSeek, kInfinibandLatencyToRail},
};

}  // namespace
}  // namespace presets_cc

std::span<const ClusterPreset> AllClusterPresets() { return presets_cc::kPresets; }

std::span<const LinkGeneration> AllLinkGenerations() { return presets_cc::kGenerations; }

}  // namespace orrery::cluster
