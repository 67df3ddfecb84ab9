#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "importer/onnx/tensor_values.h"
#include "ir/op_kind.h"
#include "support/status.h"

// ONNX ops that are tables of numbers, or work by one: windows, sampling grids, columns.

namespace orrery::importer {
namespace grids_cc {
namespace {

// A window is a sum of cosines over one period.
struct Window {
  double constant, first, second;
};

template <const Window& window>
absl::Status LowerWindow(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> size, c.IntegerInput(0));
  if (size.size() != 1 || size[0] < 0) {
    return absl::InvalidArgumentError("the size is no number of samples; wanted one, at least 0");
  }
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype,
                          ElementType(static_cast<int>(c.Int("output_datatype", 1))));
  if (size[0] > kMaxValues) return c.Return(c.Constant({dtype, {size[0]}, {}}, {}));
  const double period = static_cast<double>(c.Int("periodic", 1) != 0 ? size[0] : size[0] - 1);
  ir::Tensor samples(dtype, {size[0]});
  for (int64_t i = 0; i < size[0]; ++i) {
    const double angle = period == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(i) / period;
    samples.SetNumber(
        i, window.constant + window.first * std::cos(angle) + window.second * std::cos(2 * angle));
  }
  samples.RoundToDType();
  return c.Return(c.Constant(samples));
}

constexpr Window kHann = {0.5, -0.5, 0};
constexpr Window kHamming = {25.0 / 46, 25.0 / 46 - 1, 0};
constexpr Window kBlackman = {0.42, -0.5, 0.08};

// Where position i of a dimension of `size` lies between -1 and 1.
double GridPosition(int64_t i, int64_t size, bool align_corners) {
  const auto position = static_cast<double>(i), count = static_cast<double>(size);
  if (!align_corners) return (2 * position + 1) / count - 1;
  return size == 1 ? -1 : 2 * position / (count - 1) - 1;
}

// [rank + 1, positions]: the coordinates of each position, x before y before z, and a 1.
ir::Tensor PlainGrid(ir::DType dtype, const ir::Dims& space, bool align_corners) {
  const auto rank = static_cast<int64_t>(space.size());
  const int64_t positions = ir::ElementCount(space);
  ir::Tensor grid(dtype, {rank + 1, positions});
  for (ir::Odometer at(space, {}); !at.done(); at.Next()) {
    for (int64_t row = 0; row < rank; ++row) {
      const auto d = static_cast<size_t>(rank - 1 - row);
      grid.SetNumber(row * positions + at.index(),
                     GridPosition(at.at()[d], space[d], align_corners));
    }
    grid.SetNumber(rank * positions + at.index(), 1);
  }
  return grid;
}

// theta [n, rank, rank + 1] times the plain grid, as [n, space.., rank].
absl::Status LowerAffineGrid(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> size, c.IntegerInput(1));
  const ir::TensorType theta = c.input_type(0);
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if ((rank != 2 && rank != 3) || theta.dims != ir::Dims({size[0], rank, rank + 1}) ||
      !ir::IsFloat(theta.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("theta has shape [", absl::StrJoin(theta.dims, ","), "] and size is [",
                     absl::StrJoin(size, ","),
                     "]; wanted [n,2,3] and [n,c,h,w], or [n,3,4] and "
                     "[n,c,d,h,w]"));
  }
  const ir::Dims space(size.begin() + 2, size.end());
  ORRERY_RETURN_IF_ERROR(CheckSize({theta.dtype, {rank + 1, 1, 1, 1}, {}}));
  ORRERY_RETURN_IF_ERROR(CheckSize({theta.dtype, space, {}}));
  const bool align_corners = c.Int("align_corners", 0) != 0;
  const ir::TensorType type{theta.dtype, {rank + 1, ir::ElementCount(space)}, {}};
  ORRERY_RETURN_IF_ERROR(CheckSize(type));
  auto grid = ir::ElementCount(type.dims) > kMaxValues
                  ? c.Constant(type, {})
                  : c.Constant(PlainGrid(theta.dtype, space, align_corners));
  if (!grid.ok()) return grid.status();
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId y, c.Op(ir::OpKind::kMatMul, {c.input(0), *grid}));
  ORRERY_ASSIGN_OR_RETURN(
      y, c.Op(ir::OpKind::kTranspose, {y}, {{"perm", std::vector<int64_t>{0, 2, 1}}}));
  std::vector<int64_t> shape = {-1};
  shape.insert(shape.end(), space.begin(), space.end());
  shape.push_back(rank);
  return c.Return(c.Op(ir::OpKind::kReshape, {y}, {{"shape", shape}}));
}

struct Columns {
  std::vector<int64_t> image, block, dilations, pads, strides;
};

absl::StatusOr<Columns> ColumnsOf(NodeContext& c) {
  Columns columns;
  ORRERY_ASSIGN_OR_RETURN(columns.image, c.IntegerInput(1));
  ORRERY_ASSIGN_OR_RETURN(columns.block, c.IntegerInput(2));
  const size_t rank = columns.image.size();
  columns.dilations = c.Ints("dilations", std::vector<int64_t>(rank, 1));
  columns.pads = c.Ints("pads", std::vector<int64_t>(2 * rank, 0));
  columns.strides = c.Ints("strides", std::vector<int64_t>(rank, 1));
  constexpr int64_t kMost = 1 << 20;
  bool fits = rank > 0 && columns.block.size() == rank && columns.dilations.size() == rank &&
              columns.pads.size() == 2 * rank && columns.strides.size() == rank;
  for (const auto* list : {&columns.image, &columns.block, &columns.dilations, &columns.strides}) {
    for (const int64_t n : *list) fits = fits && n >= 1 && n <= kMost;
  }
  for (const int64_t n : columns.pads) fits = fits && n >= 0 && n <= kMost;
  if (fits) return columns;
  return absl::InvalidArgumentError(
      "image_shape, block_shape, dilations, pads and strides do not fit; wanted a positive number "
      "of each for each dimension of the image, and two pads");
}

// How many blocks fit along each dimension.
ir::Dims BlocksOf(const Columns& columns) {
  ir::Dims blocks;
  const size_t rank = columns.image.size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t padded = columns.image[d] + columns.pads[d] + columns.pads[rank + d];
    const int64_t reach = columns.dilations[d] * (columns.block[d] - 1) + 1;
    blocks.push_back(padded < reach ? 0 : (padded - reach) / columns.strides[d] + 1);
  }
  return blocks;
}

// For each element of a block, and each block, its position in the image; one past the image for
// padding.
ir::Tensor PositionsOf(const Columns& columns, const ir::Dims& blocks) {
  const size_t rank = columns.image.size();
  ir::Dims all(columns.block.begin(), columns.block.end());
  all.insert(all.end(), blocks.begin(), blocks.end());
  const ir::Dims image(columns.image.begin(), columns.image.end());
  const ir::Dims strides = ir::StridesOf(image);
  std::vector<int64_t> positions;
  for (ir::Odometer at(all, {}); !at.done(); at.Next()) {
    int64_t position = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t along = at.at()[rank + d] * columns.strides[d] +
                            at.at()[d] * columns.dilations[d] - columns.pads[d];
      const bool is_there = position >= 0 && along >= 0 && along < image[d];
      position = is_there ? position + along * strides[d] : -1;
    }
    positions.push_back(position < 0 ? ir::ElementCount(image) : position);
  }
  return ir::Tensor::OfShape(std::move(positions));
}

// [n, c·block, blocks] to [n, c, image..]: each element is added to its place, as the gradient of a
// Gather is; padding goes to a position of its own that is cut off.
absl::Status LowerCol2Im(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const Columns columns, ColumnsOf(c));
  const ir::Dims x = c.input_type(0).dims;
  const ir::Dims image(columns.image.begin(), columns.image.end());
  const ir::Dims block(columns.block.begin(), columns.block.end());
  const ir::Dims blocks = BlocksOf(columns);
  ORRERY_RETURN_IF_ERROR(CheckSize({ir::DType::kI64, image, {}}));
  ORRERY_RETURN_IF_ERROR(CheckSize({ir::DType::kI64, block, {}}));
  ORRERY_RETURN_IF_ERROR(CheckSize({ir::DType::kI64, blocks, {}}));
  const int64_t in_block = ir::ElementCount(block), count = ir::ElementCount(blocks);
  if (x.size() != 3 || ir::ElementCount(x) == 0 || x[1] % in_block != 0 || x[2] != count) {
    return absl::InvalidArgumentError(absl::StrCat("input 0 has shape [", absl::StrJoin(x, ","),
                                                   "]; wanted [n,c times ", in_block, ",", count,
                                                   "], as the image and the blocks say"));
  }
  const int64_t channels = x[1] / in_block, positions = in_block * count;
  auto ids = positions > kMaxValues ? c.Constant({ir::DType::kI64, {positions}, {}}, {})
                                    : c.Constant(PositionsOf(columns, blocks));
  if (!ids.ok()) return ids.status();
  const auto reshape = [&](ir::ValueId value, std::vector<int64_t> shape) {
    return c.Op(ir::OpKind::kReshape, {value}, {{"shape", std::move(shape)}});
  };
  ORRERY_ASSIGN_OR_RETURN(ir::ValueId y, reshape(c.input(0), {-1, channels, positions}));
  const int64_t size = ir::ElementCount(image);
  const std::vector<int64_t> axes = {2}, starts = {0}, ends = {size}, steps = {1};
  ORRERY_ASSIGN_OR_RETURN(
      y, c.Op(ir::OpKind::kGatherGrad, {*ids, y}, {{"axis", int64_t{2}}, {"size", size + 1}}));
  ORRERY_ASSIGN_OR_RETURN(
      y, c.Op(ir::OpKind::kSlice, {y},
              {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}}));
  std::vector<int64_t> shape = {-1, channels};
  shape.insert(shape.end(), image.begin(), image.end());
  return c.Return(reshape(y, std::move(shape)));
}

}  // namespace
}  // namespace grids_cc

extern const OnnxOp kHannWindowOnnxOp = {
    .type = "HannWindow", .since_opset = 17, .lower = grids_cc::LowerWindow<grids_cc::kHann>};

extern const OnnxOp kHammingWindowOnnxOp = {
    .type = "HammingWindow", .since_opset = 17, .lower = grids_cc::LowerWindow<grids_cc::kHamming>};

extern const OnnxOp kBlackmanWindowOnnxOp = {.type = "BlackmanWindow",
                                             .since_opset = 17,
                                             .lower = grids_cc::LowerWindow<grids_cc::kBlackman>};

extern const OnnxOp kAffineGridOnnxOp = {
    .type = "AffineGrid", .inputs = 2, .since_opset = 20, .lower = grids_cc::LowerAffineGrid};

extern const OnnxOp kCol2ImOnnxOp = {
    .type = "Col2Im", .inputs = 3, .since_opset = 18, .lower = grids_cc::LowerCol2Im};

}  // namespace orrery::importer
