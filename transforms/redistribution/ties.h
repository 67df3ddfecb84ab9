#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_TIES_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_TIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/redistribution/wrapped_moves.h"

namespace orrery::transforms::redistribution {

/// A part of what steps cost: a field of StepCost, or all of what ranks do by themselves.
struct CostPart {
  double StepCost::*field = nullptr;  // null: all that steps cost in which nothing is exchanged

  /// How much of the cost of `step` it is.
  double Of(const StepCost& cost, const Step& step) const;
};

/// "copy" is StepCost::copy, "local" what ranks do by themselves. The error names all parts.
absl::StatusOr<CostPart> FindCostPart(absl::string_view name);

/// The moves of another set without a part of their cost, which only tells plans apart whose other
/// parts come to the same, to a millionth of the unit: it is Move::tie. Costs are rounded to that,
/// so that sums are equal where what is added up is. It has no lower bound.
class TieBroken final : public WrappedMoves {
 public:
  /// `moves` lives longer.
  TieBroken(const MoveSet& moves, const CostPart& part) : WrappedMoves(moves), part_(part) {}

  double LowerBound(const PackedLayout&) const override { return 0; }
  /// The cost without the part.
  StepCost CostOf(const PackedLayout& before, const Step& step) const override;

 private:
  void Change(const PackedLayout& layout, std::vector<Move>& moves, size_t begin) const override;

  const CostPart part_;
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_TIES_H_
