#include "cluster/device.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/names/near_names.h"
#include "support/status.h"

namespace orrery::cluster {
namespace device_cc {
namespace {

// An assumption: no data sheet has it. DistIR assumes 10 us.
constexpr Duration kLaunchOverhead(5'000'000);

// A device's share of the peak of its host's memory, in GB/s: channels times rate times 8 bytes of
// all sockets, over the devices of the machine that the device mostly comes in.
constexpr double kDgx1 = 8 * 2.400 * 8 / 8;      // 2 Xeon E5-2698 v4, 8 V100
constexpr double kDgx2 = 12 * 2.667 * 8 / 16;    // 2 Xeon Platinum 8168, 16 V100
constexpr double kDgxA100 = 16 * 3.200 * 8 / 8;  // 2 EPYC 7742, 8 A100
constexpr double kDgxH100 = 16 * 4.800 * 8 / 8;  // 2 Xeon Platinum 8480C, 8 H100
constexpr double kGrace = 512.0 / 2;             // a Grace CPU for two GPUs, LPDDR5X
constexpr double kTrento = 8 * 3.200 * 8 / 8;    // Frontier: an EPYC 7A53 for 8 dies
constexpr double kGenoa = 24 * 4.800 * 8 / 8;    // 2 EPYC of the fourth generation, 8 MI300X
constexpr double kTpuHost = kDgxA100;            // an assumption
constexpr double kCardHost = kDgxA100;           // likewise: two EPYC, 8 cards

struct DataSheet {
  absl::string_view name;
  double fp32_tflops;
  double tf32_tflops;  // fp32's where there is none
  double fp16_tflops;
  double fp8_tflops;  // fp16's where there is none
  int64_t memory_gb;
  int64_t memory_gb_per_s;
  double host_gb_per_s;         // PCIe x16 of generation 3, 4 or 5: 15.75, 31.5, 63
  double host_memory_gb_per_s;  // of the constants above
  absl::string_view source;
};

constexpr absl::string_view kCollected =
    "vendors' data sheets, as stas00/ml-engineering collects them; dense, without sparsity";
constexpr absl::string_view kVendor = "NVIDIA's data sheet, not checked against a second source";
constexpr absl::string_view kCard =
    "NVIDIA's whitepaper of the architecture, not checked against a second source; products of 16 "
    "and 8 bits with fp32 accumulation, which GeForce cards do at half the rate";
constexpr absl::string_view kTpu =
    "Google's figures in stas00/ml-engineering; fp32 is an assumption, 1/32 of bf16, for the "
    "vector unit";

// Of one accelerator each; gb200 is one of the two GPUs of a superchip, mi250x-gcd one of the two
// dies of a module, tpu-v7-core one of the two of a chip, which software sees as a device each. SXM
// modules where it does not say PCIe.
constexpr DataSheet kDataSheets[] = {
    {"v100-32gb", 15.7, 15.7, 125, 125, 32, 900, 15.75, kDgx2, kVendor},
    {"v100-16gb", 15.7, 15.7, 125, 125, 16, 900, 15.75, kDgx1, kVendor},
    {"a100-40gb", 19.5, 156, 312, 312, 40, 1555, 31.5, kDgxA100, kVendor},
    {"a100-80gb", 19.5, 156, 312, 312, 80, 2000, 31.5, kDgxA100, kCollected},
    {"a100-40gb-pcie", 19.5, 156, 312, 312, 40, 1555, 31.5, kDgxA100, kVendor},
    {"a100-80gb-pcie", 19.5, 156, 312, 312, 80, 1940, 31.5, kDgxA100, kCollected},
    {"h100-80gb", 67, 494.5, 989, 1979, 80, 3350, 63, kDgxH100, kCollected},
    {"h100-80gb-pcie", 51, 378, 756, 1513, 80, 2000, 63, kDgxH100, kCollected},
    {"h100-96gb-hbm2e", 67, 494.5, 989, 1979, 96, 2400, 63, kDgxH100,
     "torchtitan (Liang et al. 2025): memory and its rate; the rest as an H100 SXM's data sheet, "
     "which a limit of 500 W keeps it from"},
    {"h200", 67, 494.5, 989, 1979, 141, 4800, 63, kDgxH100, kCollected},
    {"h800", 67, 494.5, 989, 1979, 80, 3350, 63, kDgxH100,
     "an H100's data sheet; NVLink has half its links (DeepSeek-AI 2024, 2412.19437)"},
    {"gh200", 67, 494.5, 989, 1979, 96, 4000, 63, 2 * kGrace, kCollected},
    {"b200", 80, 1125, 2250, 4500, 180, 8000, 63, kDgxH100, kCollected},
    {"gb200", 80, 1250, 2500, 5000, 186, 8000, 63, kGrace, kCollected},
    {"b300", 80, 1125, 2250, 4500, 288, 8000, 63, kDgxH100, kCollected},
    {"gb300", 80, 1250, 2500, 5000, 288, 8000, 63, kGrace,
     "as gb200, with the memory of a B300; not checked"},
    {"l40s", 91.6, 183, 362, 733, 48, 860, 31.5, kDgxA100, kCollected},
    {"titan-rtx", 16.3, 16.3, 130.5, 130.5, 24, 672, 15.75, kCardHost, kCard},
    {"rtx-3090", 35.6, 35.6, 71, 71, 24, 936, 31.5, kCardHost, kCard},
    {"rtx-4090", 82.6, 82.6, 165.2, 330.3, 24, 1008, 31.5, kCardHost, kCard},
    {"rtx-5090", 104.8, 104.8, 209.5, 419, 32, 1792, 63, kCardHost, kCard},
    {"rtx-pro-6000-server", 120, 240, 480, 960, 96, 1597, 63, kDgxH100,
     "NVIDIA's data sheet; products of 16 bits at four times the rate of fp32, as the whitepaper "
     "of "
     "RTX Blackwell PRO has them; not checked against a second source"},
    {"mi250x", 47.9, 47.9, 383, 383, 128, 3280, 31.5, 2 * kTrento, kCollected},
    {"mi250x-gcd", 23.95, 23.95, 191.5, 191.5, 64, 1640, 31.5, kTrento, "half of mi250x"},
    {"mi300x", 163.4, 653.7, 1300, 2610, 192, 5300, 63, kGenoa, kCollected},
    {"mi350x", 144.2, 144.2, 2300, 4600, 288, 8000, 63, kGenoa,
     "AMD's data sheet, not checked against a second source"},
    {"mi355x", 157.3, 157.3, 2500, 5000, 288, 8000, 63, kGenoa, kCollected},
    {"tpu-v4", 275.0 / 32, 275.0 / 32, 275, 275, 32, 1200, 15.75, kTpuHost, kTpu},
    {"tpu-v5e", 197.0 / 32, 197.0 / 32, 197, 197, 16, 820, 15.75, kTpuHost, kTpu},
    {"tpu-v5p", 459.0 / 32, 459.0 / 32, 459, 459, 95, 2760, 15.75, kTpuHost, kTpu},
    {"tpu-v6e", 918.0 / 32, 918.0 / 32, 918, 918, 32, 1640, 31.5, kTpuHost, kTpu},
    {"tpu-v7-core", 2307.0 / 64, 2307.0 / 64, 1153.5, 2307, 96, 3690, 15.75, kTpuHost / 2,
     "half of tpu-v7"},
    {"tpu-v7", 2307.0 / 32, 2307.0 / 32, 2307, 4614, 192, 7380, 31.5, kTpuHost,
     "Google's figures of a chip of Ironwood, not checked against a second source; fp32 as of the "
     "others"},
};

// Products of 4 bits, nvfp4: NVIDIA's and AMD's data sheets, dense. Others have none.
struct FourBits {
  absl::string_view name;
  double tflops;
};

constexpr FourBits kFourBits[] = {
    {"b200", 9000},   {"gb200", 10000},  {"b300", 13500},    {"gb300", 15000},
    {"mi350x", 9200}, {"mi355x", 10000}, {"rtx-5090", 1676}, {"rtx-pro-6000-server", 1920}};

double FourBitTflops(const DataSheet& sheet) {
  for (const FourBits& peak : kFourBits) {
    if (peak.name == sheet.name) return peak.tflops;
  }
  return sheet.fp8_tflops;
}

// From the host over PCIe; an assumption.
constexpr Duration kHostLatency(1'000'000);

std::vector<Device> MakeDevices() {
  std::vector<Device> devices;
  for (const DataSheet& sheet : kDataSheets) {
    devices.push_back(
        {.name = std::string(sheet.name),
         .fp32 = FlopRate(sheet.fp32_tflops * 1e12),
         .fp16 = FlopRate(sheet.fp16_tflops * 1e12),
         .fp8 = FlopRate(sheet.fp8_tflops * 1e12),
         .fp4 = FlopRate(FourBitTflops(sheet) * 1e12),
         .memory = Bytes(sheet.memory_gb * 1'000'000'000),
         .memory_bandwidth = Bandwidth(sheet.memory_gb_per_s * 1'000'000'000),
         .launch_overhead = kLaunchOverhead,
         .tf32 = FlopRate(sheet.tf32_tflops * 1e12),
         .host = {Bandwidth::FromGigabytesPerSecond(sheet.host_gb_per_s), kHostLatency},
         .host_memory_bandwidth = Bandwidth::FromGigabytesPerSecond(sheet.host_memory_gb_per_s),
         .cores = {.like = std::string(sheet.name)},
         .rates = PresetKernelRates(sheet.name)});
  }
  return devices;
}

// What every device has more than nothing of.
absl::Status CheckPeak(absl::string_view what, double flops_per_second) {
  constexpr double kMost = 1e21;  // beyond it, times of small ops are no whole picosecond
  if (flops_per_second > 0 && flops_per_second <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", what, " of ", flops_per_second,
                                                 " flops/s; wanted more than 0, at most ", kMost));
}

}  // namespace
}  // namespace device_cc

std::span<const Device> AllDevices() {
  static const std::vector<Device>& devices = *new std::vector<Device>(device_cc::MakeDevices());
  return devices;
}

absl::Status CheckDevice(const Device& device) {
  ORRERY_RETURN_IF_ERROR(device_cc::CheckPeak("fp32", device.fp32.flops_per_second()));
  ORRERY_RETURN_IF_ERROR(device_cc::CheckPeak("tf32", device.tf32.flops_per_second()));
  ORRERY_RETURN_IF_ERROR(device_cc::CheckPeak("fp16", device.fp16.flops_per_second()));
  ORRERY_RETURN_IF_ERROR(device_cc::CheckPeak("fp8", device.fp8.flops_per_second()));
  ORRERY_RETURN_IF_ERROR(device_cc::CheckPeak("fp4", device.fp4.flops_per_second()));
  if (device.memory <= Bytes(0) || device.memory_bandwidth <= Bandwidth(0)) {
    return absl::InvalidArgumentError(absl::StrCat("got memory of ", ToString(device.memory),
                                                   " at ", ToString(device.memory_bandwidth),
                                                   "; wanted more than 0 of both"));
  }
  if (device.communication_slowdown >= 0 && device.communication_slowdown < 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("got communication_slowdown of ",
                                                 device.communication_slowdown,
                                                 "; wanted 0 to less than 1"));
}

absl::string_view DeviceSource(absl::string_view name) {
  for (const device_cc::DataSheet& sheet : device_cc::kDataSheets) {
    if (sheet.name == name) return sheet.source;
  }
  return "";
}

absl::StatusOr<Device> FindDevice(absl::string_view name) {
  for (const Device& device : AllDevices()) {
    if (device.name == name) return device;
  }
  std::vector<absl::string_view> names;
  for (const Device& device : AllDevices()) names.push_back(device.name);
  return absl::InvalidArgumentError(
      absl::StrCat("device '", name, "' is unknown; ", WantedNames(name, names, "list-devices")));
}

}  // namespace orrery::cluster
