#ifndef ORRERY_LOWERING_BLOCKS_HOST_WORK_H_
#define ORRERY_LOWERING_BLOCKS_HOST_WORK_H_

#include "absl/status/status.h"
#include "cluster/cluster.h"
#include "cluster/device.h"
#include "simulator/program/program.h"
#include "support/units.h"
#include "transforms/memory/offload.h"

namespace orrery::lowering {

/// Time to copy `size` between a device and its host, in pages that stay where they are: the
/// latency, and the size at 4/5 of the rate of the link. cuda-samples' bandwidthTest gets 12 to 13
/// GB/s of 15.75 on PCIe 3.0 x16, 25 to 26 of 31.5 on 4.0, and about 55 of 63 on 5.0.
Duration HostCopyTime(Bytes size, const cluster::Device& device);

/// Time of an optimizer on the host that reads and writes `moved` bytes: at 9/20 of the device's
/// share of the host's memory bandwidth. ZeRO-Offload's CPU-Adam (Ren et al. 2021, table 4) takes
/// 0.22 s for 10^9 parameters and 2.57 s for 10^10, of about 28 bytes each, on a DGX-2, whose
/// memory has 256 GB/s: a half, and 0.43.
Duration HostUpdateTime(Bytes moved, const cluster::Device& device);

/// Where that work runs.
simulator::StreamKind HostStreamOf(transforms::HostWork work);
inline bool IsHostStream(simulator::StreamKind kind) {
  return kind == simulator::StreamKind::kHost || kind == simulator::StreamKind::kFromHost ||
         kind == simulator::StreamKind::kHostCompute;
}

/// InvalidArgument where `step` works with hosts, and a device kind of the cluster has no link to
/// one or none whose memory bandwidth is known.
absl::Status CheckHosts(const transforms::PipelinedStep& step, const cluster::Cluster& cluster);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_HOST_WORK_H_
