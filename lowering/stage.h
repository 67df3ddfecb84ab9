#ifndef ORRERY_LOWERING_STAGE_H_
#define ORRERY_LOWERING_STAGE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "lowering/block.h"
#include "lowering/makers.h"
#include "simulator/program.h"

namespace orrery::lowering {

/// A rank that is simulated: one of a stage, standing for all of it or for itself.
struct Actor {
  simulator::RankClassId rank;
  std::array<simulator::StreamId, simulator::kStreamKindCount> streams;
};

/// A block with the prices of its sends looked up once.
struct PlacedBlock {
  Block block;
  std::vector<Duration> send_durations;
};

/// One stage while its blocks are being placed.
struct Stage {
  std::vector<Actor> actors;
  PlacedBlock forward_first, forward, backward_first, backward, update;
  int32_t last_microbatch = 0;  // that was placed
  int32_t last_backward = -1;   // whose backward was placed; -1: none yet
  Makers makers;

  std::array<PlacedBlock*, 5> Blocks() {
    return {&forward_first, &forward, &backward_first, &backward, &update};
  }
  /// The backward that update follows; of a single microbatch there is only a first one.
  const Block& LastBackward() const {
    return backward.block.tasks.empty() ? backward_first.block : backward.block;
  }
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_STAGE_H_
