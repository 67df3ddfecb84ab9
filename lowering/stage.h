#ifndef ORRERY_LOWERING_STAGE_H_
#define ORRERY_LOWERING_STAGE_H_

#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "lowering/block.h"
#include "lowering/makers.h"
#include "lowering/pricing.h"
#include "simulator/program.h"

namespace orrery::lowering {

/// A rank that is simulated: one of a stage, standing for all of it or for itself.
struct Actor {
  simulator::RankClassId rank;
  std::array<simulator::StreamId, simulator::kStreamKindCount> streams;
  size_t kind = 0;  // of its device, among those of its stage
};

/// A block with what was looked up once.
struct PlacedBlock {
  Block block;
  /// Of its kernels on each kind of device of the stage but the first, whose are in the block.
  std::vector<std::vector<Duration>> other_durations = {};
  // When folded:
  std::vector<simulator::FlowId> flows = {};  // by task, invalid for kernels
  std::vector<TaskTime> sends = {};

  /// How long task `t` takes on a device of that kind.
  Duration DurationOf(size_t t, size_t kind) const {
    return kind == 0 ? block.tasks[t].duration : other_durations[kind - 1][t];
  }
};

/// One stage while its blocks are being placed.
struct Stage {
  std::vector<Actor> actors;
  PlacedBlock forward_first, forward, backward_first, backward, update;
  int32_t last_microbatch = 0;  // that was placed
  int32_t last_backward = -1;   // whose backward was placed; -1: none yet
  Makers makers;

  std::array<PlacedBlock*, 5> blocks() {
    return {&forward_first, &forward, &backward_first, &backward, &update};
  }
  std::array<const PlacedBlock*, 5> blocks() const {
    return {&forward_first, &forward, &backward_first, &backward, &update};
  }
  /// The backward that update follows; of a single microbatch there is only a first one.
  const Block& LastBackward() const {
    return backward.block.tasks.empty() ? backward_first.block : backward.block;
  }
};

/// How often blocks are placed.
struct Placements {
  int64_t microbatches = 1;
  bool asynchronous = false;  // a schedule that updates after each microbatch

  /// One microbatch, or nothing to add to: the blocks of the first one are those of all.
  bool always_first() const { return asynchronous || microbatches == 1; }
  /// Of each of Stage::blocks.
  std::array<int64_t, 5> counts() const {
    const int64_t first = always_first() ? microbatches : 1;
    return {first, microbatches - first, first, microbatches - first,
            asynchronous ? microbatches : 1};
  }
  /// Rows that `rows_of` counts in the blocks of a stage, each as often as a rank has it.
  template <typename RowsOf>
  int64_t CountOnARank(const Stage& stage, const RowsOf& rows_of) const {
    int64_t rows = 0;
    const auto blocks = stage.blocks();
    for (size_t b = 0; b < blocks.size(); ++b) rows += rows_of(blocks[b]->block) * counts()[b];
    return rows;
  }
  /// The same of all ranks that are simulated.
  template <typename RowsOf>
  int64_t Count(const std::vector<Stage>& stages, const RowsOf& rows_of) const {
    int64_t rows = 0;
    for (const Stage& stage : stages) {
      rows += CountOnARank(stage, rows_of) * std::ssize(stage.actors);
    }
    return rows;
  }
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_STAGE_H_
