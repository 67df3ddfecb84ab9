#include "transforms/redistribution/tensorcraft_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace orrery::transforms::redistribution {

using ir::AxisIndex;
using ir::AxisList;

namespace tensorcraft_layout_cc {
namespace {

// More elements than any device could hold; volumes are counted in double.
constexpr int64_t kMaxElements = int64_t{1} << 60;

}  // namespace
}  // namespace tensorcraft_layout_cc

int64_t LargestPart(int64_t size, int64_t block, int64_t parts) {
  if (block >= size) return size;
  if (block > size / parts) return block;  // the first part has one block, and block × parts > size
  const int64_t round = block * parts;
  return size / round * block + std::min(block, size % round);
}

int64_t LargestBlock(int64_t size, int64_t parts) {
  if (size < parts) return 0;
  if (parts == 1) return size;
  return std::max<int64_t>(1, (size - 1) / (parts - 1));
}

TensorcraftTensor::TensorcraftTensor(const ir::Mesh& mesh, const ir::Dims& dims)
    : dims_(dims), axis_count_(static_cast<int>(mesh.axes().size())) {
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    axis_sizes_[axis] = mesh.axes()[axis].size;
  }
  for (const int64_t size : dims_) {
    const bool fits =
        size >= 1 && elements_ >= 1 && size <= tensorcraft_layout_cc::kMaxElements / elements_;
    elements_ = fits ? elements_ * size : 0;
  }
}

int64_t TensorcraftTensor::size(const AxisList& axes) const {
  int64_t product = 1;
  for (const AxisIndex axis : axes.axes()) product *= axis_sizes_[axis];
  return product;
}

absl::Status TensorcraftTensor::Check() const {
  if (dims_.size() > PackedLayout::kMaxDims) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor: got ", dims_.size(), " dimensions; wanted at most ", PackedLayout::kMaxDims));
  }
  if (elements_ >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "tensor: got dimensions without elements, or with more than 2^60; wanted sizes of at least "
      "1, and at most 2^60 elements in all");
}

absl::Status TensorcraftTensor::Check(const PackedLayout& layout) const {
  for (AxisIndex axis = 0; axis < ir::kMaxAxes; ++axis) {
    const AxisRole role = layout.role(axis);
    if (role == AxisRole::kReplicates) continue;
    if (axis >= axis_count_ || layout.dim(axis) >= rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("got axis ", axis, ", of a mesh of ", axis_count_, ", in a tensor of ",
                       rank(), " dimensions; wanted axes of the mesh on dimensions of the tensor"));
    }
    if (role == AxisRole::kSplits) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis,
                     " is partial, which tensorcraft's layouts never are; wanted "
                     "axes that split or replicate; try the costs of DTensor or of a cluster"));
  }
  for (int d = 0; d < rank(); ++d) {
    const AxisList axes = layout.axes(d);
    if (axes.empty()) continue;
    const int64_t parts = size(axes);
    const int64_t most = LargestBlock(dim(d), parts);
    const int64_t block = layout.block(d);
    const bool even = block <= 0 && dim(d) % parts == 0;
    if (even || (block >= 1 && block <= most)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", d, " of ", dim(d), " elements on ", parts, " ranks: got ",
                     block > 0 ? absl::StrCat("a block of ", block) : "chunks that differ in size",
                     "; wanted an element for every rank, ",
                     most > 0 ? absl::StrCat("with a block of 1 to ", most)
                              : absl::StrCat("on at most ", dim(d), " ranks")));
  }
  return absl::OkStatus();
}

PackedLayout TensorcraftTensor::Normal(const PackedLayout& layout) const {
  PackedLayout normal = layout;
  for (int d = 0; d < rank(); ++d) {
    const AxisList axes = layout.axes(d);
    if (axes.empty() || layout.block(d) > 0) continue;
    normal.SetSplit(d, axes, std::max<int64_t>(1, dim(d) / size(axes)));
  }
  return normal;
}

TensorcraftLayout TensorcraftTensor::Open(const PackedLayout& layout) const {
  TensorcraftLayout open{.packed = layout, .dims = {}, .used = {}};
  open.dims.resize(dims_.size());
  for (AxisIndex axis = 0; axis < axis_count_; ++axis) {
    const int d = layout.dim(axis);
    if (d < 0) continue;
    open.used.push_back(axis);
    open.ranks *= size(axis);
    DimSplit& split = open.dims[static_cast<size_t>(d)];
    if (!split.axes.empty()) continue;  // its axes are there
    split.axes = layout.axes(d);
    split.block = layout.block(d);
    split.parts = size(split.axes);
  }
  for (int d = 0; d < rank(); ++d) {
    DimSplit& split = open.dims[static_cast<size_t>(d)];
    split.largest = LargestPart(dim(d), split.block, split.parts);
    open.elements *= split.largest;
  }
  return open;
}

int64_t TensorcraftTensor::Elements(const PackedLayout& layout) const {
  return Open(layout).elements;
}

}  // namespace orrery::transforms::redistribution
