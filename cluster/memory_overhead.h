#ifndef ORRERY_CLUSTER_MEMORY_OVERHEAD_H_
#define ORRERY_CLUSTER_MEMORY_OVERHEAD_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/units.h"

namespace orrery::cluster {

/// What a device's memory holds beside the tensors of a step. None of it by default: how much it is
/// depends on versions of drivers and libraries, and published peaks differ in what they count.
struct MemoryOverhead {
  Bytes framework = {};     // context of the driver, kernels, the framework's own
  Bytes communicator = {};  // buffers of the communication library, for each communicator of a rank
  Bytes workspace = {};     // scratch of matrix products
  double fragmentation = 0;  // what the allocator loses, as a part of the tensors: 0.05 is 5 %

  friend bool operator==(const MemoryOverhead&, const MemoryOverhead&) = default;
};

/// What is usual on a device of that name, today, with PyTorch and NCCL; nothing for a device that
/// there is no record of.
///  - framework, 512 MiB: PyTorch reports about 300 MB of context since CUDA 11.7 loads kernels as
///    they are used, and over 1000 MB before (pytorch issue 107667).
///  - communicator, 240 MiB: linear in the number of channels (nccl issue 986), each with 10 MiB
///    (nccl issue 1685); 24 channels, as NCCL opens on eight GPUs with NVLink. 40 MiB, 4 channels,
///    on cards without it.
///  - workspace: 32 MiB from Hopper on, else 4 MiB (cuBLAS reference, cublasSetWorkspace), of each
///    of two streams.
///  - fragmentation, 0: no source gives one number.
MemoryOverhead UsualOverhead(absl::string_view device);

/// Reads "framework=1GiB,communicator=300MiB,workspace=32MiB,fragmentation=0.05", each of them
/// optional and at least 0; "none"; "usual", what `device` usually has, also with more of the
/// former after a comma.
absl::StatusOr<MemoryOverhead> ParseMemoryOverhead(absl::string_view text,
                                                   absl::string_view device);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_MEMORY_OVERHEAD_H_
