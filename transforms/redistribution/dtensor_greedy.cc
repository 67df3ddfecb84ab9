#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/redistribution/dtensor.h"
#include "transforms/redistribution/dtensor_price.h"

// What DTensor does, or did, without looking for the best plan.

namespace orrery::transforms::redistribution {
namespace dtensor_greedy_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a mesh axis does: DTensor's Shard(dim), Replicate or Partial(reduction).
struct Placement {
  AxisRole role = AxisRole::kReplicates;
  int dim = -1;
  ir::Reduction reduction = ir::Reduction::kSum;

  friend bool operator==(const Placement&, const Placement&) = default;
};

Placement At(const PackedLayout& layout, AxisIndex axis) {
  Placement placement = {.role = layout.role(axis), .dim = layout.dim(axis)};
  if (placement.role == AxisRole::kPartial) placement.reduction = layout.reduction(axis);
  return placement;
}

// From split to partial and from one reduction to another DTensor has no step.
bool HasStep(const Placement& from, const Placement& to) {
  return to.role != AxisRole::kPartial || from.role == AxisRole::kReplicates;
}

StepKind KindOf(const Placement& from, const Placement& to) {
  const bool splits = to.role == AxisRole::kSplits;
  if (to.role == AxisRole::kPartial) return StepKind::kMakePartial;
  switch (from.role) {
    case AxisRole::kReplicates:
      return StepKind::kSlice;
    case AxisRole::kPartial:
      return splits ? StepKind::kReduceScatter : StepKind::kAllReduce;
    case AxisRole::kSplits:
      break;
  }
  return splits ? StepKind::kAllToAll : StepKind::kAllGather;
}

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
      Placement to = At(target_, axis);
      if (to.role == AxisRole::kSplits &&
          Outside(current_, axis, to.dim) != Outside(target_, axis, to.dim)) {
        to = {};
      }
      Take(axis, to);
    }
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(axes_); ++axis)
      Take(axis, At(target_, axis));
    return std::move(moves_);
  }

 private:
  // The axes before `axis` that split `dim`.
  static AxisMask Outside(const PackedLayout& layout, AxisIndex axis, int dim) {
    return MaskOf(layout.axes(dim)) & ((1u << axis) - 1);
  }

  void Take(AxisIndex axis, const Placement& to) {
    const Placement from = At(current_, axis);
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
        before + (move.step.kind == StepKind::kSlice ? 0 : move_set_.Elements(move.step.after));
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

absl::StatusOr<double> DtensorCostByAxis(const Problem& problem, const DtensorOptions& options) {
  if (auto status = CheckDtensor(problem, options); !status.ok()) return status;
  const DtensorTopology topology(problem.mesh, options.devices_per_host);
  const PackedLayout source(problem.from), target(problem.to);
  double bytes =
      static_cast<double>(ir::ElementCount(problem.dims)) * static_cast<double>(problem.itemsize);
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(topology.axes()); ++axis) {
    if (source.role(axis) != AxisRole::kSplits) continue;
    bytes /= static_cast<double>(problem.mesh.size(axis));
  }
  double cost = 0;
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(topology.axes()); ++axis) {
    const dtensor_greedy_cc::Placement from = dtensor_greedy_cc::At(source, axis),
                                       to = dtensor_greedy_cc::At(target, axis);
    if (from == to) continue;
    if (!dtensor_greedy_cc::HasStep(from, to)) return dtensor_greedy_cc::kInfinity;
    const DtensorRing& ring = topology.ring(axis);
    switch (dtensor_greedy_cc::KindOf(from, to)) {
      case StepKind::kAllGather:
        bytes *= static_cast<double>(ring.ranks);
        cost += DtensorAllGather(ring, bytes).total();
        break;
      case StepKind::kAllToAll:
        cost += DtensorAllToAll(ring, bytes, options.all_to_all_penalty).total();
        break;
      case StepKind::kAllReduce:
        cost += DtensorAllReduce(ring, bytes).total();
        break;
      case StepKind::kReduceScatter:
        cost += DtensorAllGather(ring, bytes).total();
        bytes /= static_cast<double>(ring.ranks);
        break;
      default:  // within a rank: free, also where MakeDtensor may have a price
        break;
    }
  }
  return cost;
}

}  // namespace orrery::transforms::redistribution
