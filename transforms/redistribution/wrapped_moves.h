#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_WRAPPED_MOVES_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_WRAPPED_MOVES_H_

#include <string>
#include <vector>

#include "transforms/redistribution/move_set.h"

namespace orrery::transforms::redistribution {

/// Another move set as it is: for those that change one thing of it.
class WrappedMoves : public MoveSet {
 public:
  /// `moves` lives longer.
  explicit WrappedMoves(const MoveSet& moves) : moves_(moves) {}

  void Expand(const PackedLayout& layout, std::vector<Move>& moves) const override {
    const size_t begin = moves.size();
    moves_.Expand(layout, moves);
    Change(layout, moves, begin);
  }
  void LastResort(const PackedLayout& layout, std::vector<Move>& moves) const override {
    const size_t begin = moves.size();
    moves_.LastResort(layout, moves);
    Change(layout, moves, begin);
  }
  double LowerBound(const PackedLayout& layout) const override { return moves_.LowerBound(layout); }
  StepCost CostOf(const PackedLayout& before, const Step& step) const override {
    return moves_.CostOf(before, step);
  }
  StepVolume VolumeOf(const PackedLayout& before, const Step& step) const override {
    return moves_.VolumeOf(before, step);
  }
  int64_t Elements(const PackedLayout& layout) const override { return moves_.Elements(layout); }
  std::string NameOf(const PackedLayout& before, const Step& step) const override {
    return moves_.NameOf(before, step);
  }
  PackedLayout Normal(const PackedLayout& layout) const override { return moves_.Normal(layout); }
  std::string Refusal(const PackedLayout& before, const Step& step) const override {
    return moves_.Refusal(before, step);
  }

 protected:
  /// The move set within.
  const MoveSet& inner() const { return moves_; }

 private:
  // Changes the moves from `layout` that stand from `begin` on, or takes some away.
  virtual void Change(const PackedLayout& layout, std::vector<Move>& moves, size_t begin) const = 0;

  const MoveSet& moves_;
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_WRAPPED_MOVES_H_
