#include "cluster/collective_profile.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

// A machine is a generation of devices and a fabric between nodes. The figures are fitted to sweeps
// of nccl-tests (tests/data/measured_collectives.json has them, thinned, with their sources) from
// NCCL's own table as it stands in aliyun/SimAI (docs/configuration/send-lat-analysis.md): a ring
// starts in 6.6, 14 and 8.4 us by LL, LL128 and Simple, and takes 0.6, 1.9 and 3.4 us a step by
// NVLink. LL sends 8 bytes of flags with 8 of data, LL128 8 with 120: 1/2 and 15/16 of a link.
// docs/collectives.md says how near the sweeps are met.

namespace orrery::cluster {
namespace collective_profile_cc {
namespace {

constexpr Duration Microseconds(double us) { return Duration(static_cast<int64_t>(us * 1e6)); }

constexpr Bandwidth GigabytesPerSecond(int64_t gigabytes) {
  return Bandwidth(gigabytes * 1'000'000'000);
}

// The order of the four protocols in the tables below.
constexpr size_t kProtocols = 4;
constexpr std::array<absl::string_view, kProtocols> kProtocolNames = {"ll", "ll128", "simple",
                                                                      "nvls"};

// What the devices and the links in a node make of it.
struct Generation {
  struct Row {
    double rate = 0;  // 0: it has no such protocol
    double start_up_us = 0;
    double step_us = 0;
  };
  std::array<Row, kProtocols> rows;
  Bandwidth copy_rate;
};

// 2 to 8 A100 (vTrain) and 8 (stas00/ml-engineering). LL is far below 1/2 there.
constexpr Generation kAmpere = {{{{0.08, 26, 1.2}, {0.83, 33, 3}, {0.95, 135, 1}, {}}},
                                GigabytesPerSecond(725)};
// 8 H100 (NVIDIA/dgxc-benchmarking); copies from the rings of 8 H200 (stas00/ml-engineering).
constexpr Generation kHopper = {
    {{{0.48, 9.7, 0.6}, {0.94, 17, 1.8}, {0.963, 12, 3.4}, {0.815, 71, 0}}},
    GigabytesPerSecond(1400)};
// As Hopper, with links of twice the rate; NCCL reckons with 0.74 of a Blackwell's NVLS rate where
// it has 0.85 of a Hopper's. No sweep of 8 B200 was at hand.
constexpr Generation kBlackwell = {
    {{{0.48, 9.7, 0.6}, {0.94, 17, 1.8}, {0.963, 12, 3.4}, {0.71, 71, 0}}},
    GigabytesPerSecond(2800)};
// 72 GB200 in one rack (coreweave/nccl-tests): from 512 MiB, so that its start is a guess.
constexpr Generation kRack = {
    {{{0.48, 9.7, 0.6}, {0.94, 17, 1.8}, {0.963, 12, 3.4}, {0.565, 500, 0}}},
    GigabytesPerSecond(2800)};
// Assumptions: starts as on Ampere; xGMI links reach about 3/4 of their rate.
constexpr Generation kCdna = {{{{0.08, 26, 1.2}, {0.6, 33, 3}, {0.75, 60, 3.4}, {}}},
                              GigabytesPerSecond(1400)};

// What a step over a fabric takes, by the four protocols.
struct Fabric {
  std::array<double, kProtocols> step_us;
};

// Of a NIC: 46 to 48 of 50 GB/s by NDR and 24 of 25 by HDR (NVIDIA/nccl-tests #290, #160), less
// what flags take. Where switches in nodes reduce, trees go across, by which some nodes send
// twice the data; our rings send 2(n-1)/n of it.
constexpr std::array<double, kProtocols> kRatesBetweenNodes = {0.48, 0.9, 0.95, 0.85};

// Two nodes of 8 H200 take 45 us for 1 KiB, 8 H100 take 17: two steps of 14, 4 of them on the wire.
// Longer messages in proportion to EFA.
constexpr Fabric kInfiniband = {{10, 18, 45, 60}};
// Two nodes of p5 (aws-samples/awsome-distributed-training).
constexpr Fabric kEfa = {{48, 80, 180, 180}};
// Two nodes of p4de take 164 us for 8 bytes, 8 A100 take 43: two steps of 60, 7 of them on the
// wire.
constexpr Fabric kFirstEfa = {{53, 95, 220, 0}};

struct Machine {
  absl::string_view name;
  const Generation& generation;
  const Fabric& fabric;
};

constexpr Machine kMachines[] = {
    {"nccl-ampere", kAmpere, kInfiniband},       {"nccl-ampere-efa", kAmpere, kFirstEfa},
    {"nccl-hopper", kHopper, kInfiniband},       {"nccl-hopper-efa", kHopper, kEfa},
    {"nccl-blackwell", kBlackwell, kInfiniband}, {"nccl-blackwell-efa", kBlackwell, kEfa},
    {"nccl-blackwell-rack", kRack, kInfiniband}, {"rccl-cdna", kCdna, kInfiniband},
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
                                 .copy_rate = machine.generation.copy_rate,
                                 .in_network = kProtocolNames[i] == "nvls"});
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
  if (protocol.copy_rate < Bandwidth(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got a copy rate of ", ToString(protocol.copy_rate), "; wanted none below 0"));
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
    serves_all |= !protocol.in_network;
  }
  if (serves_all) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "got protocols for reductions in switches only; wanted one for other algorithms");
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
