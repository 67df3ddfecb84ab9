#ifndef ORRERY_TRANSFORMS_SCHEDULES_LIST_SCHEDULER_H_
#define ORRERY_TRANSFORMS_SCHEDULES_LIST_SCHEDULER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "transforms/schedules/building_block.h"
#include "transforms/schedules/schedule.h"

// Turns a building block into orders: plays the pipeline, in which each rank that is free runs,
// of the steps that are ready, the one that comes first in the periodic schedule. So steps move
// earlier at the start and at the end, where other microbatches leave ranks free, and gradients of
// weights fill what is left. A forward may overtake only when the rank's limit holds until the
// forward's own position comes, whatever the steps before it do; so nothing ever deadlocks.

namespace orrery::transforms {

struct ListRules {
  StepDurations durations = {};  // that the ranks reckon with
  /// Whether backwards and forwards wait for their turn, or may come early.
  bool keeps_backwards = false;
  bool keeps_forwards = false;
  /// Whether, before a rank's first backward, forwards of chunk 0 leave room for those forwards of
  /// chunk 1 that come before it: else they crowd them out, and the first backwards come late.
  bool spares_room = false;
  /// Whether a rank waits for a step which it knows will come before the one at hand would end.
  bool waits = false;
};

struct PlayedStep {
  uint32_t rank = 0;
  StepKind kind = StepKind::kForward;
  uint32_t stage = 0;
  uint32_t microbatch = 0;
};

/// A time for each rank, and which is the earliest; of equals the first rank. A tree in which the
/// earlier of two goes on.
class EarliestRank {
 public:
  explicit EarliestRank(size_t ranks);

  void Set(size_t rank, int64_t time);
  int64_t operator[](size_t rank) const { return times_[rank]; }
  size_t Earliest() const { return winners_[1]; }
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

 private:
  size_t leaves_ = 1;              // a power of two
  std::vector<int64_t> times_;     // by rank; kNever where there is none
  std::vector<uint32_t> winners_;  // of node i: of nodes 2i and 2i+1; leaves last
};

class ListScheduler {
 public:
  explicit ListScheduler(BlockPipeline pipeline);

  /// Whether the block keeps within the limits; if so, plays it.
  bool Play(const BuildingBlock& block, const ListRules& rules);

  /// The steps of what was played last, each after those that it waits for.
  const std::vector<PlayedStep>& steps() const { return steps_; }

 private:
  static constexpr int64_t kNever = EarliestRank::kNever;

  // The forwards or the backwards of one stage: they run in the order of their microbatches.
  struct Stream {
    std::vector<uint32_t> positions;  // in the periodic order of the rank, by microbatch
    std::vector<int64_t> arrivals;    // when what it needs is there, of those known
    size_t run = 0;

    bool HasNext() const { return run < arrivals.size(); }
  };
  struct Rank {
    std::vector<int8_t> changes;  // of activations held, by position
    std::vector<uint8_t> ran;     // by position
    size_t head = 0;              // first position that has not run
    int64_t held = 0;             // forwards less backwards
    std::vector<PlayedStep> weight_gradients;
    size_t weight_gradients_run = 0;
    int64_t first_forwards = 0;  // of chunk 0 before the first backward
    size_t left = 0;
    int64_t free = 0;  // when the step at hand ends
  };
  struct Ready {
    uint32_t position;
    uint32_t stage;
    bool is_forward;
    int64_t arrival;
  };
  // Of `steps` the first `count`: to clear all would take as long as to choose.
  struct Choices {
    std::array<Ready, 4> steps;
    size_t count = 0;
  };

  bool ArrangeRank(size_t rank, const BuildingBlock& block);
  void Restart();
  int64_t FirstForwards(size_t rank) const;
  bool Admits(const Rank& rank, size_t stage, uint32_t position) const;
  Choices ChoicesOf(size_t rank) const;
  void Decide(size_t rank);
  void RunStep(size_t rank, const Ready& ready, int64_t now);
  void RunWeightGradient(size_t rank, int64_t now);
  void Finish(size_t rank, int64_t now, int64_t length);
  void Arrive(Stream& stream, size_t from, size_t to, int64_t time);

  const BlockPipeline pipeline_;
  ListRules rules_;
  int64_t backward_ = 1;                      // length of an I or B
  std::vector<Stream> forwards_, backwards_;  // by stage
  std::vector<Rank> ranks_;
  EarliestRank next_;  // when there is something to decide
  std::vector<PlayedStep> steps_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_LIST_SCHEDULER_H_
