#ifndef ORRERY_COST_MODELS_KERNELS_LOOP_NESTS_H_
#define ORRERY_COST_MODELS_KERNELS_LOOP_NESTS_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "ir/op_info.h"

// What the loop nests by which one learns to write a matrix product load and store: without tiles,
// with tiles in registers, in a cache, in shared memory. Counts are exact, in elements, also where
// tiles do not divide the sizes: at the edges a tile is what is left. They are what loops ask for;
// no cache takes any of it away but the one that a nest fills itself.

namespace orrery::cost_models {

/// How a nest cuts up a product [m,k] x [k,n]: elements of the result that a block makes, how much
/// of k it holds at a time; and the same of a thread.
struct LoopTiles {
  int64_t block_m = 1, block_n = 1, depth = 1;
  int64_t thread_m = 1, thread_n = 1, thread_k = 1;

  friend bool operator==(const LoopTiles&, const LoopTiles&) = default;
};

/// Loads of either operand, and stores.
struct LoopTraffic {
  int64_t a = 0, b = 0;
  int64_t stores = 0;

  int64_t loads() const { return a + b; }
  friend bool operator==(const LoopTraffic&, const LoopTraffic&) = default;
};

/// What a nest does, and what it needs. So many fields: a column each.
struct LoopCounts {
  LoopTraffic memory;     // stores are of the result
  LoopTraffic near;       // of a cache or shared memory: what fills it are stores
  int64_t sums = 1;       // of a thread in registers: elements of the result
  int64_t held = 2;       // likewise, of the operands
  int64_t near_held = 0;  // of a block in the cache or shared memory: elements
  /// Of the result, that a block makes which is not at an edge.
  int64_t block_sums = 1;
  int64_t blocks = 1, threads = 1;  // threads of a block

  friend bool operator==(const LoopCounts&, const LoopCounts&) = default;
};

/// Where a nest keeps what it uses again.
enum class NearMemory : uint8_t { kNone, kCache, kShared };

/// One way to write the loops.
struct LoopNest {
  absl::string_view name;
  absl::string_view summary;  // one sentence
  absl::string_view formula;  // loads from memory of n x n x n, as one finds it in textbooks
  NearMemory near = NearMemory::kNone;
  bool tiles_blocks = false;   // by LoopTiles::block_m and block_n
  bool tiles_threads = false;  // by LoopTiles::thread_m and thread_n
  LoopCounts (*count)(const ir::ProductShape& shape, const LoopTiles& tiles) = nullptr;
};

/// All of them: naive, register-rows, register, cache, cache+register, shared.
std::span<const LoopNest> AllLoopNests();

/// The nest of that name, or null.
const LoopNest* FindLoopNest(absl::string_view name);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_LOOP_NESTS_H_
