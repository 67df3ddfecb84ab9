#include "transforms/redistribution/dtensor.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/redistribution/dtensor_bound.h"
#include "transforms/redistribution/dtensor_price.h"
#include "transforms/redistribution/dtensor_view.h"

namespace orrery::transforms::redistribution {
namespace dtensor_cc {
namespace {

using ir::AxisIndex;
using ir::AxisList;
using ir::Reduction;

constexpr double kGigabyte = 1 << 30;

uint8_t ReductionsOf(const ir::Sharding& sharding) {
  uint8_t reductions = 0;
  for (const AxisIndex axis : sharding.partial.axes()) {
    reductions = static_cast<uint8_t>(reductions | BitOf(sharding.reductions[axis]));
  }
  return reductions;
}

class Dtensor final : public MoveSet {
 public:
  Dtensor(const Problem& problem, const DtensorOptions& options)
      : options_(options),
        mesh_(problem.mesh),
        dims_(problem.dims),
        topology_(problem.mesh, options.devices_per_host),
        prices_(topology_,
                static_cast<double>(ir::ElementCount(problem.dims)) *
                    static_cast<double>(problem.itemsize),
                options.all_to_all_penalty, Merges()),
        make_partial_(MakePartialPrices()),
        to_(problem.to),
        bound_(topology_, prices_, make_partial_, to_, Merges()) {
    const uint8_t reductions =
        static_cast<uint8_t>(ReductionsOf(problem.from) | ReductionsOf(problem.to));
    for (int i = 0; i <= static_cast<int>(Reduction::kMin); ++i) {
      const auto reduction = static_cast<Reduction>(i);
      if ((reductions & BitOf(reduction)) != 0) reductions_.push_back(reduction);
    }
    const PackedLayout from(problem.from);
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(topology_.axes()); ++axis) {
      if (mesh_.size(axis) == 1) continue;
      if (from.role(axis) == AxisRole::kReplicates) continue;
      watched_ |= 1u << axis;
      // An axis that ends with another reduction could not be scattered before, in a scalar.
      const bool other = to_.role(axis) == AxisRole::kPartial && dims_.empty() &&
                         from.role(axis) == AxisRole::kPartial &&
                         to_.reduction(axis) != from.reduction(axis);
      const bool replicates = to_.role(axis) == AxisRole::kReplicates || other;
      if (from.role(axis) == AxisRole::kPartial && replicates) together_ |= 1u << axis;
    }
  }

  void Expand(const PackedLayout& layout, std::vector<Move>& moves) const override {
    const DtensorView view = Read(layout);
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(topology_.axes()); ++axis) {
      if ((view.splitting >> axis & 1) != 0) {
        Unsplit(view, axis, moves);
      } else if ((view.partial >> axis & 1) != 0) {
        Reduce(view, axis, moves);
      } else {
        Divide(view, axis, moves);
      }
    }
    if (!Merges()) return;
    ReduceTogether(view, moves);
    GatherTogether(view, moves);
  }

  double LowerBound(const PackedLayout& layout) const override { return bound_(layout); }

  StepCost CostOf(const PackedLayout& before, const Step& step) const override {
    const AxisMask splitting = Read(before).splitting;
    const AxisMask axes = MaskOf(step.axes);
    switch (step.kind) {
      case MoveKind::kAllGather:
        return prices_.ScatterCost(axes, splitting & ~axes);
      case MoveKind::kReduceScatter:
        return prices_.ScatterCost(axes, splitting);
      case MoveKind::kAllReduce:
        return prices_.ReduceCost(axes, splitting);
      case MoveKind::kAllToAll:
        return prices_.ExchangeCost(step.axes.axes()[0], splitting);
      case MoveKind::kMakePartial:
        return MakePartialCost(splitting);
      default:
        return {};
    }
  }

  StepVolume VolumeOf(const PackedLayout& before, const Step& step) const override {
    return VolumeOfCollective(step.kind, mesh_.size(step.axes), Elements(before),
                              Elements(step.after));
  }
  int64_t Elements(const PackedLayout& layout) const override { return Read(layout).elements; }

  std::string NameOf(const PackedLayout& /*before*/, const Step& step) const override {
    switch (step.kind) {
      case MoveKind::kAllGather:
        return "all_gather";
      case MoveKind::kReduceScatter:
        return "reduce_scatter";
      case MoveKind::kAllReduce:
        return "all_reduce";
      case MoveKind::kAllToAll:
        return "all_to_all";
      default:
        return "local";
    }
  }

 private:
  bool Merges() const { return options_.merge || options_.consistency != ReplicaConsistency::kAny; }

  StepCost MakePartialCost(AxisMask splitting) const {
    StepCost cost = {.launches = options_.partial_cost};
    if (options_.memory_bandwidth > 0) {
      cost.copy = 2 * prices_.bytes(splitting) / kGigabyte / options_.memory_bandwidth * 1e6;
    }
    return cost;
  }

  std::vector<double> MakePartialPrices() const {
    std::vector<double> prices;
    for (AxisMask splitting = 0; splitting < 1u << topology_.axes(); ++splitting) {
      prices.push_back(MakePartialCost(splitting).total());
    }
    return prices;
  }

  DtensorView Read(const PackedLayout& layout) const { return ReadDtensor(layout, mesh_, dims_); }

  // Whether `options_.consistency` lets the partial `axes` be reduced now.
  bool MayReduce(const DtensorView& view, AxisMask axes, bool scatter) const {
    if (options_.consistency == ReplicaConsistency::kAny) return true;
    if ((view.replicating & watched_ & ~axes) != 0) return false;
    if (options_.consistency == ReplicaConsistency::kReducedOnce) return true;
    if ((together_ & ~view.partial) != 0) return false;  // the last reduction is past
    return (axes & together_) == 0 || (!scatter && axes == together_);
  }

  struct Taken {
    MoveKind kind;
    AxisList axes;
    int from = -1, to = -1;
    double cost = 0;
    int64_t after = 0;  // elements
  };
  // The caller changes the layout after.
  static PackedLayout& Add(const DtensorView& view, const Taken& taken, std::vector<Move>& moves) {
    Move& move = moves.emplace_back();
    move.step.kind = taken.kind;
    move.step.axes = taken.axes;
    move.step.from = static_cast<int8_t>(taken.from);
    move.step.to = static_cast<int8_t>(taken.to);
    move.step.after = *view.layout;
    move.cost = taken.cost;
    move.peak = view.elements + (taken.kind == MoveKind::kSlice ? 0 : taken.after);
    return move.step.after;
  }

  int rank() const { return static_cast<int>(dims_.size()); }
  // The size of `dim` when `axis` splits it too.
  int64_t Split(const DtensorView& view, int dim, AxisIndex axis) const {
    return FullestPart(view.size[static_cast<size_t>(dim)], mesh_.size(axis));
  }

  // An axis that splits a dimension: gather, or move to another dimension.
  void Unsplit(const DtensorView& view, AxisIndex axis, std::vector<Move>& moves) const {
    const int dim = view.dim[axis];
    const auto d = static_cast<size_t>(dim);
    if (view.position[axis] + 1 != view.depth[d]) return;
    const AxisMask bit = 1u << axis;
    const int64_t gathered = view.With(dim, view.wider[d]);
    Add(view,
        {.kind = MoveKind::kAllGather,
         .axes = AxisList(axis),
         .from = dim,
         .cost = prices_.scatter(bit, view.splitting & ~bit),
         .after = gathered},
        moves)
        .PopSplit(axis);
    const double cost = prices_.exchange(axis, view.splitting);
    for (int to = 0; to < rank(); ++to) {
      if (to == dim) continue;
      const auto t = static_cast<size_t>(to);
      const int64_t after = gathered == 0 ? 0 : gathered / view.size[t] * Split(view, to, axis);
      PackedLayout& layout = Add(view,
                                 {.kind = MoveKind::kAllToAll,
                                  .axes = AxisList(axis),
                                  .from = dim,
                                  .to = to,
                                  .cost = cost,
                                  .after = after},
                                 moves);
      layout.PopSplit(axis);
      layout.PushSplit(to, axis, view.depth[t]);
    }
  }

  // A partial axis: all-reduce, or reduce-scatter.
  void Reduce(const DtensorView& view, AxisIndex axis, std::vector<Move>& moves) const {
    const AxisMask bit = 1u << axis;
    if (MayReduce(view, bit, false)) {
      Add(view,
          {.kind = MoveKind::kAllReduce,
           .axes = AxisList(axis),
           .cost = prices_.reduce(bit, view.splitting),
           .after = view.elements},
          moves)
          .SetReplicated(axis);
    }
    if (!MayReduce(view, bit, true)) return;
    const double cost = prices_.scatter(bit, view.splitting);
    for (int to = 0; to < rank(); ++to) {
      Add(view,
          {.kind = MoveKind::kReduceScatter,
           .axes = AxisList(axis),
           .to = to,
           .cost = cost,
           .after = view.With(to, Split(view, to, axis))},
          moves)
          .PushSplit(to, axis, view.depth[static_cast<size_t>(to)]);
    }
  }

  // An axis that replicates: slice, or make partial.
  void Divide(const DtensorView& view, AxisIndex axis, std::vector<Move>& moves) const {
    for (int to = 0; to < rank(); ++to) {
      Add(view, {.kind = MoveKind::kSlice, .axes = AxisList(axis), .to = to}, moves)
          .PushSplit(to, axis, view.depth[static_cast<size_t>(to)]);
    }
    for (const Reduction reduction : reductions_) {
      if ((view.reductions & ~Beside(reduction)) != 0) continue;
      Add(view,
          {.kind = MoveKind::kMakePartial,
           .axes = AxisList(axis),
           .cost = make_partial_[view.splitting],
           .after = view.elements},
          moves)
          .SetPartial(axis, reduction);
    }
  }

  void ReduceTogether(const DtensorView& view, std::vector<Move>& moves) const {
    for (AxisMask axes = view.partial; axes != 0; axes = (axes - 1) & view.partial) {
      if (std::popcount(axes) < 2) continue;
      AxisList ascending;
      for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(topology_.axes()); ++axis) {
        if ((axes >> axis & 1) != 0) ascending.push_back(axis);
      }
      if (MayReduce(view, axes, false)) {
        PackedLayout& after = Add(view,
                                  {.kind = MoveKind::kAllReduce,
                                   .axes = ascending,
                                   .cost = prices_.reduce(axes, view.splitting),
                                   .after = view.elements},
                                  moves);
        for (const AxisIndex axis : ascending.axes()) after.SetReplicated(axis);
      }
      if (!MayReduce(view, axes, true)) continue;
      for (int to = 0; to < rank(); ++to) {
        Scatter(view, ascending, to, moves);
        const AxisList wanted = InTargetOrder(axes, to);
        if (wanted != ascending && MaskOf(wanted) == axes) Scatter(view, wanted, to, moves);
      }
    }
  }

  // Those of `axes` that split `dim` in the target.
  AxisList InTargetOrder(AxisMask axes, int dim) const {
    AxisList wanted;
    const AxisList all = to_.axes(dim);
    for (const AxisIndex axis : all.axes()) {
      if ((axes >> axis & 1) != 0) wanted.push_back(axis);
    }
    return wanted;
  }

  void Scatter(const DtensorView& view, const AxisList& axes, int to,
               std::vector<Move>& moves) const {
    const auto t = static_cast<size_t>(to);
    int64_t part = view.size[t];
    for (const AxisIndex axis : axes.axes()) part = FullestPart(part, mesh_.size(axis));
    PackedLayout& after = Add(view,
                              {.kind = MoveKind::kReduceScatter,
                               .axes = axes,
                               .to = to,
                               .cost = prices_.scatter(MaskOf(axes), view.splitting),
                               .after = view.With(to, part)},
                              moves);
    int position = view.depth[t];
    for (const AxisIndex axis : axes.axes()) after.PushSplit(to, axis, position++);
  }

  void GatherTogether(const DtensorView& view, std::vector<Move>& moves) const {
    for (int dim = 0; dim < rank(); ++dim) {
      const auto d = static_cast<size_t>(dim);
      if (view.depth[d] < 2) continue;
      const AxisList all = view.layout->axes(dim);
      int64_t kept = dims_[d];
      for (size_t first = 0; first + 2 <= view.depth[d]; ++first) {
        AxisList axes;
        for (const AxisIndex axis : all.axes().subspan(first)) axes.push_back(axis);
        const AxisMask mask = MaskOf(axes);
        PackedLayout& after = Add(view,
                                  {.kind = MoveKind::kAllGather,
                                   .axes = axes,
                                   .from = dim,
                                   .cost = prices_.scatter(mask, view.splitting & ~mask),
                                   .after = view.With(dim, kept)},
                                  moves);
        for (const AxisIndex axis : axes.axes()) after.PopSplit(axis);
        kept = FullestPart(kept, mesh_.size(all.axes()[first]));
      }
    }
  }

  const DtensorOptions options_;
  const ir::Mesh mesh_;
  const ir::Dims dims_;
  const DtensorTopology topology_;
  const DtensorPrices prices_;
  const std::vector<double> make_partial_;  // by splitting axes
  const PackedLayout to_;
  const DtensorBound bound_;
  std::vector<Reduction> reductions_;  // that axes may become partial with
  AxisMask watched_ = 0;               // axes that do not replicate in the source
  AxisMask together_ = 0;              // of these, those that kOneAllReduce reduces in one step
};

absl::Status CheckLayout(const Problem& problem, const ir::Sharding& layout,
                         absl::string_view which) {
  for (size_t d = 0; d < problem.dims.size(); ++d) {
    if (!layout.at(d).empty() && layout.block(d) != ir::kNestedChunks) {
      return absl::InvalidArgumentError(absl::StrCat(
          which, ": dimension ", d,
          " is in blocks; wanted nested chunks, all that DTensor has; try", " `cost` tensorcraft"));
    }
  }
  const uint8_t reductions = ReductionsOf(layout);
  for (const AxisIndex axis : layout.partial.axes()) {
    if ((reductions & ~Beside(layout.reductions[axis])) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(which, ": partial with different reductions; wanted one, or sum and average"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace dtensor_cc

absl::Status CheckDtensor(const Problem& problem, const DtensorOptions& options) {
  if (options.devices_per_host < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtensor: devices_per_host is ", options.devices_per_host, "; wanted at least 1"));
  }
  constexpr int64_t kMostBytes = int64_t{1} << 60;
  int64_t bytes = std::max<int64_t>(problem.itemsize, 1);
  for (const int64_t dim : problem.dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(dim, 1), &bytes) ||
        bytes > kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("dtensor: a dimension of ", dim, "; wanted a tensor of at most 2^60 bytes"));
    }
  }
  if (auto status = dtensor_cc::CheckLayout(problem, problem.from, "source"); !status.ok())
    return status;
  return dtensor_cc::CheckLayout(problem, problem.to, "target");
}

absl::StatusOr<std::unique_ptr<const MoveSet>> MakeDtensor(const Problem& problem,
                                                           const DtensorOptions& options) {
  if (auto status = CheckDtensor(problem, options); !status.ok()) return status;
  return std::make_unique<dtensor_cc::Dtensor>(problem, options);
}

}  // namespace orrery::transforms::redistribution
