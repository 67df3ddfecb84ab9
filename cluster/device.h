#ifndef ORRERY_CLUSTER_DEVICE_H_
#define ORRERY_CLUSTER_DEVICE_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/units.h"

namespace orrery::cluster {

/// What one accelerator does, as its data sheet says: peaks that a kernel approaches but does not
/// reach. A cost model says how near it comes.
struct Device {
  std::string name;            // "a100-80gb"
  FlopRate fp32;               // peak of multiply-adds on the vector units; not TF32
  FlopRate fp16;               // peak of dense matrix products, without sparsity; bf16 as well
  FlopRate fp8;                // likewise; equal to fp16 where the device has no fp8
  Bytes memory;                // the data sheet's gigabytes, each of 10^9 bytes
  Bandwidth memory_bandwidth;  // peak
  Duration launch_overhead;    // from one kernel to the next on a busy stream; an assumption
};

/// Every device kind that there is a data sheet for, in the order of the table in device.cc.
std::span<const Device> AllDevices();

/// The device kind of that name; the error lists the names that there are.
absl::StatusOr<Device> FindDevice(absl::string_view name);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_DEVICE_H_
