#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_ops/windows.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Pools, of windows and of whole images.

namespace orrery::importer {
namespace pool_cc {
namespace {

absl::StatusOr<ir::AttributeSet> PoolAttributes(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, 0));
  if (c.Attribute("kernel_shape") == nullptr) {
    return absl::InvalidArgumentError("attribute 'kernel_shape' is missing");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel,
                          SpatialList(c, "kernel_shape", input.size(), 1));
  ORRERY_ASSIGN_OR_RETURN(ir::AttributeSet attributes, WindowAttributes(c, kernel, input));
  attributes.Set("kernel", kernel);
  if (c.Int("ceil_mode", 0) != 0) attributes.Set("ceil_mode", int64_t{1});
  return attributes;
}

absl::Status LowerMaxPool(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(ir::AttributeSet attributes, PoolAttributes(c));
  if (c.has_output(1)) {
    attributes.Set("indices", int64_t{1});
    if (c.Int("storage_order", 0) != 0) attributes.Set("storage_order", int64_t{1});
  }
  const ir::ValueId operands[] = {c.input(0)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kMaxPool, operands, attributes));
  for (size_t i = 0; i < results.size(); ++i) c.SetOutput(static_cast<int>(i), results[i]);
  return absl::OkStatus();
}

absl::Status LowerAveragePool(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(ir::AttributeSet attributes, PoolAttributes(c));
  if (c.Int("count_include_pad", 0) != 0) attributes.Set("count_include_pad", int64_t{1});
  return c.Return(c.Op(ir::OpKind::kAveragePool, {c.input(0)}, attributes));
}

absl::Status LowerLpPool(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(ir::AttributeSet attributes, PoolAttributes(c));
  attributes.Set("p", c.Int("p", 2));
  return c.Return(c.Op(ir::OpKind::kLpPool, {c.input(0)}, attributes));
}

absl::Status LowerGlobalLpPool(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, 0));
  return c.Return(
      c.Op(ir::OpKind::kLpPool, {c.input(0)},
           {{"kernel", std::vector<int64_t>(input.begin(), input.end())}, {"p", c.Int("p", 2)}}));
}

template <ir::OpKind kind>
absl::Status LowerGlobal(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Dims input, SpatialInput(c, 0));
  std::vector<int64_t> axes;
  for (size_t d = 0; d < input.size(); ++d) axes.push_back(static_cast<int64_t>(d) + 2);
  return c.Return(c.Op(kind, {c.input(0)}, {{"axes", axes}, {"keepdims", int64_t{1}}}));
}

}  // namespace
}  // namespace pool_cc

extern const OnnxOp kMaxPoolOnnxOp = {.type = "MaxPool", .lower = pool_cc::LowerMaxPool};

extern const OnnxOp kAveragePoolOnnxOp = {.type = "AveragePool",
                                          .lower = pool_cc::LowerAveragePool};

extern const OnnxOp kLpPoolOnnxOp = {
    .type = "LpPool", .since_opset = 2, .lower = pool_cc::LowerLpPool};

extern const OnnxOp kGlobalLpPoolOnnxOp = {
    .type = "GlobalLpPool", .since_opset = 2, .lower = pool_cc::LowerGlobalLpPool};

extern const OnnxOp kGlobalAveragePoolOnnxOp = {
    .type = "GlobalAveragePool", .lower = pool_cc::LowerGlobal<ir::OpKind::kReduceMean>};

extern const OnnxOp kGlobalMaxPoolOnnxOp = {.type = "GlobalMaxPool",
                                            .lower = pool_cc::LowerGlobal<ir::OpKind::kReduceMax>};

}  // namespace orrery::importer
