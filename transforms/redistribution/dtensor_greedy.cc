#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/redistribution/dtensor.h"
#include "transforms/redistribution/dtensor_placement.h"
#include "transforms/redistribution/dtensor_price.h"

// What DTensor does without looking for the best plan.

namespace orrery::transforms::redistribution {
namespace dtensor_greedy_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Greedy {
 public:
  Greedy(const MoveSet& move_set, const Problem& problem)
      : move_set_(move_set),
        axes_(static_cast<int>(problem.mesh.axes().size())),
        current_(problem.from),
        target_(problem.to) {
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(axes_); ++axis) {
      splits_ = splits_ || current_.role(axis) == AxisRole::kSplits;
    }
  }

  std::vector<Move> Run() && {
    // Innermost axes first: what would split a dimension within other axes than in the target is
    // gathered.
    for (int i = axes_ - 1; i >= 0 && splits_; --i) {
      const auto axis = static_cast<AxisIndex>(i);
      DtensorPlacement to = PlacementOf(target_, axis);
      if (to.role == AxisRole::kSplits &&
          Outside(current_, axis, to.dim) != Outside(target_, axis, to.dim)) {
        to = {};
      }
      Take(axis, to);
    }
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(axes_); ++axis)
      Take(axis, PlacementOf(target_, axis));
    return std::move(moves_);
  }

 private:
  // The axes before `axis` that split `dim`.
  static AxisMask Outside(const PackedLayout& layout, AxisIndex axis, int dim) {
    return MaskOf(layout.axes(dim)) & ((1u << axis) - 1);
  }

  void Take(AxisIndex axis, const DtensorPlacement& to) {
    const DtensorPlacement from = PlacementOf(current_, axis);
    if (from == to) return;
    Move move;
    move.step = {.kind = KindOf(from, to),
                 .axes = AxisList(axis),
                 .from = static_cast<int8_t>(from.dim),
                 .to = static_cast<int8_t>(to.dim),
                 .after = current_};
    PackedLayout& after = move.step.after;
    if (from.role == AxisRole::kSplits) after.PopSplit(axis);
    if (to.role == AxisRole::kReplicates) after.SetReplicated(axis);
    if (to.role == AxisRole::kPartial) after.SetPartial(axis, to.reduction);
    if (to.role == AxisRole::kSplits) {
      after.PushSplit(to.dim, axis, static_cast<int>(after.axes(to.dim).axes().size()));
    }
    move.cost = HasStep(from, to) ? move_set_.CostOf(current_, move.step).total() : kInfinity;
    const int64_t before = move_set_.Elements(current_);
    move.peak =
        before + (move.step.kind == MoveKind::kSlice ? 0 : move_set_.Elements(move.step.after));
    current_ = after;
    moves_.push_back(move);
  }

  const MoveSet& move_set_;
  const int axes_;
  PackedLayout current_;
  const PackedLayout target_;
  bool splits_ = false;  // in the source
  std::vector<Move> moves_;
};

bool InMeshOrder(const ir::Sharding& layout) {
  return std::ranges::all_of(layout.split,
                             [](const AxisList& axes) { return axes == axes.Sorted(); });
}

}  // namespace
}  // namespace dtensor_greedy_cc

absl::StatusOr<RedistributionPlan> DtensorGreedyPlan(const Problem& problem,
                                                     const DtensorOptions& options) {
  const auto move_set = MakeDtensor(problem, options);
  if (!move_set.ok()) return move_set.status();
  for (const auto& [layout, which] :
       {std::pair{&problem.from, "source"}, {&problem.to, "target"}}) {
    if (dtensor_greedy_cc::InMeshOrder(*layout)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(which, ": a dimension's axes are not in the order of the mesh, as DTensor's",
                     " greedy planner wants them; try `planner` optimal, as DTensor does"));
  }
  return Priced(**move_set, PackedLayout(problem.from),
                dtensor_greedy_cc::Greedy(**move_set, problem).Run());
}

}  // namespace orrery::transforms::redistribution
