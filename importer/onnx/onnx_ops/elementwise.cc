#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"

// ONNX ops that are one op of the IR, with the same operands and no attributes.

namespace orrery::importer {
namespace elementwise_cc {
namespace {

template <ir::OpKind kind>
absl::Status LowerUnary(NodeContext& c) {
  return c.Return(c.Op(kind, {c.input(0)}));
}

}  // namespace
}  // namespace elementwise_cc

extern const OnnxOp kIdentityOnnxOp = {.type = "Identity",
                                       .lower = elementwise_cc::LowerUnary<ir::OpKind::kIdentity>};

extern const OnnxOp kReluOnnxOp = {.type = "Relu",
                                   .lower = elementwise_cc::LowerUnary<ir::OpKind::kRelu>};

}  // namespace orrery::importer
