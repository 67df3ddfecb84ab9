#ifndef ORRERY_LOWERING_DEALT_UPDATES_H_
#define ORRERY_LOWERING_DEALT_UPDATES_H_

#include <cstdint>
#include <vector>

#include "lowering/network/geometry.h"
#include "lowering/placement/instantiator.h"

namespace orrery::lowering {

/// Updates of stages whose replicas run microbatches in turn and never drain, round by round
/// (transforms/stages/dealt_rounds.h). Microbatch m is run by replica m mod R of each stage.
class DealtUpdates {
 public:
  /// Both outlive this. `every`: transforms::DealtUpdateEvery.
  DealtUpdates(const Geometry& geometry, int64_t every, Instantiator& instantiator);

  /// To come behind each backward, in which each replica of a stage is done with a round before any
  /// begins its backward of the next. Updates the replica by the rounds that are due, and begins
  /// the round of which this was the last.
  void AfterBackward(int32_t stage, int32_t microbatch);
  /// To come last: what is due by then.
  void Drain();

 private:
  struct OfStage {
    std::vector<int32_t> backwards, updates;  // that have run, by replica
    int32_t begun = 0;                        // rounds
    int32_t every = 1;                        // backwards of a replica in a round
  };
  void BeginRoundIfDone(int32_t stage);
  void EndRound(int32_t stage, size_t replica);

  const Geometry& geometry_;
  Instantiator& instantiator_;
  std::vector<OfStage> stages_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_DEALT_UPDATES_H_
