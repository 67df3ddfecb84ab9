#ifndef ORRERY_CLUSTER_MULTIPROCESSOR_H_
#define ORRERY_CLUSTER_MULTIPROCESSOR_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "cluster/device.h"
#include "support/units.h"

// What one core of a GPU has room for. Time models need none of it; who chooses tiles of a kernel
// does.

namespace orrery::cluster {

/// A streaming multiprocessor, as CUDA's table of compute capabilities has it. So many fields: a
/// row of the table each.
struct Multiprocessor {
  absl::string_view architecture;     // "Ampere, compute capability 8.0"
  int cores;                          // of the device
  int lanes;                          // multiply-adds of fp32 in a cycle
  int threads, threads_a_block;       // at most, at once
  int blocks;                         // likewise
  int registers, registers_a_thread;  // of 4 bytes; registers_a_thread and threads_a_block at most
  Bytes shared_memory, shared_memory_a_block;
  Bytes reserved;  // of shared memory by the system, of each block
  Bytes cache;     // first level, with shared memory

  /// Of all NVIDIA's devices: threads that run in step, and the banks of shared memory, of which
  /// each gives a word of 4 bytes a cycle.
  static constexpr int kWarp = 32, kBanks = 32, kBankBytes = 4;

  /// Registers of a thread besides those of the values that it works on: addresses, counters, what
  /// is on its way from memory. An assumption.
  static constexpr int kOtherRegisters = 32;

  /// Cycles a second, as the data sheet's peak of fp32 implies.
  double Clock(const Device& device) const {
    return device.fp32.flops_per_second() / (2.0 * lanes * cores);
  }
};

/// Of the kind whose cores the device has (Device::cores), whatever its own name is; nothing where
/// that is none of NVIDIA's, or a file does not say. There are as many as the device says, else as
/// that kind has.
std::optional<Multiprocessor> FindMultiprocessor(const Device& device);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_MULTIPROCESSOR_H_
