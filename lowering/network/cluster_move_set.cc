#include "lowering/network/cluster_move_set.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "ir/layout.h"
#include "support/check.h"

namespace orrery::lowering {
namespace cluster_move_set_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using redistribution::Move;
using redistribution::PackedLayout;

// A dimension of more axes than that is not permuted in every way, only to the target.
constexpr size_t kMostPermuted = 4;

AxisList Joined(const AxisList& first, std::span<const AxisIndex> then) {
  AxisList list = first;
  for (const AxisIndex axis : then) list.push_back(axis);
  return list;
}

AxisList ListOf(std::span<const AxisIndex> axes) { return Joined(AxisList(), axes); }

// The axes whose role differs.
AxisList Changed(const PackedLayout& before, const PackedLayout& after) {
  AxisList axes;
  for (AxisIndex axis = 0; axis < ir::kMaxAxes; ++axis) {
    const int dim = before.dim(axis);
    const bool same = dim == after.dim(axis) && before.role(axis) == after.role(axis) &&
                      (dim < 0 || before.axes(dim) == after.axes(dim));
    if (!same) axes.push_back(axis);
  }
  return axes;
}

}  // namespace
}  // namespace cluster_move_set_cc

// The moves from one layout.
class ClusterMoveSet::Expansion {
 public:
  Expansion(const ClusterMoveSet& move_set, const redistribution::PackedLayout& layout,
            std::vector<redistribution::Move>& moves)
      : move_set_(move_set),
        mesh_(move_set.problem_.mesh),
        rank_(static_cast<int>(move_set.problem_.dims.size())),
        layout_(layout),
        moves_(moves) {
    for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(mesh_.axes().size()); ++axis) {
      if (mesh_.size(axis) > 1 && layout.role(axis) == redistribution::AxisRole::kReplicates)
        free_.push_back(axis);
    }
  }

  void Run() {
    for (int dim = 0; dim < rank_; ++dim) {
      const ir::AxisList axes = layout_.axes(dim);
      Slices(dim, axes);
      if (axes.empty()) continue;
      if (layout_.block(dim) == ir::kNestedChunks) {
        for (size_t count = 1; count <= axes.axes().size(); ++count) Leave(dim, axes, count);
        Permutations(dim, axes);
      } else {
        Leave(dim, axes, axes.axes().size());
      }
      Reblock(dim, axes);
    }
    Exchanges();
    Reductions();
    MakePartial();
    DirectPermutation();
  }

 private:
  void Add(redistribution::MoveKind kind, const ir::AxisList& axes, int from, int to,
           const redistribution::PackedLayout& after) {
    if (after == layout_) return;
    redistribution::Move move{.step = {.kind = kind,
                                       .axes = axes,
                                       .from = static_cast<int8_t>(from),
                                       .to = static_cast<int8_t>(to),
                                       .after = after}};
    const int64_t before = move_set_.Elements(layout_);
    const bool in_place = kind == redistribution::MoveKind::kSlice ||
                          kind == redistribution::MoveKind::kAllReduce ||
                          kind == redistribution::MoveKind::kMakePartial;
    move.peak = in_place ? before : before + move_set_.Elements(after);
    move.cost = move_set_.CostOf(layout_, move.step).total();
    moves_.push_back(move);
  }

  int64_t TargetBlock(int dim) const { return move_set_.target_.block(dim); }

  void Slices(int dim, const ir::AxisList& axes) {
    if (axes.empty() && TargetBlock(dim) != ir::kNestedChunks) {
      const ir::AxisList wanted = move_set_.target_.axes(dim);
      const bool all_free = std::ranges::all_of(
          wanted.axes(), [&](ir::AxisIndex axis) { return free_.contains(axis); });
      redistribution::PackedLayout after = layout_;
      after.SetSplit(dim, wanted, TargetBlock(dim));
      if (all_free) Add(redistribution::MoveKind::kSlice, wanted, -1, dim, after);
    }
    if (!axes.empty() && layout_.block(dim) != ir::kNestedChunks) return;
    for (const ir::AxisIndex axis : free_.axes()) {
      redistribution::PackedLayout after = layout_;
      after.SetSplit(dim, cluster_move_set_cc::Joined(axes, {&axis, 1}));
      Add(redistribution::MoveKind::kSlice, ir::AxisList(axis), -1, dim, after);
    }
  }

  // The innermost `count` axes no longer split `dim`, or split another dimension.
  void Leave(int dim, const ir::AxisList& axes, size_t count) {
    const auto list = axes.axes();
    const ir::AxisList stay = cluster_move_set_cc::ListOf(list.first(list.size() - count));
    const ir::AxisList leave = cluster_move_set_cc::ListOf(list.last(count));
    redistribution::PackedLayout after = layout_;
    after.SetSplit(dim, stay);
    Add(redistribution::MoveKind::kAllGather, leave, dim, -1, after);
    for (int to = 0; to < rank_; ++to) {
      if (to == dim || layout_.block(to) != ir::kNestedChunks) continue;
      redistribution::PackedLayout moved = after;
      moved.SetSplit(to, cluster_move_set_cc::Joined(layout_.axes(to), leave.axes()));
      Add(redistribution::MoveKind::kAllToAll, leave, dim, to, moved);
    }
  }

  void Permutations(int dim, const ir::AxisList& axes) {
    std::vector<ir::AxisIndex> order(axes.axes().begin(), axes.axes().end());
    if (order.size() > cluster_move_set_cc::kMostPermuted) return;
    std::ranges::sort(order);
    const bool whole = PartsStayWhole(dim, axes);
    do {
      redistribution::PackedLayout after = layout_;
      after.SetSplit(dim, cluster_move_set_cc::ListOf(order));
      Add(whole ? redistribution::MoveKind::kPermute : redistribution::MoveKind::kReblock,
          whole ? cluster_move_set_cc::Changed(layout_, after) : axes, dim, dim, after);
    } while (std::ranges::next_permutation(order).found);
  }

  // Whether parts are the same in any order of the axes: nested chunks of what does not divide are
  // others where axes differ in size.
  bool PartsStayWhole(int dim, const ir::AxisList& axes) const {
    const auto list = axes.axes();
    return move_set_.problem_.dims[static_cast<size_t>(dim)] % mesh_.size(axes) == 0 ||
           std::ranges::all_of(list, [&](ir::AxisIndex axis) {
             return mesh_.size(axis) == mesh_.size(list.front());
           });
  }

  void Reblock(int dim, const ir::AxisList& axes) {
    const ir::AxisList wanted = move_set_.target_.axes(dim);
    if (TargetBlock(dim) == layout_.block(dim) && TargetBlock(dim) == ir::kNestedChunks) return;
    redistribution::PackedLayout after = layout_;
    after.SetSplit(dim, wanted.Sorted() == axes.Sorted() ? wanted : axes, TargetBlock(dim));
    Add(redistribution::MoveKind::kReblock, axes, dim, dim, after);
  }

  // An axis replaces another of its size, which splits another dimension or nothing.
  void Exchanges() {
    for (ir::AxisIndex a = 0; a < static_cast<ir::AxisIndex>(mesh_.axes().size()); ++a) {
      for (ir::AxisIndex b = 0; b < static_cast<ir::AxisIndex>(mesh_.axes().size()); ++b) {
        const bool possible = a != b && mesh_.size(a) == mesh_.size(b) &&
                              layout_.role(a) == redistribution::AxisRole::kSplits &&
                              layout_.role(b) != redistribution::AxisRole::kPartial &&
                              (layout_.dim(b) < 0 || a < b) && layout_.dim(a) != layout_.dim(b);
        if (possible) Exchange(a, b);
      }
    }
  }

  void Exchange(ir::AxisIndex a, ir::AxisIndex b) {
    const auto replaced = [&](int dim, ir::AxisIndex old, ir::AxisIndex by) {
      ir::AxisList list;
      const ir::AxisList before = layout_.axes(dim);
      for (const ir::AxisIndex axis : before.axes()) list.push_back(axis == old ? by : axis);
      return list;
    };
    const int dim_a = layout_.dim(a), dim_b = layout_.dim(b);
    redistribution::PackedLayout after = layout_;
    after.SetSplit(dim_a, ir::AxisList());
    if (dim_b >= 0) after.SetSplit(dim_b, replaced(dim_b, b, a), layout_.block(dim_b));
    after.SetSplit(dim_a, replaced(dim_a, a, b), layout_.block(dim_a));
    Add(redistribution::MoveKind::kPermute,
        cluster_move_set_cc::ListOf(std::array{std::min(a, b), std::max(a, b)}), dim_a, dim_b,
        after);
  }

  void Reductions() {
    ir::AxisList partial;
    for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(mesh_.axes().size()); ++axis) {
      if (layout_.role(axis) == redistribution::AxisRole::kPartial) partial.push_back(axis);
    }
    const auto all = partial.axes();
    for (uint32_t set = 1; set < uint32_t{1} << all.size(); ++set) {
      ir::AxisList chosen;
      bool alike = true;
      for (size_t i = 0; i < all.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        chosen.push_back(all[i]);
        alike = alike && redistribution::ReducedTogether(layout_.reduction(all[i]),
                                                         layout_.reduction(chosen.axes().front()));
      }
      if (alike) Reduce(chosen);
    }
  }

  void Reduce(const ir::AxisList& axes) {
    redistribution::PackedLayout after = layout_;
    for (const ir::AxisIndex axis : axes.axes()) after.SetReplicated(axis);
    Add(redistribution::MoveKind::kAllReduce, axes, -1, -1, after);
    for (int dim = 0; dim < rank_; ++dim) {
      if (layout_.block(dim) != ir::kNestedChunks) continue;
      redistribution::PackedLayout scattered = after;
      scattered.SetSplit(dim, cluster_move_set_cc::Joined(layout_.axes(dim), axes.axes()));
      Add(redistribution::MoveKind::kReduceScatter, axes, -1, dim, scattered);
    }
  }

  void MakePartial() {
    for (const ir::AxisIndex axis : free_.axes()) {
      if (move_set_.target_.role(axis) != redistribution::AxisRole::kPartial) continue;
      redistribution::PackedLayout after = layout_;
      after.SetPartial(axis, move_set_.target_.reduction(axis));
      Add(redistribution::MoveKind::kMakePartial, ir::AxisList(axis), -1, -1, after);
    }
  }

  // To the target at once, where that only changes which rank has which part.
  void DirectPermutation() {
    for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(mesh_.axes().size()); ++axis) {
      const bool partial = layout_.role(axis) == redistribution::AxisRole::kPartial;
      if (partial != (move_set_.target_.role(axis) == redistribution::AxisRole::kPartial)) return;
      if (partial && layout_.reduction(axis) != move_set_.target_.reduction(axis)) return;
    }
    for (int dim = 0; dim < rank_; ++dim) {
      if (mesh_.size(layout_.axes(dim)) != mesh_.size(move_set_.target_.axes(dim))) return;
      if (layout_.block(dim) != TargetBlock(dim)) return;
      // Nested chunks of a dimension that does not divide depend on the order of the axes.
      const int64_t size = move_set_.problem_.dims[static_cast<size_t>(dim)];
      if (size % mesh_.size(layout_.axes(dim)) != 0) return;
    }
    Add(redistribution::MoveKind::kPermute,
        cluster_move_set_cc::Changed(layout_, move_set_.target_), -1, -1, move_set_.target_);
  }

  const ClusterMoveSet& move_set_;
  const ir::Mesh& mesh_;
  const int rank_;
  const redistribution::PackedLayout& layout_;
  std::vector<redistribution::Move>& moves_;
  ir::AxisList free_;
};

ClusterMoveSet::ClusterMoveSet(const redistribution::Problem& problem,
                               const cluster::Cluster& cluster,
                               const cost_models::CostModel& cost_model,
                               const ClusterMoveSetOptions& options)
    : problem_(problem),
      cluster_(cluster),
      options_(options),
      times_(problem_.mesh, options.devices, cluster, cost_model, options.algorithms) {
  target_ = Normal(redistribution::PackedLayout(problem_.to));
}

void ClusterMoveSet::Expand(const redistribution::PackedLayout& layout,
                            std::vector<redistribution::Move>& moves) const {
  Expansion(*this, layout, moves).Run();
}

redistribution::StepVolume ClusterMoveSet::VolumeOf(const redistribution::PackedLayout& before,
                                                    const redistribution::Step& step) const {
  return redistribution::VolumeOfCollective(step.kind, problem_.mesh.size(step.axes),
                                            Elements(before), Elements(step.after));
}

int64_t ClusterMoveSet::Elements(const redistribution::PackedLayout& layout) const {
  return ir::LargestLocalElements(layout.Unpack(problem_.dims.size()), problem_.dims,
                                  problem_.mesh);
}

bool ClusterMoveSet::IsOutermost(const redistribution::PackedLayout& layout, int dim) const {
  const ir::Dims held =
      ir::LargestLocalDims(layout.Unpack(problem_.dims.size()), problem_.dims, problem_.mesh);
  for (int d = 0; d < dim; ++d) {
    if (held[static_cast<size_t>(d)] > 1) return false;
  }
  return true;
}

ClusterMoveSet::Copies ClusterMoveSet::CopiesOf(const redistribution::PackedLayout& before,
                                                const redistribution::Step& step) const {
  using redistribution::MoveKind;
  const auto bytes = [&](const redistribution::PackedLayout& layout) {
    return Bytes(Elements(layout) * problem_.itemsize);
  };
  const bool reblocks = step.kind == MoveKind::kReblock;
  const bool exchanges = step.kind == MoveKind::kAllToAll;
  const bool scatters = exchanges || step.kind == MoveKind::kReduceScatter;
  const bool gathers = exchanges || step.kind == MoveKind::kAllGather;
  Copies copies;
  if (reblocks || (scatters && !IsOutermost(before, step.to))) copies.before = bytes(before);
  // Blocks that are dealt in turn lie between those of other ranks.
  if (reblocks || (gathers && (!IsOutermost(step.after, step.from) ||
                               before.block(step.from) != ir::kNestedChunks))) {
    copies.behind = bytes(step.after);
  }
  return copies;
}

// The first rank keeps a sum, the others have zeros. Of averages and extremes each keeps what it
// has.
redistribution::StepCost ClusterMoveSet::CostOfMakingPartial(const redistribution::Step& step,
                                                             Bytes size) const {
  const ir::Reduction reduction = step.after.reduction(step.axes.axes().front());
  if (reduction != ir::Reduction::kSum && reduction != ir::Reduction::kProduct) return {};
  return {.launches = cluster_.device.launch_overhead.seconds() * 1e6,
          .copy = TransferTime(size * 2, cluster_.device.memory_bandwidth).seconds() * 1e6};
}

redistribution::StepCost ClusterMoveSet::CostOf(const redistribution::PackedLayout& before,
                                                const redistribution::Step& step) const {
  const bool gathers = step.kind == redistribution::MoveKind::kAllGather;
  const Bytes size(Elements(gathers ? step.after : before) * problem_.itemsize);
  if (step.kind == redistribution::MoveKind::kMakePartial) return CostOfMakingPartial(step, size);
  const auto collective = CollectiveOf(step.kind);
  if (!collective.has_value()) return {};
  const ir::AxisList axes = step.axes.Sorted();
  const auto in_memory = [&](Bytes bytes) {
    return TransferTime(bytes, cluster_.device.memory_bandwidth).seconds() * 1e6;
  };
  const double latency = times_.Of(*collective, axes, Bytes(0)).seconds() * 1e6;
  const double moving = times_.Of(*collective, axes, size).seconds() * 1e6 - latency;
  const double adding = std::min(in_memory(times_.Added(*collective, axes, size) * 3), moving);
  const Copies copies = CopiesOf(before, step);
  const int kernels = (copies.before > Bytes(0) ? 1 : 0) + (copies.behind > Bytes(0) ? 1 : 0);
  return {.launches = kernels * cluster_.device.launch_overhead.seconds() * 1e6,
          .latency = latency,
          .transfer = moving - adding,
          .copy = in_memory((copies.before + copies.behind) * 2),
          .reduction = adding};
}

std::string ClusterMoveSet::NameOf(const redistribution::PackedLayout&,
                                   const redistribution::Step& step) const {
  std::string name =
      absl::StrCat(redistribution::ToString(step.kind), " ", problem_.mesh.Names(step.axes));
  if (step.from >= 0) absl::StrAppend(&name, " from ", static_cast<int>(step.from));
  if (step.to >= 0 && step.to != step.from) {
    absl::StrAppend(&name, " to ", static_cast<int>(step.to));
  }
  return name;
}

redistribution::PackedLayout ClusterMoveSet::Normal(
    const redistribution::PackedLayout& layout) const {
  redistribution::PackedLayout normal;
  for (int dim = 0; dim < static_cast<int>(problem_.dims.size()); ++dim) {
    ir::AxisList axes;
    const ir::AxisList split = layout.axes(dim);
    for (const ir::AxisIndex axis : split.axes()) {
      if (problem_.mesh.size(axis) > 1) axes.push_back(axis);
    }
    normal.SetSplit(dim, axes, layout.block(dim));
  }
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(problem_.mesh.axes().size());
       ++axis) {
    if (problem_.mesh.size(axis) > 1 && layout.role(axis) == redistribution::AxisRole::kPartial) {
      normal.SetPartial(axis, layout.reduction(axis));
    }
  }
  return normal;
}

}  // namespace orrery::lowering
