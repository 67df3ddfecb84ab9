#include "lowering/cluster_dialect.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "ir/layout.h"
#include "support/check.h"

namespace orrery::lowering {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using redistribution::AxisRole;
using redistribution::Move;
using redistribution::PackedLayout;
using redistribution::Step;
using redistribution::StepKind;

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

// The moves from one layout.
class ClusterDialect::Expansion {
 public:
  Expansion(const ClusterDialect& dialect, const PackedLayout& layout, std::vector<Move>& moves)
      : dialect_(dialect),
        mesh_(dialect.problem_.mesh),
        rank_(static_cast<int>(dialect.problem_.dims.size())),
        layout_(layout),
        moves_(moves) {
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh_.axes().size()); ++axis) {
      if (mesh_.size(axis) > 1 && layout.role(axis) == AxisRole::kReplicates) free_.push_back(axis);
    }
  }

  void Run() {
    for (int dim = 0; dim < rank_; ++dim) {
      const AxisList axes = layout_.axes(dim);
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
  void Add(StepKind kind, const AxisList& axes, int from, int to, const PackedLayout& after) {
    if (after == layout_) return;
    Move move{.step = {.kind = kind,
                       .axes = axes,
                       .from = static_cast<int8_t>(from),
                       .to = static_cast<int8_t>(to),
                       .after = after}};
    const int64_t before = dialect_.Elements(layout_);
    const bool in_place =
        kind == StepKind::kSlice || kind == StepKind::kAllReduce || kind == StepKind::kMakePartial;
    move.peak = in_place ? before : before + dialect_.Elements(after);
    move.cost = dialect_.CostOf(layout_, move.step).total();
    moves_.push_back(move);
  }

  int64_t TargetBlock(int dim) const { return dialect_.target_.block(dim); }

  void Slices(int dim, const AxisList& axes) {
    if (axes.empty() && TargetBlock(dim) != ir::kNestedChunks) {
      const AxisList wanted = dialect_.target_.axes(dim);
      const bool all_free =
          std::ranges::all_of(wanted.axes(), [&](AxisIndex axis) { return free_.contains(axis); });
      PackedLayout after = layout_;
      after.SetSplit(dim, wanted, TargetBlock(dim));
      if (all_free) Add(StepKind::kSlice, wanted, -1, dim, after);
    }
    if (!axes.empty() && layout_.block(dim) != ir::kNestedChunks) return;
    for (const AxisIndex axis : free_.axes()) {
      PackedLayout after = layout_;
      after.SetSplit(dim, Joined(axes, {&axis, 1}));
      Add(StepKind::kSlice, AxisList(axis), -1, dim, after);
    }
  }

  // The innermost `count` axes no longer split `dim`, or split another dimension.
  void Leave(int dim, const AxisList& axes, size_t count) {
    const auto list = axes.axes();
    const AxisList stay = ListOf(list.first(list.size() - count));
    const AxisList leave = ListOf(list.last(count));
    PackedLayout after = layout_;
    after.SetSplit(dim, stay);
    Add(StepKind::kAllGather, leave, dim, -1, after);
    for (int to = 0; to < rank_; ++to) {
      if (to == dim || layout_.block(to) != ir::kNestedChunks) continue;
      PackedLayout moved = after;
      moved.SetSplit(to, Joined(layout_.axes(to), leave.axes()));
      Add(StepKind::kAllToAll, leave, dim, to, moved);
    }
  }

  void Permutations(int dim, const AxisList& axes) {
    std::vector<AxisIndex> order(axes.axes().begin(), axes.axes().end());
    if (order.size() > kMostPermuted) return;
    std::ranges::sort(order);
    do {
      PackedLayout after = layout_;
      after.SetSplit(dim, ListOf(order));
      Add(StepKind::kPermute, Changed(layout_, after), dim, dim, after);
    } while (std::ranges::next_permutation(order).found);
  }

  void Reblock(int dim, const AxisList& axes) {
    const AxisList wanted = dialect_.target_.axes(dim);
    if (TargetBlock(dim) == layout_.block(dim) && TargetBlock(dim) == ir::kNestedChunks) return;
    PackedLayout after = layout_;
    after.SetSplit(dim, wanted.Sorted() == axes.Sorted() ? wanted : axes, TargetBlock(dim));
    Add(StepKind::kReblock, axes, dim, dim, after);
  }

  // An axis takes the place of another of its size, which splits another dimension or nothing.
  void Exchanges() {
    for (AxisIndex a = 0; a < static_cast<AxisIndex>(mesh_.axes().size()); ++a) {
      for (AxisIndex b = 0; b < static_cast<AxisIndex>(mesh_.axes().size()); ++b) {
        const bool possible = a != b && mesh_.size(a) == mesh_.size(b) &&
                              layout_.role(a) == AxisRole::kSplits &&
                              layout_.role(b) != AxisRole::kPartial &&
                              (layout_.dim(b) < 0 || a < b) && layout_.dim(a) != layout_.dim(b);
        if (possible) Exchange(a, b);
      }
    }
  }

  void Exchange(AxisIndex a, AxisIndex b) {
    const auto replaced = [&](int dim, AxisIndex old, AxisIndex by) {
      AxisList list;
      const AxisList before = layout_.axes(dim);
      for (const AxisIndex axis : before.axes()) list.push_back(axis == old ? by : axis);
      return list;
    };
    const int dim_a = layout_.dim(a), dim_b = layout_.dim(b);
    PackedLayout after = layout_;
    after.SetSplit(dim_a, AxisList());
    if (dim_b >= 0) after.SetSplit(dim_b, replaced(dim_b, b, a), layout_.block(dim_b));
    after.SetSplit(dim_a, replaced(dim_a, a, b), layout_.block(dim_a));
    Add(StepKind::kPermute, ListOf(std::array{std::min(a, b), std::max(a, b)}), dim_a, dim_b,
        after);
  }

  void Reductions() {
    AxisList partial;
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh_.axes().size()); ++axis) {
      if (layout_.role(axis) == AxisRole::kPartial) partial.push_back(axis);
    }
    const auto all = partial.axes();
    for (uint32_t set = 1; set < uint32_t{1} << all.size(); ++set) {
      AxisList chosen;
      bool alike = true;
      for (size_t i = 0; i < all.size(); ++i) {
        if ((set >> i & 1) == 0) continue;
        chosen.push_back(all[i]);
        alike = alike && layout_.reduction(all[i]) == layout_.reduction(chosen.axes().front());
      }
      if (alike) Reduce(chosen);
    }
  }

  void Reduce(const AxisList& axes) {
    PackedLayout after = layout_;
    for (const AxisIndex axis : axes.axes()) after.SetReplicated(axis);
    Add(StepKind::kAllReduce, axes, -1, -1, after);
    for (int dim = 0; dim < rank_; ++dim) {
      if (layout_.block(dim) != ir::kNestedChunks) continue;
      PackedLayout scattered = after;
      scattered.SetSplit(dim, Joined(layout_.axes(dim), axes.axes()));
      Add(StepKind::kReduceScatter, axes, -1, dim, scattered);
    }
  }

  void MakePartial() {
    for (const AxisIndex axis : free_.axes()) {
      if (dialect_.target_.role(axis) != AxisRole::kPartial) continue;
      PackedLayout after = layout_;
      after.SetPartial(axis, dialect_.target_.reduction(axis));
      Add(StepKind::kMakePartial, AxisList(axis), -1, -1, after);
    }
  }

  // To the target at once, where that only changes which rank has which part.
  void DirectPermutation() {
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh_.axes().size()); ++axis) {
      const bool partial = layout_.role(axis) == AxisRole::kPartial;
      if (partial != (dialect_.target_.role(axis) == AxisRole::kPartial)) return;
      if (partial && layout_.reduction(axis) != dialect_.target_.reduction(axis)) return;
    }
    for (int dim = 0; dim < rank_; ++dim) {
      if (mesh_.size(layout_.axes(dim)) != mesh_.size(dialect_.target_.axes(dim))) return;
      if (layout_.block(dim) != TargetBlock(dim)) return;
      // Nested chunks of a dimension that does not divide depend on the order of the axes.
      const int64_t size = dialect_.problem_.dims[static_cast<size_t>(dim)];
      if (size % mesh_.size(layout_.axes(dim)) != 0) return;
    }
    Add(StepKind::kPermute, Changed(layout_, dialect_.target_), -1, -1, dialect_.target_);
  }

  const ClusterDialect& dialect_;
  const ir::Mesh& mesh_;
  const int rank_;
  const PackedLayout& layout_;
  std::vector<Move>& moves_;
  AxisList free_;
};

ClusterDialect::ClusterDialect(const redistribution::Problem& problem,
                               const cluster::Cluster& cluster,
                               const cost_models::CostModel& cost_model,
                               const ClusterDialectOptions& options)
    : problem_(problem),
      cluster_(cluster),
      options_(options),
      times_(problem_.mesh, options.devices, cluster, cost_model, options.algorithms) {
  target_ = Normal(PackedLayout(problem_.to));
}

void ClusterDialect::Expand(const PackedLayout& layout, std::vector<Move>& moves) const {
  Expansion(*this, layout, moves).Run();
}

int64_t ClusterDialect::Elements(const PackedLayout& layout) const {
  return ir::LargestLocalElements(layout.Unpack(problem_.dims.size()), problem_.dims,
                                  problem_.mesh);
}

redistribution::StepCost ClusterDialect::CostOf(const PackedLayout& before,
                                                const Step& step) const {
  const bool gathers = step.kind == StepKind::kAllGather;
  const Bytes size(Elements(gathers ? step.after : before) * problem_.itemsize);
  if (step.kind == StepKind::kMakePartial) {  // reads and writes all of it
    return {.launches = cluster_.device.launch_overhead.seconds() * 1e6,
            .copy = TransferTime(size * 2, cluster_.device.memory_bandwidth).seconds() * 1e6};
  }
  const auto collective = CollectiveOf(step.kind);
  if (!collective.has_value()) return {};
  const AxisList axes = step.axes.Sorted();
  const double latency = times_.Of(*collective, axes, Bytes(0)).seconds() * 1e6;
  return {.latency = latency,
          .transfer = times_.Of(*collective, axes, size).seconds() * 1e6 - latency,
          .synchronization = options_.straggler.seconds() * 1e6};
}

std::string ClusterDialect::NameOf(const PackedLayout&, const Step& step) const {
  std::string name =
      absl::StrCat(redistribution::ToString(step.kind), " ", problem_.mesh.Names(step.axes));
  if (step.from >= 0) absl::StrAppend(&name, " from ", static_cast<int>(step.from));
  if (step.to >= 0 && step.to != step.from) {
    absl::StrAppend(&name, " to ", static_cast<int>(step.to));
  }
  return name;
}

PackedLayout ClusterDialect::Normal(const PackedLayout& layout) const {
  PackedLayout normal;
  for (int dim = 0; dim < static_cast<int>(problem_.dims.size()); ++dim) {
    AxisList axes;
    const AxisList split = layout.axes(dim);
    for (const AxisIndex axis : split.axes()) {
      if (problem_.mesh.size(axis) > 1) axes.push_back(axis);
    }
    normal.SetSplit(dim, axes, layout.block(dim));
  }
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(problem_.mesh.axes().size()); ++axis) {
    if (problem_.mesh.size(axis) > 1 && layout.role(axis) == AxisRole::kPartial) {
      normal.SetPartial(axis, layout.reduction(axis));
    }
  }
  return normal;
}

}  // namespace orrery::lowering
