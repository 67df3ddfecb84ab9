#include "transforms/schedules/building_block.h"

namespace orrery::transforms {
namespace building_block_cc {
namespace {

// Which slots of the interval each rank has given away.
class TakenSlots {
 public:
  TakenSlots(size_t ranks, int32_t interval)
      : interval_(interval), taken_(ranks, std::vector<bool>(static_cast<size_t>(interval))) {}

  // The first slot from `slot` on from which the rank is free for `length` slots; takes them. Where
  // there is none, `slot`: then steps of two microbatches wait for each other, once an interval.
  int32_t Take(size_t rank, int32_t slot, int32_t length) {
    for (int32_t later = 0; later < interval_; ++later) {
      if (!IsFree(rank, slot + later, length)) continue;
      for (int32_t i = 0; i < length; ++i) taken_[rank][InInterval(slot + later + i)] = true;
      return slot + later;
    }
    return slot;
  }

 private:
  size_t InInterval(int32_t slot) const { return static_cast<size_t>(slot % interval_); }

  bool IsFree(size_t rank, int32_t slot, int32_t length) const {
    for (int32_t i = 0; i < length; ++i) {
      if (taken_[rank][InInterval(slot + i)]) return false;
    }
    return true;
  }

  int32_t interval_;
  std::vector<std::vector<bool>> taken_;
};

}  // namespace
}  // namespace building_block_cc

BuildingBlock PlaceBlock(const BlockPipeline& pipeline, std::span<const int32_t> gaps,
                         int32_t interval) {
  const size_t stages = pipeline.stages();
  BuildingBlock block = {.interval = interval,
                         .forward = std::vector<int32_t>(stages),
                         .backward = std::vector<int32_t>(stages)};
  building_block_cc::TakenSlots taken(pipeline.ranks, interval);
  int32_t slot = 0;
  for (size_t stage = 0; stage < stages; ++stage) {
    block.forward[stage] = taken.Take(pipeline.RankOf(stage), slot, 1);
    slot = block.forward[stage] + gaps[stage];
  }
  const int32_t length = pipeline.splits_backward ? 1 : 2;
  for (size_t stage = stages; stage-- > 0;) {
    block.backward[stage] = taken.Take(pipeline.RankOf(stage), slot, length);
    if (stage > 0) slot = block.backward[stage] + gaps[2 * stages - 1 - stage];
  }
  return block;
}

}  // namespace orrery::transforms
