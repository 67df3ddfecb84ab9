#ifndef ORRERY_COST_MODELS_KERNELS_BANK_CONFLICTS_H_
#define ORRERY_COST_MODELS_KERNELS_BANK_CONFLICTS_H_

#include <cstdint>
#include <span>

#include "cost_models/kernels/loop_nests.h"

// Shared memory gives one word of each bank a cycle (NVIDIA, CUDA C++ Programming Guide, "Shared
// memory"): threads of a warp that want several words of one bank wait for each other.

namespace orrery::cost_models {

/// Cycles that shared memory takes for one instruction of a warp, which reads or writes `bytes` at
/// each of these addresses: the most words that are wanted of one bank. A word that several threads
/// want counts once. Where a warp wants more than all banks give at once, as with 8 or 16 bytes a
/// thread, halves or quarters of it go one after the other.
int BankCycles(std::span<const int64_t> addresses, int bytes);

/// How the tiles of a block lie in shared memory, both with a row of theirs for each of k.
struct SharedLayout {
  int element_bytes = 4;
  int64_t pad = 0;        // elements between one row and the next
  int64_t vector = 1;     // elements that a thread loads at once
  bool a_along_k = true;  // whether the operand in memory has k in a row, so that it is
  bool b_along_k = true;  // transposed on its way; likewise
};

/// Instructions of all warps of a block, and the cycles that shared memory takes for them.
struct BankUse {
  int64_t instructions = 0;
  int64_t cycles = 0;
  int64_t least = 0;  // without conflicts

  double conflicts() const {
    return least > 0 ? static_cast<double>(cycles) / static_cast<double>(least) : 1;
  }
  BankUse& operator+=(const BankUse& other);
  friend bool operator==(const BankUse&, const BankUse&) = default;
};

/// Of a block's way through one piece of `depth` of k, whole tiles: loads of either operand into
/// registers, and stores of what was fetched.
struct SharedUse {
  BankUse a_loads, b_loads, a_stores, b_stores;

  /// All of them together.
  BankUse Sum() const;
};

/// Of such tiles: thread t makes the elements from row t / (block_n / thread_n) * thread_m and
/// column t % (block_n / thread_n) * thread_n on, and fetches each threads-th element of either
/// tile, in the order in which memory has them. Requires tiles of threads that divide those of
/// blocks, and vectors that divide those of threads.
SharedUse SharedUseOf(const LoopTiles& tiles, const SharedLayout& layout);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_BANK_CONFLICTS_H_
