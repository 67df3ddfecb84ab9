#include "importer/onnx_op.h"

// ONNX ops that are one op of the IR, with the same operands and no attributes.

namespace orrery::importer {
namespace {

template <ir::OpKind kind>
absl::Status LowerUnary(NodeContext& c) {
  return c.Return(c.Op(kind, {c.input(0)}));
}

}  // namespace

extern const OnnxOp kIdentityOnnxOp = {.type = "Identity",
                                       .lower = LowerUnary<ir::OpKind::kIdentity>};

extern const OnnxOp kReluOnnxOp = {.type = "Relu", .lower = LowerUnary<ir::OpKind::kRelu>};

}  // namespace orrery::importer
