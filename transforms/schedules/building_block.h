#ifndef ORRERY_TRANSFORMS_SCHEDULES_BUILDING_BLOCK_H_
#define ORRERY_TRANSFORMS_SCHEDULES_BUILDING_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// A building block says when the steps of one microbatch run, in slots; repeated at an interval it
// gives a schedule that is periodic, and in which no two microbatches want a rank at once (Qi, Wan,
// Amar and Lin, Pipeline Parallelism with Controllable Memory, NeurIPS 2024). How long a microbatch
// stays on a rank, divided by the interval, is how many are live there: blocks that are short save
// memory, blocks with room wait less.

namespace orrery::transforms {

/// The pipeline that a block is for.
struct BlockPipeline {
  size_t ranks = 1;
  size_t microbatches = 1;
  /// 1: stage r on rank r. 2: stages r and 2p-1-r on rank r, down a V and up again.
  size_t chunks = 1;
  bool splits_backward = true;  // in I and W
  /// Most activations live on each rank, from a forward to the end of its W, or B.
  std::vector<int64_t> live_limits = {};

  size_t stages() const { return ranks * chunks; }
  size_t RankOf(size_t stage) const { return stage < ranks ? stage : 2 * ranks - 1 - stage; }
  size_t StageOf(size_t rank, size_t chunk) const {
    return chunk == 0 ? rank : 2 * ranks - 1 - rank;
  }
  size_t StepsOfRank() const { return (splits_backward ? 3 : 2) * chunks * microbatches; }
  /// The shortest interval: F, I and W of each chunk.
  int32_t ShortestInterval() const { return 3 * static_cast<int32_t>(chunks); }
};

struct BuildingBlock {
  int32_t interval = 1;  // slots from one microbatch to the next
  /// By stage, the first slot of the forward, and of I or B. An F or I takes one slot, a B two; a W
  /// takes whichever is left.
  std::vector<int32_t> forward;
  std::vector<int32_t> backward;
};

/// The block in which the steps of a microbatch, F of stage 0 … last and then I or B of stage last
/// … 0, start at least so many slots after one another as `gaps` says, one less than steps; each as
/// early as its rank is not taken by a step of this or another microbatch.
BuildingBlock PlaceBlock(const BlockPipeline& pipeline, std::span<const int32_t> gaps,
                         int32_t interval);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_BUILDING_BLOCK_H_
