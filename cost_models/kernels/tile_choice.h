#ifndef ORRERY_COST_MODELS_KERNELS_TILE_CHOICE_H_
#define ORRERY_COST_MODELS_KERNELS_TILE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/device.h"
#include "cluster/multiprocessor.h"
#include "cost_models/kernels/bank_conflicts.h"
#include "cost_models/kernels/loop_nests.h"
#include "cost_models/kernels/matrix_product.h"
#include "ir/op_info.h"

// Which tiles of a loop nest a device has room for, and which of them is the best: on a machine
// whose only caches are those that the nest fills itself, with vector units alone (no tensor
// cores), where the longest of arithmetic, memory and shared memory hides the others. Latencies and
// second-level caches are left out, so that times are for comparing tiles, and no predictions.

namespace orrery::cost_models {

/// A product, and where it runs.
struct TileQuestion {
  ir::ProductShape shape;
  ProductTypes types;
  bool b_along_k = true;  // the second operand's rows; types.along_k are the first's
  const cluster::Device& device;
  const cluster::Multiprocessor& core;
};

/// What the user chose; nothing: what is best.
struct TileWishes {
  /// Rows and columns of the result.
  struct Block {
    int64_t m, n;
  };
  std::optional<Block> block = {};
  std::optional<int64_t> depth = {};
  std::optional<Block> thread = {};
  std::optional<int64_t> thread_k = {};
  std::optional<int64_t> pad = {}, vector = {};
};

/// A nest with its tiles on a device. So many fields: a column each.
struct TiledNest {
  const LoopNest* nest = nullptr;
  LoopTiles tiles = {};
  SharedLayout layout = {};  // of shared memory
  LoopCounts counts = {};
  int64_t registers = 0;   // of a thread
  Bytes near_bytes = {};   // of a block, in cache or shared memory
  std::string unfit = {};  // why there is no room, "" where there is
  int64_t blocks_a_core = 0;
  double occupancy = 0;  // threads on a core, over those that it has room for
  double waves = 0;      // of blocks over the cores
  SharedUse banks = {};  // of a block, for each `depth` of k
  /// 0 of nests for a cache, which are one core's.
  double arithmetic_s = 0, memory_s = 0, near_s = 0;

  /// Whether there is a time of it.
  bool timed() const { return nest->near != NearMemory::kCache; }
  double seconds() const;
  /// "arithmetic", "memory" or "shared memory"; "" where it is not timed.
  absl::string_view limit() const;
};

/// The nest with these tiles: what it needs, and what it takes. `vector` and `pad` of the layout
/// are taken as they are.
TiledNest WithTiles(const LoopNest& nest, const TileQuestion& question, const LoopTiles& tiles,
                    const SharedLayout& layout);

/// The best tiles of the nest among those that fit the wishes, best first, at most `most`, each
/// tile once: the shortest time; then the fewest loads from memory, from shared memory, and the
/// fewest registers. Of cache nests, which have no time, the fewest loads. Where none fits the
/// device, one that comes nearest, with `unfit`. Never empty, unless the wishes contradict
/// themselves (tiles of threads that do not divide a block's).
std::vector<TiledNest> RankTiles(const LoopNest& nest, const TileQuestion& question,
                                 const TileWishes& wishes, size_t most);

/// Of wishes that RankTiles finds nothing for, how they contradict themselves, and what to try
/// instead, by the flags of `kernel`: tiles of threads divide those of blocks; loads of several
/// elements divide tiles of threads, are no wider than 16 bytes, and begin at multiples of
/// themselves in each row with its padding.
std::string WhyNoTiles(const LoopNest& nest, const TileQuestion& question,
                       const TileWishes& wishes);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_TILE_CHOICE_H_
