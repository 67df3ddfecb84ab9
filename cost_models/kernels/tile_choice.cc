#include "cost_models/kernels/tile_choice.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::cost_models {
namespace tile_choice_cc {
namespace {

using cluster::Multiprocessor;

// What is tried where the user leaves it open.
constexpr int64_t kBlocks[] = {16, 32, 64, 128, 256};
constexpr int64_t kCacheBlocks[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
constexpr int64_t kDepths[] = {4, 8, 16, 32, 64};
constexpr int64_t kThreads[] = {1, 2, 4, 8, 16};
constexpr int64_t kVectors[] = {1, 2, 4};
constexpr int64_t kPads[] = {0, 1, 2, 4};

// Registers are given out by eights (CUDA's occupancy calculator).
constexpr int64_t kRegistersAtOnce = 8;
constexpr int64_t kRegisterBytes = 4, kWidestLoad = 16;

int64_t RoundedUp(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

double ElementBytes(const TileQuestion& question) { return ir::BytesOf(question.types.in); }

// In registers of 4 bytes, where sums are of fp32.
int64_t RegistersOf(const LoopCounts& counts, double element_bytes) {
  const double held = static_cast<double>(counts.held) * element_bytes;
  return counts.sums + static_cast<int64_t>(std::ceil(held / kRegisterBytes)) +
         Multiprocessor::kOtherRegisters;
}

// "" where a block of it fits on a core, else what does not.
std::string Unfit(const TiledNest& nest, const Multiprocessor& core) {
  const auto more = [](absl::string_view what, int64_t have, int64_t most) {
    return absl::StrCat("wants ", have, " ", what, "; at most ", most);
  };
  const bool shared = nest.nest->near == NearMemory::kShared;
  const Bytes room = shared ? core.shared_memory_a_block : core.cache;
  if (nest.near_bytes > room) {
    return more(shared ? "bytes of shared memory" : "bytes of cache", nest.near_bytes.count(),
                room.count());
  }
  const int64_t threads = nest.counts.threads;
  if (nest.registers > core.registers_a_thread) {
    return more("registers a thread", nest.registers, core.registers_a_thread);
  }
  if (threads > core.threads_a_block) {
    return more("threads a block", threads, core.threads_a_block);
  }
  const int64_t all =
      RoundedUp(nest.registers, kRegistersAtOnce) * RoundedUp(threads, Multiprocessor::kWarp);
  return all > core.registers ? more("registers a block", all, core.registers) : "";
}

// How many blocks a core runs at once.
int64_t BlocksAtOnce(const TiledNest& nest, const Multiprocessor& core) {
  const int64_t threads = RoundedUp(nest.counts.threads, Multiprocessor::kWarp);
  int64_t blocks = std::min<int64_t>(core.blocks, core.threads / threads);
  blocks =
      std::min(blocks, core.registers / (RoundedUp(nest.registers, kRegistersAtOnce) * threads));
  const Bytes shared = nest.near_bytes + core.reserved;
  if (nest.near_bytes > Bytes(0)) {
    blocks = std::min(blocks, core.shared_memory.count() / shared.count());
  }
  return std::max<int64_t>(blocks, 1);
}

// The core with the most blocks decides; lanes that have no thread of a block do nothing.
void AddTimes(const TileQuestion& question, TiledNest& nest) {
  const LoopCounts& counts = nest.counts;
  const Multiprocessor& core = question.core;
  const double clock = core.Clock(question.device);
  const int64_t most = (counts.blocks + core.cores - 1) / core.cores;
  const int64_t at_once = std::min(most, nest.blocks_a_core);
  const double threads = static_cast<double>(counts.threads * at_once);
  const double busy = std::min<double>(threads, core.lanes);
  const double in_warps = static_cast<double>(counts.threads) /
                          static_cast<double>(RoundedUp(counts.threads, Multiprocessor::kWarp));
  const double sums =
      static_cast<double>(counts.block_sums) * static_cast<double>(question.shape.k);
  const auto of_blocks = static_cast<double>(most);
  nest.arithmetic_s = of_blocks * sums / (std::min(busy, core.lanes * in_warps) * clock);
  const double bytes = static_cast<double>(counts.memory.loads()) * ElementBytes(question) +
                       static_cast<double>(counts.memory.stores) * ir::BytesOf(question.types.out);
  nest.memory_s = bytes / static_cast<double>(question.device.memory_bandwidth.bytes_per_second());
  const int64_t pieces = (question.shape.k + nest.tiles.depth - 1) / nest.tiles.depth;
  const auto cycles = static_cast<double>(nest.banks.Sum().cycles * pieces);
  nest.near_s = of_blocks * cycles / clock;
}

TiledNest Unbanked(const LoopNest& nest, const TileQuestion& question, const LoopTiles& tiles,
                   const SharedLayout& layout) {
  TiledNest answer = {
      .nest = &nest, .tiles = tiles, .layout = layout, .counts = nest.count(question.shape, tiles)};
  answer.layout.a_along_k = question.types.along_k;
  answer.layout.b_along_k = question.b_along_k;
  answer.layout.element_bytes = std::max(1, static_cast<int>(ElementBytes(question)));
  answer.registers = RegistersOf(answer.counts, ElementBytes(question));
  const bool shared = nest.near == NearMemory::kShared;
  const int64_t padding = shared ? 2 * layout.pad * tiles.depth : 0;
  answer.near_bytes = Bytes(static_cast<int64_t>(
      std::ceil(static_cast<double>(answer.counts.near_held + padding) * ElementBytes(question))));
  answer.unfit = Unfit(answer, question.core);
  if (!answer.timed()) return answer;
  answer.blocks_a_core = BlocksAtOnce(answer, question.core);
  answer.occupancy = static_cast<double>(answer.blocks_a_core *
                                         RoundedUp(answer.counts.threads, Multiprocessor::kWarp)) /
                     question.core.threads;
  answer.waves = static_cast<double>(answer.counts.blocks) /
                 static_cast<double>(answer.blocks_a_core * question.core.cores);
  AddTimes(question, answer);
  return answer;
}

void AddBanks(const TileQuestion& question, TiledNest& answer) {
  if (answer.nest->near != NearMemory::kShared || !answer.unfit.empty()) return;
  answer.banks = SharedUseOf(answer.tiles, answer.layout);
  AddTimes(question, answer);
}

// Less is better; of what has no room, less of what it wants.
auto RankOf(const TiledNest& nest) {
  const bool unfit = !nest.unfit.empty();
  return std::tuple(unfit, unfit ? nest.registers : 0, unfit ? nest.near_bytes.count() : 0,
                    nest.seconds(), nest.counts.memory.loads(), nest.banks.Sum().cycles,
                    nest.counts.near.loads(), nest.near_bytes.count(), nest.registers);
}

bool IsBefore(const TiledNest& a, const TiledNest& b) { return RankOf(a) < RankOf(b); }

// The best tiles so far, each once.
class Ranking {
 public:
  explicit Ranking(size_t most) : most_(most) {}

  // Whether one that ranks so at best, without its conflicts, is wanted.
  bool Wants(const TiledNest& nest) const {
    return kept_.size() < most_ || IsBefore(nest, kept_.back());
  }

  void Add(const TiledNest& nest) {
    const auto same = std::ranges::find(kept_, nest.tiles, &TiledNest::tiles);
    if (same != kept_.end()) {
      if (!IsBefore(nest, *same)) return;
      kept_.erase(same);
    }
    kept_.insert(std::ranges::upper_bound(kept_, nest, IsBefore), nest);
    if (kept_.size() > most_) kept_.pop_back();
  }

  std::vector<TiledNest> Take() { return std::move(kept_); }

 private:
  size_t most_;
  std::vector<TiledNest> kept_;
};

std::vector<TileWishes::Block> Pairs(std::span<const int64_t> sizes) {
  std::vector<TileWishes::Block> pairs;
  for (const int64_t m : sizes) {
    for (const int64_t n : sizes) pairs.push_back({m, n});
  }
  return pairs;
}

template <typename T>
std::vector<T> Either(const std::optional<T>& wish, std::vector<T> else_these) {
  return wish.has_value() ? std::vector<T>{*wish} : else_these;
}

std::vector<int64_t> Listed(std::span<const int64_t> sizes) { return {sizes.begin(), sizes.end()}; }

// All tiles that the wishes leave open.
std::vector<LoopTiles> TilesOf(const LoopNest& nest, const TileWishes& wishes) {
  using Block = TileWishes::Block;
  const bool shared = nest.near == NearMemory::kShared;
  const auto blocks = nest.tiles_blocks
                          ? Either(wishes.block, shared ? Pairs(kBlocks) : Pairs(kCacheBlocks))
                          : std::vector<Block>{{1, 1}};
  const auto threads =
      nest.tiles_threads ? Either(wishes.thread, Pairs(kThreads)) : std::vector<Block>{{1, 1}};
  const auto depths = shared ? Either(wishes.depth, Listed(kDepths)) : std::vector<int64_t>{1};
  const bool by_k = nest.tiles_threads && nest.near == NearMemory::kNone;
  std::vector<LoopTiles> tiles;
  for (const Block block : blocks) {
    for (const Block thread : threads) {
      const bool divides = block.m % thread.m == 0 && block.n % thread.n == 0;
      if (nest.tiles_blocks && nest.tiles_threads && !divides) continue;
      for (const int64_t depth : depths) {
        tiles.push_back({.block_m = block.m,
                         .block_n = block.n,
                         .depth = depth,
                         .thread_m = thread.m,
                         .thread_n = thread.n,
                         .thread_k = by_k ? wishes.thread_k.value_or(1) : 1});
      }
    }
  }
  return tiles;
}

bool LoadsDivide(const LoopTiles& tiles, int64_t vector) {
  return tiles.thread_m % vector == 0 && tiles.thread_n % vector == 0;
}

double LoadBytes(const TileQuestion& question, int64_t vector) {
  return static_cast<double>(vector) * ElementBytes(question);
}

// How they may lie in shared memory: loads of several elements are aligned.
std::vector<SharedLayout> LayoutsOf(const LoopNest& nest, const LoopTiles& tiles,
                                    const TileWishes& wishes, const TileQuestion& question) {
  if (nest.near != NearMemory::kShared) return {{}};
  std::vector<SharedLayout> layouts;
  for (const int64_t vector : Either(wishes.vector, Listed(kVectors))) {
    if (!LoadsDivide(tiles, vector)) continue;
    if (LoadBytes(question, vector) > kWidestLoad) continue;
    for (const int64_t pad : Either(wishes.pad, Listed(kPads))) {
      if ((tiles.block_m + pad) % vector != 0 || (tiles.block_n + pad) % vector != 0) continue;
      layouts.push_back({.pad = pad, .vector = vector});
    }
  }
  return layouts;
}

// "8x4".
std::string Text(const TileWishes::Block& block) { return absl::StrCat(block.m, "x", block.n); }

std::string WhyNoneDivides(const LoopNest& nest, const TileWishes& wishes) {
  const std::string threads = wishes.thread.has_value() ? Text(*wishes.thread) : "1x1 and larger";
  if (wishes.block.has_value()) {
    return absl::StrCat("tiles of threads do not divide those of blocks, ", threads, " not ",
                        Text(*wishes.block),
                        "; wanted sides that do, as --tile 128x128 --register-tile 8x8");
  }
  const std::vector<int64_t> sizes =
      nest.near == NearMemory::kShared ? Listed(kBlocks) : Listed(kCacheBlocks);
  return absl::StrCat("tiles of threads divide none of the blocks that are tried, ", threads,
                      " no sides of ", absl::StrJoin(sizes, ", "),
                      "; wanted sides that do, as --register-tile 8x8, or a block's, by --tile");
}

}  // namespace
}  // namespace tile_choice_cc

double TiledNest::seconds() const { return std::max({arithmetic_s, memory_s, near_s}); }

absl::string_view TiledNest::limit() const {
  if (!timed()) return "";
  if (arithmetic_s >= memory_s && arithmetic_s >= near_s) return "arithmetic";
  return memory_s >= near_s ? "memory" : "shared memory";
}

TiledNest WithTiles(const LoopNest& nest, const TileQuestion& question, const LoopTiles& tiles,
                    const SharedLayout& layout) {
  TiledNest answer = tile_choice_cc::Unbanked(nest, question, tiles, layout);
  tile_choice_cc::AddBanks(question, answer);
  return answer;
}

std::vector<TiledNest> RankTiles(const LoopNest& nest, const TileQuestion& question,
                                 const TileWishes& wishes, size_t most) {
  tile_choice_cc::Ranking ranking(most);
  for (const LoopTiles& tiles : tile_choice_cc::TilesOf(nest, wishes)) {
    for (const SharedLayout& layout : tile_choice_cc::LayoutsOf(nest, tiles, wishes, question)) {
      TiledNest answer = tile_choice_cc::Unbanked(nest, question, tiles, layout);
      if (!ranking.Wants(answer)) continue;
      tile_choice_cc::AddBanks(question, answer);
      ranking.Add(answer);
    }
  }
  return ranking.Take();
}

std::string WhyNoTiles(const LoopNest& nest, const TileQuestion& question,
                       const TileWishes& wishes) {
  namespace own = tile_choice_cc;
  const std::vector<LoopTiles> tiles = own::TilesOf(nest, wishes);
  if (tiles.empty()) return own::WhyNoneDivides(nest, wishes);
  // Loads of single elements are always possible.
  const int64_t vector = wishes.vector.value_or(1);
  const double bytes = own::LoadBytes(question, vector);
  if (bytes > own::kWidestLoad) {
    return absl::StrCat("loads of ", vector, " elements of ", ToString(question.types.in),
                        " are of ", bytes, " bytes; wanted at most ", own::kWidestLoad,
                        ", as --vector ", own::kWidestLoad / own::ElementBytes(question));
  }
  const auto divided = std::ranges::find_if(
      tiles, [&](const LoopTiles& each) { return own::LoadsDivide(each, vector); });
  if (divided == tiles.end()) {
    return absl::StrCat(
        "loads of ", vector, " elements do not divide tiles of threads",
        wishes.thread.has_value() ? absl::StrCat(", ", own::Text(*wishes.thread)) : "",
        "; wanted sides that they do, as --register-tile 8x8 --vector 4");
  }
  return absl::StrCat("rows of a tile, of ", divided->block_m, " and ", divided->block_n,
                      " elements with ",
                      wishes.pad.has_value() ? absl::StrCat(*wishes.pad) : "0, 1, 2 or 4",
                      " between them, are not multiples of loads of ", vector,
                      "; wanted such as --tile 128x128 --pad 4 --vector 4");
}

}  // namespace orrery::cost_models
