#include "cluster/multiprocessor.h"

#include "absl/strings/match.h"

namespace orrery::cluster {
namespace multiprocessor_cc {
namespace {

constexpr Bytes KiB(int64_t count) { return Bytes(count * 1024); }

// NVIDIA, CUDA C++ Programming Guide, "Compute Capabilities": technical specifications, and shared
// memory of each; lanes from the table of arithmetic instructions.
constexpr Multiprocessor kVolta = {.architecture = "Volta, compute capability 7.0",
                                   .cores = 80,
                                   .lanes = 64,
                                   .threads = 2048,
                                   .threads_a_block = 1024,
                                   .blocks = 32,
                                   .registers = 65536,
                                   .registers_a_thread = 255,
                                   .shared_memory = KiB(96),
                                   .shared_memory_a_block = KiB(96),
                                   .reserved = Bytes(0),
                                   .cache = KiB(128)};

constexpr Multiprocessor Turing() {
  Multiprocessor core = kVolta;
  core.architecture = "Turing, compute capability 7.5";
  core.threads = 1024;
  core.blocks = 16;
  core.shared_memory = core.shared_memory_a_block = KiB(64);
  core.cache = KiB(96);
  return core;
}

// Since Ampere the system keeps a KiB of shared memory, of each block.
constexpr Multiprocessor SinceAmpere(absl::string_view architecture, int64_t shared_kib,
                                     int64_t cache_kib) {
  Multiprocessor core = kVolta;
  core.architecture = architecture;
  core.shared_memory = KiB(shared_kib);
  core.shared_memory_a_block = KiB(shared_kib - 1);
  core.reserved = KiB(1);
  core.cache = KiB(cache_kib);
  return core;
}

// Of cards, which have less of everything but lanes.
constexpr Multiprocessor Card(absl::string_view architecture, int blocks) {
  Multiprocessor core = SinceAmpere(architecture, 100, 128);
  core.lanes = 128;
  core.threads = 1536;
  core.blocks = blocks;
  return core;
}

constexpr Multiprocessor Hopper(absl::string_view architecture) {
  Multiprocessor core = SinceAmpere(architecture, 228, 256);
  core.lanes = 128;
  return core;
}

constexpr Multiprocessor kAmpere = SinceAmpere("Ampere, compute capability 8.0", 164, 192);
constexpr Multiprocessor kHopper = Hopper("Hopper, compute capability 9.0");
constexpr Multiprocessor kBlackwell = Hopper("Blackwell, compute capability 10.0");
constexpr Multiprocessor kAda = Card("Ada, compute capability 8.9", 24);
constexpr Multiprocessor kBlackwellCard = Card("Blackwell, compute capability 12.0", 24);

// Cores: NVIDIA's whitepapers of the architectures. The first prefix that fits.
struct Line {
  absl::string_view prefix;
  int cores;
  Multiprocessor core;
};
constexpr Line kLines[] = {{"v100-", 80, kVolta},
                           {"titan-rtx", 72, Turing()},
                           {"a100-", 108, kAmpere},
                           {"rtx-3090", 82, Card("Ampere, compute capability 8.6", 16)},
                           {"rtx-4090", 128, kAda},
                           {"l40s", 142, kAda},
                           {"h100-80gb-pcie", 114, kHopper},
                           {"h100-", 132, kHopper},
                           {"h200", 132, kHopper},
                           {"h800", 132, kHopper},
                           {"gh200", 132, kHopper},
                           {"b200", 148, kBlackwell},
                           {"gb200", 148, kBlackwell},
                           {"b300", 148, kBlackwell},
                           {"gb300", 148, kBlackwell},
                           {"rtx-5090", 170, kBlackwellCard},
                           {"rtx-pro-6000", 188, kBlackwellCard}};

}  // namespace
}  // namespace multiprocessor_cc

std::optional<Multiprocessor> FindMultiprocessor(const Device& device) {
  for (const multiprocessor_cc::Line& line : multiprocessor_cc::kLines) {
    if (!absl::StartsWith(device.cores.like, line.prefix)) continue;
    Multiprocessor core = line.core;
    core.cores = device.cores.count > 0 ? device.cores.count : line.cores;
    return core;
  }
  return std::nullopt;
}

}  // namespace orrery::cluster
