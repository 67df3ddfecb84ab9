#ifndef ORRERY_SIMULATOR_GOODPUT_CHECKPOINT_CYCLE_H_
#define ORRERY_SIMULATOR_GOODPUT_CHECKPOINT_CYCLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/container/inlined_vector.h"
#include "simulator/goodput/run_spec.h"

namespace orrery::simulator::goodput {

/// Training that nothing disturbs, from one start: steps, and the checkpoints between them. Where
/// it stands after so long is found by division, however many steps that are: a checkpoint of a
/// tier is due at each multiple of the next smaller one's.
class CheckpointCycle {
 public:
  /// `tiers` as OrderTiers leaves them; they live longer.
  CheckpointCycle(std::span<const CheckpointTier> tiers, double step_s);

  /// What the time from the start went into.
  struct Position {
    double trained_s = 0;  // steps
    double stalled_s = 0;  // standing still for checkpoints
    double dragged_s = 0;  // what steps took longer beside checkpoints that were written
  };
  Position At(double elapsed_s) const;

  /// Seconds of training that the last checkpoint of a tier holds which can be read after so long;
  /// nothing where there is none since the start.
  std::optional<double> LastSave(size_t tier, double elapsed_s) const;

  /// How many checkpoints of a tier were begun and stood still for.
  int64_t SavesOf(size_t tier, double elapsed_s) const;

 private:
  // A block ends with a checkpoint of its tier, and with those of all tiers before.
  struct Block {
    double time_s = 0;
    int64_t segments = 1;  // between checkpoints of the first tier
    int64_t in_next = 0;   // blocks that one of the next tier has; 0: it is the last tier
  };
  struct Whole {
    int64_t segments = 0;
    double rest_s = 0;  // beyond them
  };

  Whole WholeSegments(double elapsed_s) const;

  std::span<const CheckpointTier> tiers_;
  double segment_s_ = 0;  // trained between checkpoints of the first tier
  absl::InlinedVector<Block, 4> blocks_;
};

}  // namespace orrery::simulator::goodput

#endif  // ORRERY_SIMULATOR_GOODPUT_CHECKPOINT_CYCLE_H_
