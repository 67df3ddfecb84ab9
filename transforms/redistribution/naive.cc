#include "transforms/redistribution/naive.h"

#include <vector>

namespace orrery::transforms::redistribution {
namespace naive_cc {
namespace {

// The first `count` axes of a list.
ir::AxisList First(const ir::AxisList& axes, size_t count) {
  ir::AxisList first;
  for (const ir::AxisIndex axis : axes.axes().first(count)) first.push_back(axis);
  return first;
}

}  // namespace
}  // namespace naive_cc

std::optional<RedistributionPlan> Follow(const MoveSet& move_set, const PackedLayout& from,
                                         std::span<const PackedLayout> layouts) {
  PackedLayout at = move_set.Normal(from);
  std::vector<Move> taken, moves;
  for (const PackedLayout& layout : layouts) {
    const PackedLayout next = move_set.Normal(layout);
    if (next == at) continue;
    moves.clear();
    move_set.Expand(at, moves);
    const Move* best = nullptr;
    for (const Move& move : moves) {
      if (move.step.after == next && (best == nullptr || move.cost < best->cost)) best = &move;
    }
    if (best == nullptr) return std::nullopt;
    taken.push_back(*best);
    at = next;
  }
  return Priced(move_set, move_set.Normal(from), taken);
}

std::optional<RedistributionPlan> NaivePlan(const MoveSet& move_set, const Problem& problem) {
  const PackedLayout from(problem.from), to(problem.to);
  const auto rank = static_cast<int>(problem.dims.size());
  std::vector<PackedLayout> layouts;
  PackedLayout at = from;
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(problem.mesh.axes().size());
       ++axis) {
    if (at.role(axis) != AxisRole::kPartial) continue;
    at.SetReplicated(axis);
    layouts.push_back(at);
  }
  for (int dim = rank - 1; dim >= 0; --dim) {
    const bool nested = at.block(dim) == ir::kNestedChunks;
    for (ir::AxisList axes = at.axes(dim); !axes.empty();) {
      axes = naive_cc::First(axes, nested ? axes.axes().size() - 1 : 0);
      at.SetSplit(dim, axes);
      layouts.push_back(at);
    }
  }
  for (int dim = 0; dim < rank; ++dim) {
    const ir::AxisList axes = to.axes(dim);
    const bool nested = to.block(dim) == ir::kNestedChunks;
    for (size_t count = nested ? 1 : axes.axes().size(); count <= axes.axes().size(); ++count) {
      if (count == 0) break;
      at.SetSplit(dim, naive_cc::First(axes, count), to.block(dim));
      layouts.push_back(at);
    }
  }
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(problem.mesh.axes().size());
       ++axis) {
    if (to.role(axis) != AxisRole::kPartial) continue;
    at.SetPartial(axis, to.reduction(axis));
    layouts.push_back(at);
  }
  return Follow(move_set, from, layouts);
}

}  // namespace orrery::transforms::redistribution
