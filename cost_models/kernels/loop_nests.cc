#include "cost_models/kernels/loop_nests.h"

#include <algorithm>

namespace orrery::cost_models {
namespace loop_nests_cc {
namespace {

using ir::ProductShape;

// Threads of a block along each side, where tiles do not say it: as many as CUDA lets a block have,
// or where each needs many registers, 256.
constexpr int64_t kSide = 32, kSideOfTiles = 16;

int64_t Parts(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

// How many tiles there are in all when blocks of `block` are cut into tiles: the last block has
// fewer.
int64_t PartsWithin(int64_t size, int64_t block, int64_t tile) {
  return size / block * Parts(block, tile) + Parts(size % block, tile);
}

// Loads of [m,k] by each of so many columns of tiles, and of [k,n] by each of so many rows of them.
LoopTraffic Passes(const ProductShape& s, int64_t columns, int64_t rows, int64_t stores) {
  return {.a = s.batch * s.m * s.k * columns, .b = s.batch * s.k * s.n * rows, .stores = stores};
}

int64_t ResultOf(const ProductShape& s) { return s.batch * s.m * s.n; }

// Blocks of side x side threads, with a tile each.
LoopCounts InSquares(const ProductShape& s, const LoopTiles& t, int64_t side, LoopTraffic memory) {
  return {.memory = memory,
          .near = {},
          .sums = t.thread_m * t.thread_n,
          .block_sums = side * t.thread_m * side * t.thread_n,
          .blocks = s.batch * Parts(s.m, side * t.thread_m) * Parts(s.n, side * t.thread_n),
          .threads = side * side};
}

// Each thread an element: a row of the one operand, a column of the other.
LoopCounts Naive(const ProductShape& s, const LoopTiles&) {
  return InSquares(s, {}, kSide, Passes(s, s.n, s.m, ResultOf(s)));
}

// Each thread reads a whole row, and for it each of its columns anew.
LoopCounts RegisterRows(const ProductShape& s, const LoopTiles& t) {
  LoopCounts counts =
      InSquares(s, t, kSideOfTiles, Passes(s, Parts(s.n, t.thread_n), s.m, ResultOf(s)));
  counts.held = 2 * s.k;
  return counts;
}

// Each thread adds up outer products of pieces of a column and of a row.
LoopCounts Register(const ProductShape& s, const LoopTiles& t) {
  const LoopTraffic memory = Passes(s, Parts(s.n, t.thread_n), Parts(s.m, t.thread_m), ResultOf(s));
  LoopCounts counts = InSquares(s, t, kSideOfTiles, memory);
  counts.held = (t.thread_m + t.thread_n) * t.thread_k;
  return counts;
}

// Rows of the first operand stay in the cache, while those of the second go through it.
LoopCounts Cached(const ProductShape& s, const LoopTiles& t, LoopTraffic near) {
  LoopCounts counts = {.memory = Passes(s, 1, Parts(s.m, t.block_m), ResultOf(s)), .near = near};
  counts.near.stores = counts.memory.loads();
  counts.near_held = (std::min(t.block_m, s.m) + std::min(t.block_n, s.n)) * s.k;
  counts.block_sums = t.block_m * s.n;
  counts.blocks = s.batch * Parts(s.m, t.block_m);
  return counts;
}

LoopCounts Cache(const ProductShape& s, const LoopTiles& t) {
  return Cached(s, t, Passes(s, s.n, s.m, 0));
}

// Between a near memory and registers, where threads take tiles of a block's.
LoopTraffic OfThreads(const ProductShape& s, const LoopTiles& t) {
  return Passes(s, PartsWithin(s.n, t.block_n, t.thread_n), PartsWithin(s.m, t.block_m, t.thread_m),
                0);
}

LoopCounts CacheAndRegister(const ProductShape& s, const LoopTiles& t) {
  LoopCounts counts = Cached(s, t, OfThreads(s, t));
  counts.sums = t.thread_m * t.thread_n;
  counts.held = t.thread_m + t.thread_n;
  return counts;
}

// A block fetches `depth` of its rows and columns together, and multiplies them from there.
LoopCounts Shared(const ProductShape& s, const LoopTiles& t) {
  const int64_t rows = Parts(s.m, t.block_m), columns = Parts(s.n, t.block_n);
  LoopCounts counts = {.memory = Passes(s, columns, rows, ResultOf(s)),
                       .near = OfThreads(s, t),
                       .sums = t.thread_m * t.thread_n,
                       .held = t.thread_m + t.thread_n,
                       .near_held = (t.block_m + t.block_n) * t.depth,
                       .block_sums = t.block_m * t.block_n,
                       .blocks = s.batch * rows * columns,
                       .threads = Parts(t.block_m, t.thread_m) * Parts(t.block_n, t.thread_n)};
  counts.near.stores = counts.memory.loads();
  return counts;
}

constexpr LoopNest kNests[] = {
    {.name = "naive",
     .summary = "a thread makes one element, of a row and a column",
     .formula = "2 n^3",
     .count = Naive},
    {.name = "register-rows",
     .summary = "a thread makes V x V elements, and reads a row once for all of its columns",
     .formula = "n^3 / V + n^3",
     .tiles_threads = true,
     .count = RegisterRows},
    {.name = "register",
     .summary = "a thread makes V x V elements, as sums of outer products",
     .formula = "2 n^3 / V",
     .tiles_threads = true,
     .count = Register},
    {.name = "cache",
     .summary = "rows of either operand are in the cache; each product reads two elements of it",
     .formula = "n^2 + n^3 / B",
     .near = NearMemory::kCache,
     .tiles_blocks = true,
     .count = Cache},
    {.name = "cache+register",
     .summary = "rows are in the cache, and tiles of them in registers",
     .formula = "n^2 + n^3 / B",
     .near = NearMemory::kCache,
     .tiles_blocks = true,
     .tiles_threads = true,
     .count = CacheAndRegister},
    {.name = "shared",
     .summary = "a block fetches pieces of L rows and columns to shared memory, and its threads "
                "take tiles of V x V from there",
     .formula = "2 n^3 / L",
     .near = NearMemory::kShared,
     .tiles_blocks = true,
     .tiles_threads = true,
     .count = Shared}};

}  // namespace
}  // namespace loop_nests_cc

std::span<const LoopNest> AllLoopNests() { return loop_nests_cc::kNests; }

const LoopNest* FindLoopNest(absl::string_view name) {
  const auto* const found = std::ranges::find(loop_nests_cc::kNests, name, &LoopNest::name);
  return found == std::end(loop_nests_cc::kNests) ? nullptr : found;
}

}  // namespace orrery::cost_models
