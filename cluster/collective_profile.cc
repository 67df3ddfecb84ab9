#include "cluster/collective_profile.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

// A machine is a generation of devices and a fabric between nodes. In a node the figures are fitted
// to nccl-tests of 2, 4 and 8 devices, all-gather, reduce-scatter, all-reduce and all-to-all of 1
// KiB to 256 MiB (ai-dynamo/aiconfigurator@095f58a51, NCCL 2.23 to 2.29, medians; of larger ones
// MooreThreads/SimuMax@4dcaae513), least in relative error; tests/data/collectives_in_nodes.csv has
// part of them, and docs/collectives.md says how near they are met. Between nodes, and where the
// comment of a table says so, they are fitted to the sweeps of
// tests/data/measured_collectives.json.

namespace orrery::cluster {
namespace collective_profile_cc {
namespace {

constexpr Duration Microseconds(double us) { return Duration(static_cast<int64_t>(us * 1e6)); }

constexpr Bandwidth GigabytesPerSecond(double gigabytes) {
  return Bandwidth(static_cast<int64_t>(gigabytes * 1e9));
}

// The order of the protocols in the tables below. LL sends 8 bytes of flags with 8 of data, over
// few channels where there is little to send ("ll-narrow"), LL128 8 with 120; Simple sends flags
// apart from the data. Sends and receives are by LL or Simple ("p2p").
constexpr size_t kProtocols = 7;
constexpr std::array<absl::string_view, kProtocols> kProtocolNames = {
    "ll-narrow", "ll", "ll128", "simple", "nvls", "p2p-ll", "p2p"};

// What the devices and the links in a node make of it.
struct Generation {
  struct Row {
    double rate = 0;  // 0: it has no such protocol
    double start_up_us = 0;
    double step_us = 0;
    double part_rate = 0;  // GB/s
  };
  std::array<Row, kProtocols> rows;
};

// 2 and 8 A100, NCCL 2.27.
constexpr Generation kAmpere = {{{{0.136, 7.95, 0.972, 3.55},
                                  {0.392, 10.2, 1.1, 121},
                                  {0.478, 24.6, 0.109, 924},
                                  {0.796, 35.1, 5.06, 470},
                                  {},
                                  {0.238, 12.1, 0.194, 166},
                                  {0.678, 33.4, 1.79, 781}}}};
// 2 to 8 A100 (vTrain) and 8 (stas00/ml-engineering), NCCL of 2021 to 2023: of 8 devices half as
// quick to start as later, and as quick when it runs. LL is far below 1/2 there.
constexpr Generation kEarlyAmpere = {
    {{{}, {0.0787, 26, 1.2, 725}, {0.707, 33, 3, 725}, {0.794, 135, 1, 725}}}};
// 2 and 8 H100 and H200, NCCL 2.23 to 2.29; 8 H100 (NVIDIA/dgxc-benchmarking) and H200
// (stas00/ml-engineering).
constexpr Generation kHopper = {{{{0.0394, 4.3, 0.863, 11.4},
                                  {0.49, 5.14, 0.969, 186},
                                  {0.782, 14.9, 1.47, 566},
                                  {0.848, 22.9, 6.33, 738},
                                  {0.676, 76.7, 0, 0},
                                  {0.882, 6.11, 0.405, 6.37},
                                  {0.693, 12.5, 0.275, 1780}}}};
// 2 and 8 B200 and B300, NCCL 2.27 to 2.29. The rate of NVLS is Hopper's by NCCL's own ratio, 0.74
// to 0.85: within 256 MiB it hardly shows. Medians leave the last figures open, by which 256 MiB
// are met.
constexpr Generation kBlackwell = {{{{0.021, 6.91, 1.35, 9.13},
                                     {0.39, 7.85, 1.39, 277},
                                     {0.63, 34.5, 0.457, 210},
                                     {0.893, 10.7, 7.98, 868},
                                     {0.592, 152, 0, 0},
                                     {0.183, 8.87, 0.323, 7.53},
                                     {0.656, 14.6, 0.375, 700}}}};
// Trays of 4 GB200 and GB300, NCCL 2.23 to 2.29, in which LL128 is never the fastest; steps as on
// Blackwell. NVLS is of 72 GB200 in one rack (coreweave/nccl-tests), from 512 MiB: its start is a
// guess.
constexpr Generation kRack = {{{{0.103, 7.42, 1.39, 6.88},
                                {0.408, 8.27, 1.35, 282},
                                {},
                                {0.85, 11.1, 7.98, 977},
                                {0.492, 652, 0, 0},
                                {0.882, 9.34, 0.398, 7.06},
                                {0.714, 15.7, 0.282, 633}}}};
// 2 and 8 L40S, NCCL 2.27, and RTX PRO 6000, NCCL 2.29: no NVLink, PCIe 4 and 5. What 8 take longer
// lies between their sockets (cluster/presets.cc). 8 L40S differ by half from repeat to repeat.
constexpr Generation kPcie4 = {{{{0.0907, 4.44, 1.14, 7.11},
                                 {0.415, 4.8, 1.15, 56.8},
                                 {0.446, 10.9, 3.51, 275},
                                 {0.622, 10.4, 11, 2000},
                                 {},
                                 {0.584, 8.2, 0.152, 26.4},
                                 {1, 10.4, 9.58, 76.1}}}};
constexpr Generation kPcie5 = {{{{0.055, 5.16, 1.32, 47.7},
                                 {0.217, 3.96, 1.49, 1990},
                                 {0.366, 5.26, 2.96, 2000},
                                 {0.632, 11.5, 3.51, 169},
                                 {},
                                 {0.219, 6.47, 0.394, 600},
                                 {1, 7.05, 1.64, 43.5}}}};
// Assumptions: starts as on early Ampere; xGMI links reach about 2/3 of their rate.
constexpr Generation kCdna = {
    {{{}, {0.079, 26, 1.2, 1400}, {0.548, 33, 3, 1400}, {0.67, 60, 3.4, 1400}}}};

// What a step over a fabric takes, by the protocols.
struct Fabric {
  std::array<double, kProtocols> step_us;
};

// Of a NIC: 46 to 48 of 50 GB/s by NDR and 24 of 25 by HDR (NVIDIA/nccl-tests #290, #160), less
// what flags take. Where switches in nodes reduce, trees go across, by which some nodes send
// twice the data; our rings send 2(n-1)/n of it. Few channels: two nodes of p5 up to 32 KiB.
constexpr std::array<double, kProtocols> kRatesBetweenNodes = {0.003, 0.48, 0.9, 0.95,
                                                               0.85,  0.48, 0.95};

// Two nodes of 8 H200 take 45 us for 1 KiB, 8 H100 take 17: two steps of 14, 4 of them on the wire.
// Longer messages in proportion to EFA.
constexpr Fabric kInfiniband = {{10, 10, 18, 45, 60, 10, 45}};
// Two nodes of p5 (aws-samples/awsome-distributed-training).
constexpr Fabric kEfa = {{21, 48, 80, 180, 180, 48, 180}};
// Two nodes of p4de take 164 us for 8 bytes, 8 A100 take 43: two steps of 60, 7 of them on the
// wire.
constexpr Fabric kFirstEfa = {{53, 53, 95, 220, 0, 53, 220}};

struct Machine {
  absl::string_view name;
  const Generation& generation;
  const Fabric& fabric;
};

constexpr Machine kMachines[] = {
    {"nccl-ampere", kAmpere, kInfiniband},
    {"nccl-ampere-2023", kEarlyAmpere, kInfiniband},
    {"nccl-ampere-efa", kEarlyAmpere, kFirstEfa},
    {"nccl-hopper", kHopper, kInfiniband},
    {"nccl-hopper-efa", kHopper, kEfa},
    {"nccl-blackwell", kBlackwell, kInfiniband},
    {"nccl-blackwell-efa", kBlackwell, kEfa},
    {"nccl-blackwell-rack", kRack, kInfiniband},
    {"nccl-pcie4", kPcie4, kInfiniband},
    {"nccl-pcie5", kPcie5, kInfiniband},
    {"rccl-cdna", kCdna, kInfiniband},
};

constexpr auto kNames = [] {
  std::array<absl::string_view, std::size(kMachines) + 1> names = {"ideal"};
  for (size_t i = 0; i < std::size(kMachines); ++i) names[i + 1] = kMachines[i].name;
  return names;
}();

CollectiveProfile ProfileOf(const Machine& machine) {
  CollectiveProfile profile = {.name = std::string(machine.name)};
  for (size_t i = 0; i < kProtocols; ++i) {
    const Generation::Row& row = machine.generation.rows[i];
    if (row.rate == 0) continue;
    profile.protocols.push_back({.name = std::string(kProtocolNames[i]),
                                 .rate = row.rate,
                                 .rate_between_nodes = kRatesBetweenNodes[i],
                                 .start_up = Microseconds(row.start_up_us),
                                 .step_in_node = Microseconds(row.step_us),
                                 .step_between_nodes = Microseconds(machine.fabric.step_us[i]),
                                 .part_rate = GigabytesPerSecond(row.part_rate),
                                 .in_network = kProtocolNames[i] == "nvls",
                                 .sends = absl::StartsWith(kProtocolNames[i], "p2p")});
  }
  return profile;
}

// Longer than any library takes, short enough that a million steps fit the type.
constexpr Duration kMostLatency = Microseconds(100'000);

absl::Status CheckProtocol(const CollectiveProtocol& protocol) {
  for (const double rate : {protocol.rate, protocol.rate_between_nodes}) {
    if (rate > 0 && rate <= 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("got a rate of ", rate, "; wanted more than 0, at most 1"));
  }
  if (protocol.part_rate < Bandwidth(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got a part rate of ", ToString(protocol.part_rate), "; wanted none below 0"));
  }
  if (protocol.in_network && protocol.sends) {
    return absl::InvalidArgumentError(
        "got one for reductions in switches and for sends; wanted one of the two");
  }
  for (const Duration time :
       {protocol.start_up, protocol.step_in_node, protocol.step_between_nodes}) {
    if (time >= Duration(0) && time <= kMostLatency) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("got a time of ", ToString(time), "; wanted 0 to ", ToString(kMostLatency)));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace collective_profile_cc

absl::Status CheckCollectiveProfile(const CollectiveProfile& profile) {
  bool serves_all = profile.ideal();
  for (const CollectiveProtocol& protocol : profile.protocols) {
    if (protocol.ideal()) {
      return absl::InvalidArgumentError("got a protocol without a name; wanted one, as in simple");
    }
    if (absl::Status status = collective_profile_cc::CheckProtocol(protocol); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("protocol ", protocol.name, ": ", status.message()));
    }
    serves_all |= !protocol.in_network && !protocol.sends;
  }
  if (serves_all) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "got protocols for reductions in switches or sends only; wanted one for other algorithms");
}

absl::StatusOr<CollectiveProfile> FindCollectiveProfile(absl::string_view name) {
  if (name == "ideal") return CollectiveProfile();
  for (const collective_profile_cc::Machine& machine : collective_profile_cc::kMachines) {
    if (machine.name == name) return collective_profile_cc::ProfileOf(machine);
  }
  return absl::InvalidArgumentError(absl::StrCat("collectives '", name,
                                                 "' are unknown; wanted one of ",
                                                 absl::StrJoin(CollectiveProfileNames(), ", ")));
}

std::span<const absl::string_view> CollectiveProfileNames() {
  return collective_profile_cc::kNames;
}

}  // namespace orrery::cluster
