#include "importer/onnx_op.h"

// ONNX ops that are one op of the IR, with the same operands and no attributes.

namespace orrery::importer {
namespace {

template <ir::OpKind kind>
absl::Status LowerUnary(NodeContext& c) {
  return c.Return(c.Op(kind, {c.input(0)}));
}

template <ir::OpKind kind>
absl::Status LowerBinary(NodeContext& c) {
  return c.Return(c.Op(kind, {c.input(0), c.input(1)}));
}

}  // namespace

// Before opset 7 broadcasting went by the attributes `broadcast` and `axis`.
extern const OnnxOp kAddOnnxOp = {
    .type = "Add", .inputs = 2, .since_opset = 7, .lower = LowerBinary<ir::OpKind::kAdd>};

extern const OnnxOp kMulOnnxOp = {
    .type = "Mul", .inputs = 2, .since_opset = 7, .lower = LowerBinary<ir::OpKind::kMul>};

extern const OnnxOp kIdentityOnnxOp = {.type = "Identity",
                                       .lower = LowerUnary<ir::OpKind::kIdentity>};

extern const OnnxOp kReluOnnxOp = {.type = "Relu", .lower = LowerUnary<ir::OpKind::kRelu>};

}  // namespace orrery::importer
