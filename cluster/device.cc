#include "cluster/device.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::cluster {
namespace {

// An assumption: no data sheet has it. DistIR assumes 10 us.
constexpr Duration kLaunchOverhead(5'000'000);

struct DataSheet {
  absl::string_view name;
  double fp32_tflops;
  double fp16_tflops;
  double fp8_tflops;  // fp16's where there is none
  int64_t memory_gb;
  int64_t memory_gb_per_s;
};

// Dense figures, without sparsity, of one accelerator, after the vendors' data sheets as
// stas00/ml-engineering collects them (compute/accelerator tables). It has no v100 and a100-40gb:
// those two rows are NVIDIA's figures, not checked against a second source. All NVIDIA rows are SXM
// modules; gb200 is one of the two GPUs of a superchip.
constexpr DataSheet kDataSheets[] = {
    {"v100-32gb", 15.7, 125, 125, 32, 900},   {"a100-40gb", 19.5, 312, 312, 40, 1555},
    {"a100-80gb", 19.5, 312, 312, 80, 2000},  {"h100-80gb", 67, 989, 1979, 80, 3350},
    {"h200", 67, 989, 1979, 141, 4800},       {"b200", 80, 2250, 4500, 180, 8000},
    {"gb200", 80, 2500, 5000, 186, 8000},     {"b300", 80, 2250, 4500, 288, 8000},
    {"mi300x", 163.4, 1300, 2610, 192, 5300},
};

std::vector<Device> MakeDevices() {
  std::vector<Device> devices;
  for (const DataSheet& sheet : kDataSheets) {
    devices.push_back({.name = std::string(sheet.name),
                       .fp32 = FlopRate(sheet.fp32_tflops * 1e12),
                       .fp16 = FlopRate(sheet.fp16_tflops * 1e12),
                       .fp8 = FlopRate(sheet.fp8_tflops * 1e12),
                       .memory = Bytes(sheet.memory_gb * 1'000'000'000),
                       .memory_bandwidth = Bandwidth(sheet.memory_gb_per_s * 1'000'000'000),
                       .launch_overhead = kLaunchOverhead});
  }
  return devices;
}

}  // namespace

std::span<const Device> AllDevices() {
  static const std::vector<Device>& devices = *new std::vector<Device>(MakeDevices());
  return devices;
}

absl::StatusOr<Device> FindDevice(absl::string_view name) {
  for (const Device& device : AllDevices()) {
    if (device.name == name) return device;
  }
  const auto append_name = [](std::string* out, const Device& device) { out->append(device.name); };
  return absl::InvalidArgumentError(absl::StrCat("device '", name, "' is unknown; wanted one of ",
                                                 absl::StrJoin(AllDevices(), ", ", append_name)));
}

}  // namespace orrery::cluster
