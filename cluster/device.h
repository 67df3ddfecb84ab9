#ifndef ORRERY_CLUSTER_DEVICE_H_
#define ORRERY_CLUSTER_DEVICE_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/units.h"

namespace orrery::cluster {

/// What one accelerator does, as its data sheet says.
struct Device {
  std::string name;  // "a100-80gb"
  FlopRate fp32;     // peak of matrix products, dense, by data type
  FlopRate fp16;     // bf16 as well
  FlopRate fp8;      // equal to fp16 where the device has no fp8
  Bytes memory;
  Bandwidth memory_bandwidth;
  Duration launch_overhead;  // from one kernel to the next on a busy stream
};

/// Every device kind that there is a data sheet for, by name.
std::span<const Device> AllDevices();

/// The device kind of that name; the error lists the names that there are.
absl::StatusOr<Device> FindDevice(absl::string_view name);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_DEVICE_H_
