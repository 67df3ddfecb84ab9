#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_SYNCHRONIZED_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_SYNCHRONIZED_H_

#include <vector>

#include "transforms/redistribution/wrapped_moves.h"

namespace orrery::transforms::redistribution {

/// The moves of another set, of which each in which ranks exchange something waits so long for the
/// last of its group, besides what it costs: StepCost::synchronization. The wait is the same
/// whatever is sent, so that a collective of a few bytes costs it, too, and what each rank does by
/// itself nothing.
class Synchronized final : public WrappedMoves {
 public:
  /// `wait`, not negative, is in the unit of `moves`, which lives longer.
  Synchronized(const MoveSet& moves, double wait) : WrappedMoves(moves), wait_(wait) {}

  /// What each of them waits.
  double wait() const { return wait_; }

  StepCost CostOf(const PackedLayout& before, const Step& step) const override {
    StepCost cost = inner().CostOf(before, step);
    if (Communicates(step.kind)) cost.synchronization += wait_;
    return cost;
  }

 private:
  void Change(const PackedLayout&, std::vector<Move>& moves, size_t begin) const override {
    for (size_t i = begin; i < moves.size(); ++i) {
      if (Communicates(moves[i].step.kind)) moves[i].cost += wait_;
    }
  }

  const double wait_;
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_SYNCHRONIZED_H_
