#include "lowering/blocks/host_work.h"

#include "absl/strings/str_cat.h"

namespace orrery::lowering {
namespace host_work_cc {
namespace {

using simulator::StreamKind;
using transforms::HostWork;

// At a part of `peak`.
Duration TimeAt(double part, Bytes size, Bandwidth peak) {
  const double rate = part * static_cast<double>(peak.bytes_per_second());
  return TransferTime(size, Bandwidth(static_cast<int64_t>(rate)));
}

}  // namespace
}  // namespace host_work_cc

Duration HostCopyTime(Bytes size, const cluster::Device& device) {
  constexpr double kReached = 0.8;
  return device.host.latency + host_work_cc::TimeAt(kReached, size, device.host.rate);
}

Duration HostUpdateTime(Bytes moved, const cluster::Device& device) {
  constexpr double kReached = 0.45;
  return host_work_cc::TimeAt(kReached, moved, device.host_memory_bandwidth);
}

simulator::StreamKind HostStreamOf(transforms::HostWork work) {
  if (work == transforms::HostWork::kStore) return simulator::StreamKind::kHost;
  return work == transforms::HostWork::kLoad ? simulator::StreamKind::kFromHost
                                             : simulator::StreamKind::kHostCompute;
}

absl::Status CheckHosts(const transforms::PipelinedStep& step, const cluster::Cluster& cluster) {
  const transforms::HostWorkOfStep work = transforms::FindHostWork(step);
  if (!work.copies) return absl::OkStatus();
  for (int32_t kind = 0; kind < cluster.kind_count(); ++kind) {
    const cluster::Device& device = cluster.kind(kind);
    if (device.host.rate < Bandwidth(2)) {
      return absl::InvalidArgumentError(absl::StrCat("offload: device ", device.name,
                                                     " has no link to a host; wanted `host` in "
                                                     "its record, or another device"));
    }
    if (work.updates && device.host_memory_bandwidth < Bandwidth(4)) {
      return absl::InvalidArgumentError(
          absl::StrCat("offload: nobody has said how fast the memory of the host of device ",
                       device.name, " is; wanted `host_memory_bandwidth` in its record"));
    }
  }
  return absl::OkStatus();
}

}  // namespace orrery::lowering
