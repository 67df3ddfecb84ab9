#include "transforms/redistribution/tensorcraft_operation.h"

#include "absl/strings/str_cat.h"

namespace orrery::transforms::redistribution {

using ir::AxisIndex;
using ir::AxisList;

namespace tensorcraft_operation_cc {
namespace {

using Kind = TensorcraftOperationKind;

// Lists what may be tried, dimension by dimension and axis by axis.
class Lister {
 public:
  Lister(const TensorcraftTensor& tensor, const TensorcraftLayout& layout,
         const std::vector<int64_t>& blocks, Repeats repeats)
      : tensor_(tensor), layout_(layout), blocks_(blocks), all_(repeats == Repeats::kAll) {}

  TensorcraftOperations List() {
    AddSplits();
    AddGathers();
    for (const DimSplit& dim : layout_.dims) AddPermutes(dim.axes);
    for (int8_t from = 0; from < static_cast<int8_t>(tensor_.rank()); ++from) {
      if (axes(from).empty()) continue;
      for (int8_t to = 0; to < static_cast<int8_t>(tensor_.rank()); ++to) {
        if (to != from) AddAllToAlls(from, to);
      }
    }
    AddBlockChanges();
    return std::move(operations_);
  }

 private:
  AxisList axes(int dim) const { return layout_.dims[static_cast<size_t>(dim)].axes; }
  size_t count(int dim) const { return axes(dim).axes().size(); }

  void AddSplits() {
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(tensor_.axis_count()); ++axis) {
      if (layout_.used.contains(axis)) continue;
      for (const int64_t block : blocks_) {
        for (int8_t to = 0; to < static_cast<int8_t>(tensor_.rank()); ++to) {
          // A dimension that is split already keeps its block.
          const bool split = count(to) > 0;
          if (!all_ && split && block != blocks_.front()) continue;
          TensorcraftOperation operation{
              .kind = Kind::kSplit, .to = to, .axes = AxisList(axis), .block = block};
          operations_.push_back(operation);
          if (!all_ && !split) continue;
          operation.to_minor = true;
          operations_.push_back(operation);
        }
      }
    }
  }

  void AddGathers() {
    if (layout_.used.empty()) return;
    operations_.push_back({.kind = Kind::kAllGather, .axes = {}});
    if (!all_ && layout_.used.axes().size() == 1) return;
    for (const AxisIndex axis : layout_.used.axes()) {
      operations_.push_back({.kind = Kind::kAllGather, .axes = AxisList(axis)});
    }
  }

  void AddPermutes(const AxisList& list) {
    for (size_t i = 0; i < list.axes().size(); ++i) {
      for (size_t j = i + 1; j < list.axes().size(); ++j) {
        AxisList pair(list.axes()[i]);
        pair.push_back(list.axes()[j]);
        operations_.push_back({.kind = Kind::kPermute, .axes = pair});
      }
    }
  }

  void AddAllToAlls(int8_t from, int8_t to) {
    AddAllToAlls({.kind = Kind::kAllToAll, .from = from, .to = to, .axes = {}});
    for (const int64_t block : blocks_) {
      if (!all_ && (count(to) > 0 || block == layout_.dims[static_cast<size_t>(from)].block)) {
        continue;
      }
      AddAllToAlls({.kind = Kind::kAllToAll, .from = from, .to = to, .axes = {}, .block = block});
    }
  }

  void AddAllToAlls(TensorcraftOperation operation) {
    for (const bool to_minor : {false, true}) {
      if (to_minor && count(operation.to) < 2) break;
      for (const bool from_minor : {false, true}) {
        if (from_minor && count(operation.from) < 2) break;
        operation.from_minor = from_minor;
        operation.to_minor = to_minor;
        operations_.push_back(operation);
      }
    }
  }

  void AddBlockChanges() {
    for (int8_t to = 0; to < static_cast<int8_t>(tensor_.rank()); ++to) {
      if (count(to) == 0) continue;
      for (const int64_t block : blocks_) {
        operations_.push_back({.kind = Kind::kChangeBlock, .to = to, .axes = {}, .block = block});
      }
    }
  }

  const TensorcraftTensor& tensor_;
  const TensorcraftLayout& layout_;
  const std::vector<int64_t>& blocks_;
  const bool all_;
  TensorcraftOperations operations_;
};

AxisList Joined(AxisList list, const AxisList& more) {
  for (const AxisIndex axis : more.axes()) list.push_back(axis);
  return list;
}

AxisList Swapped(const AxisList& list, AxisIndex a, AxisIndex b) {
  AxisList swapped;
  for (const AxisIndex axis : list.axes()) {
    swapped.push_back(axis == a ? b : axis == b ? a : axis);
  }
  return swapped;
}

// Works out one operation on one layout.
class Application {
 public:
  Application(const TensorcraftTensor& tensor, const TensorcraftLayout& layout,
              const TensorcraftOperation& operation)
      : tensor_(tensor), layout_(layout), operation_(operation) {
    result_.step.from = operation.from;
    result_.step.to = operation.to;
    result_.step.after = layout.packed;
    result_.elements = layout.elements;
  }

  std::optional<TensorcraftStep> Run() {
    if (!Change()) return std::nullopt;
    return result_;
  }

 private:
  bool Change() {
    switch (operation_.kind) {
      case Kind::kSplit:
        return Split();
      case Kind::kAllGather:
        return operation_.axes.empty() ? GatherAll() : Gather();
      case Kind::kPermute:
        return Permute();
      case Kind::kAllToAll:
        return AllToAll();
      case Kind::kChangeBlock:
        return ChangeBlock();
    }
    return false;
  }

  const DimSplit& dim(int dim) const { return layout_.dims[static_cast<size_t>(dim)]; }

  // Sets what splits dimension `d`; false where a rank would own nothing.
  bool Set(int d, const AxisList& axes, int64_t block) {
    const int64_t size = tensor_.dim(d);
    const int64_t parts = tensor_.size(axes);
    if (!axes.empty() && block > LargestBlock(size, parts)) return false;
    result_.step.after.SetSplit(d, axes, axes.empty() ? ir::kNestedChunks : block);
    result_.elements = result_.elements / dim(d).largest * LargestPart(size, block, parts);
    return true;
  }

  // Adds `axes` to dimension `d`, which has `block` where it was not split before.
  bool Add(int d, const AxisList& axes, int64_t block, bool minor) {
    const DimSplit& before = dim(d);
    if (before.axes.empty()) return Set(d, axes, block);
    if (!minor) return Set(d, Joined(axes, before.axes), before.block);
    const int64_t parts = tensor_.size(axes);
    if (before.block % parts != 0) return false;
    return Set(d, Joined(before.axes, axes), before.block / parts);
  }

  bool Split() {
    result_.step.kind = MoveKind::kSlice;
    result_.step.axes = operation_.axes;
    return Add(operation_.to, operation_.axes, operation_.block, operation_.to_minor);
  }

  bool GatherAll() {
    result_.step.kind = MoveKind::kAllGather;
    result_.step.axes = layout_.used;
    result_.step.after = PackedLayout();
    result_.elements = tensor_.elements();
    return true;
  }

  // The first axis of a dimension leaves its block as it is, the last one leaves larger ones.
  bool Gather() {
    const AxisIndex axis = operation_.axes.axes()[0];
    const int from = layout_.packed.dim(axis);
    const DimSplit& before = dim(from);
    const bool first = before.axes.axes().front() == axis;
    if (!first && before.axes.axes().back() != axis) return false;
    result_.step.kind = MoveKind::kAllGather;
    result_.step.axes = operation_.axes;
    result_.step.from = static_cast<int8_t>(from);
    return Set(from, before.axes.Without(axis),
               first ? before.block : before.block * tensor_.size(axis));
  }

  bool Permute() {
    const AxisIndex a = operation_.axes.axes()[0], b = operation_.axes.axes()[1];
    if (tensor_.size(a) != tensor_.size(b)) return false;
    const int from = layout_.packed.dim(a);
    result_.step.kind = MoveKind::kPermute;
    result_.step.axes = operation_.axes;
    result_.step.from = result_.step.to = static_cast<int8_t>(from);
    return Set(from, Swapped(dim(from).axes, a, b), dim(from).block);
  }

  bool AllToAll() {
    const DimSplit& before = dim(operation_.from);
    AxisList moved = before.axes, kept;
    if (operation_.from_minor) {
      moved = AxisList(before.axes.axes().back());
      kept = before.axes.Without(before.axes.axes().back());
    }
    result_.step.kind = MoveKind::kAllToAll;
    result_.step.axes = moved;
    const int64_t block = operation_.block == -1 ? before.block : operation_.block;
    return Set(operation_.from, kept, before.block * (kept.empty() ? 1 : tensor_.size(moved))) &&
           Add(operation_.to, moved, block, operation_.to_minor);
  }

  // Larger blocks join whole rounds of blocks; the library's test of smaller ones lets only 1 pass.
  bool ChangeBlock() {
    const DimSplit& before = dim(operation_.to);
    const int64_t block = operation_.block;
    const bool larger = block > before.block && block % (before.block * before.parts) == 0;
    const bool smaller = block < before.block && block == 1;
    if (!larger && !smaller) return false;
    result_.step.kind = MoveKind::kReblock;
    result_.step.axes = before.axes;
    result_.step.from = operation_.to;
    return Set(operation_.to, before.axes, block);
  }

  const TensorcraftTensor& tensor_;
  const TensorcraftLayout& layout_;
  const TensorcraftOperation& operation_;
  TensorcraftStep result_;
};

}  // namespace
}  // namespace tensorcraft_operation_cc

std::string NameOf(const TensorcraftOperation& operation) {
  const auto axis = [&](size_t i) { return int{operation.axes.axes()[i]}; };
  const int from = operation.from, to = operation.to;
  switch (operation.kind) {
    case tensorcraft_operation_cc::Kind::kSplit:
      return absl::StrCat("split_", operation.to_minor ? "minor_" : "", to, "_", axis(0), "_",
                          operation.block);
    case tensorcraft_operation_cc::Kind::kAllGather:
      if (operation.axes.empty()) return "allgather_*";
      return absl::StrCat("allgather_", axis(0));
    case tensorcraft_operation_cc::Kind::kPermute:
      return absl::StrCat("permute_", axis(0), "_", axis(1));
    case tensorcraft_operation_cc::Kind::kAllToAll:
      return absl::StrCat("alltoall_", operation.from_minor ? "mf_" : "",
                          operation.to_minor ? "mt_" : "", from, "_", to, "_", operation.block);
    case tensorcraft_operation_cc::Kind::kChangeBlock:
      return absl::StrCat("changeBlockSize_", to, "_", operation.block);
  }
  return "";
}

TensorcraftOperations ListOperations(const TensorcraftTensor& tensor,
                                     const TensorcraftLayout& layout,
                                     const std::vector<int64_t>& blocks, Repeats repeats) {
  return tensorcraft_operation_cc::Lister(tensor, layout, blocks, repeats).List();
}

std::optional<TensorcraftStep> Apply(const TensorcraftTensor& tensor,
                                     const TensorcraftLayout& layout,
                                     const TensorcraftOperation& operation) {
  return tensorcraft_operation_cc::Application(tensor, layout, operation).Run();
}

}  // namespace orrery::transforms::redistribution
