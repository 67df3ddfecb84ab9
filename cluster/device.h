#ifndef ORRERY_CLUSTER_DEVICE_H_
#define ORRERY_CLUSTER_DEVICE_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/kernel_rates.h"
#include "cluster/link.h"
#include "support/units.h"

namespace orrery::cluster {

/// Whose cores a device has; FindMultiprocessor (cluster/multiprocessor.h) says what is known of
/// them. Time models have no need of it: theirs is KernelRates::cores.
struct DeviceCores {
  std::string like;  // a kind of AllDevices; "": nobody said
  int count = 0;     // 0: as many as that kind has

  friend bool operator==(const DeviceCores&, const DeviceCores&) = default;
};

/// What one accelerator does, as its data sheet says: peaks that kernels approach and do not reach;
/// and how near they come, where that was measured. So many fields: a column of the sheet each.
struct Device {
  std::string name;            // "a100-80gb"
  FlopRate fp32;               // peak of multiply-adds on the vector units; not TF32
  FlopRate fp16;               // peak of dense matrix products, without sparsity; bf16 as well
  FlopRate fp8;                // likewise; equal to fp16 where the device has no fp8
  FlopRate fp4;                // likewise, of nvfp4; equal to fp8 where the device has no nvfp4
  Bytes memory;                // the data sheet's gigabytes, each of 10^9 bytes
  Bandwidth memory_bandwidth;  // peak
  Duration launch_overhead;    // from one kernel to the next on a busy stream; an assumption
  FlopRate tf32 = {};          // peak of matrix products of fp32 operands; fp32's without such
  FlopRate fp64 = {};          // peak of multiply-adds; 0 where no sheet was read
  PathInfo host = {};          // one way, to the host's memory; rate 0 where unknown
  /// The part of its compute rate that a device loses while communication runs on it, as kernels
  /// that move data take some of its cores: 0 to less than 1.
  double communication_slowdown = 0;
  Bandwidth host_memory_bandwidth = {};  // its share of its host's peak; 0 where unknown
  DeviceCores cores = {};                // of its own kind, where that is a built-in one
  KernelRates rates = AssumedKernelRates();

  friend bool operator==(const Device&, const Device&) = default;
};

/// What is impossible about a device: InvalidArgument of one line, "fp32 of 0 flops/s; wanted ...".
absl::Status CheckDevice(const Device& device);

/// Where a device's figures are from.
absl::string_view DeviceSource(absl::string_view name);

/// Every device kind that there is a data sheet for, in the order of the table in device.cc.
std::span<const Device> AllDevices();

/// The device kind of that name; the error lists the names that there are.
absl::StatusOr<Device> FindDevice(absl::string_view name);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_DEVICE_H_
