#include "ir/layout.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/tensor_parts.h"
#include "support/status.h"

namespace orrery::ir {
namespace layout_cc {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// Of numbers that are not negative; kMost where the product is more.
int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

// The one form of a set: see Part.
Part Made(Part part) {
  if (part.begin >= part.end) return {};
  if (part.length == part.stride || part.end - part.begin <= part.stride) {
    if (part.length < part.stride) part.end = std::min(part.end, part.begin + part.length);
    part.length = part.stride = part.end - part.begin;
    return part;
  }
  const int64_t short_of = part.length - (part.end - part.begin) % part.stride;
  if (short_of <= 0) part.end -= -short_of;  // the end of the last range, not of the gap after it
  return part;
}

Part NestedPart(const SplitDimension& split, const Mesh& mesh, int64_t rank) {
  int64_t begin = 0, length = split.size;
  for (const AxisIndex axis : split.axes.axes()) {
    const int64_t chunk = CeilDivide(length, mesh.size(axis));
    const int64_t before = std::min(length, Product(PartOf(mesh, rank, AxisList(axis)), chunk));
    begin += before;
    length = std::min(chunk, length - before);
  }
  return Made({begin, begin + length, length, length});
}

Part BalancedPart(const SplitDimension& split, const Mesh& mesh, int64_t rank) {
  const int64_t parts = mesh.size(split.axes), part = PartOf(mesh, rank, split.axes);
  const int64_t least = split.size / parts, larger = split.size % parts;
  const int64_t begin = part * least + std::min(part, larger);
  const int64_t length = least + (part < larger ? 1 : 0);
  return Made({begin, begin + length, length, length});
}

Part CyclicPart(const SplitDimension& split, const Mesh& mesh, int64_t rank) {
  const int64_t block = std::min(split.block, std::max<int64_t>(split.size, 1));
  const int64_t begin = Product(PartOf(mesh, rank, split.axes), block);
  return Made({begin, split.size, block, Product(mesh.size(split.axes), block)});
}

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Axes that the mesh has, and that are not in `used`; they are added to it.
absl::Status Take(const AxisList& axes, const Mesh& mesh, AxisList& used) {
  for (const AxisIndex axis : axes.axes()) {
    if (axis >= mesh.axes().size()) {
      return Wrong(absl::StrCat("found axis ", axis, "; wanted one of the ", mesh.axes().size(),
                                " of ", ToString(mesh)));
    }
    if (used.contains(axis)) {
      return Wrong(absl::StrCat("axis ", axis, " (", mesh.axes()[axis].name,
                                ") is used twice; wanted each axis at most once"));
    }
    used.push_back(axis);
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(const Sharding& sharding) {
  for (size_t d = 0; d < sharding.blocks.size(); ++d) {
    const int64_t block = sharding.blocks[d];
    if (block < kBalancedChunks) {
      return Wrong(absl::StrCat("dimension ", d, ": found a block of ", block,
                                "; wanted a positive one, 0 (nested chunks) or -1 (balanced)"));
    }
    if (block != kNestedChunks && sharding.at(d).empty()) {
      return Wrong(absl::StrCat("dimension ", d,
                                ": found blocks of a dimension that no axis "
                                "splits; wanted none"));
    }
  }
  return absl::OkStatus();
}

bool MixesWith(Reduction a, Reduction b) {
  const auto adds = [](Reduction r) { return r == Reduction::kSum || r == Reduction::kAverage; };
  return a == b || (adds(a) && adds(b));
}

absl::Status CheckReductions(const Sharding& sharding) {
  const auto axes = sharding.partial.axes();
  if (sharding.partial != sharding.partial.Sorted()) {
    return Wrong("the partial axes are out of order; wanted them ascending");
  }
  for (AxisIndex axis = 0; axis < kMaxAxes; ++axis) {
    const Reduction reduction = sharding.reductions[axis];
    if (reduction > Reduction::kMin) {
      return Wrong(absl::StrCat("axis ", axis, " has an unknown reduction"));
    }
    if (!sharding.partial.contains(axis)) {
      if (reduction == Reduction::kSum) continue;
      return Wrong(absl::StrCat("axis ", axis, " has a reduction and is not partial"));
    }
    if (MixesWith(reduction, sharding.reductions[axes[0]])) continue;
    return Wrong("found partial axes with different reductions; wanted one, or sums and averages");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace layout_cc

int64_t Part::size() const {
  if (empty()) return 0;
  const int64_t span = end - begin;
  return span / stride * length + std::min(span % stride, length);
}

bool Part::contains(int64_t element) const {
  return element >= begin && element < end && (element - begin) % stride < length;
}

std::vector<Range> Part::Ranges() const {
  std::vector<Range> ranges;
  // Counted from the end, so that nothing goes beyond the largest number.
  for (int64_t at = begin; !empty();) {
    ranges.push_back({at, at + std::min(length, end - at)});
    if (end - at <= stride) break;
    at += stride;
  }
  return ranges;
}

SplitDimension SplitOf(const Sharding& sharding, const Dims& dims, size_t dim) {
  return {.size = dims[dim], .axes = sharding.at(dim), .block = sharding.block(dim)};
}

absl::Status CheckSharding(const Sharding& sharding, const Dims& dims, const Mesh& mesh) {
  for (const size_t count : {sharding.split.size(), sharding.blocks.size()}) {
    if (count == 0 || count == dims.size()) continue;
    return layout_cc::Wrong(absl::StrCat("found a layout of ", count,
                                         " dimensions for a tensor of ", dims.size(),
                                         "; wanted one entry a dimension"));
  }
  AxisList used;
  for (const AxisList& axes : sharding.split)
    ORRERY_RETURN_IF_ERROR(layout_cc::Take(axes, mesh, used));
  ORRERY_RETURN_IF_ERROR(layout_cc::Take(sharding.partial, mesh, used));
  ORRERY_RETURN_IF_ERROR(layout_cc::CheckBlocks(sharding));
  return layout_cc::CheckReductions(sharding);
}

Part HeldPart(const SplitDimension& split, const Mesh& mesh, int64_t rank) {
  if (split.axes.empty()) return layout_cc::Made({0, split.size, split.size, split.size});
  if (split.block == kNestedChunks) return layout_cc::NestedPart(split, mesh, rank);
  if (split.block == kBalancedChunks) return layout_cc::BalancedPart(split, mesh, rank);
  return layout_cc::CyclicPart(split, mesh, rank);
}

// The first one's; of chunks it is known without their places.
int64_t LargestPart(const SplitDimension& split, const Mesh& mesh) {
  int64_t size = split.size;
  if (split.axes.empty()) return size;
  if (split.block == kBalancedChunks) return layout_cc::CeilDivide(size, mesh.size(split.axes));
  if (split.block != kNestedChunks) return HeldPart(split, mesh, 0).size();
  for (const AxisIndex axis : split.axes.axes()) {
    size = layout_cc::CeilDivide(size, mesh.size(axis));
  }
  return size;
}

Dims LocalDims(const Sharding& sharding, const Dims& dims, const Mesh& mesh, int64_t rank) {
  Dims local;
  for (size_t d = 0; d < dims.size(); ++d) {
    local.push_back(HeldPart(SplitOf(sharding, dims, d), mesh, rank).size());
  }
  return local;
}

Dims LargestLocalDims(const Sharding& sharding, const Dims& dims, const Mesh& mesh) {
  return LocalDims(sharding, dims, mesh, 0);
}

int64_t LargestLocalElements(const Sharding& sharding, const Dims& dims, const Mesh& mesh) {
  const Dims local = LargestLocalDims(sharding, dims, mesh);
  if (std::ranges::find(local, 0) != local.end()) return 0;
  int64_t elements = 1;
  for (const int64_t dim : local) elements = layout_cc::Product(elements, dim);
  return elements;
}

}  // namespace orrery::ir
