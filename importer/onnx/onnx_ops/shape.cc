#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "importer/onnx/tensor_values.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::importer {
namespace shape_cc {
namespace {

absl::Status LowerTranspose(NodeContext& c) {
  ir::AttributeSet attributes;
  if (const onnx::AttributeProto* perm = c.Attribute("perm"); perm != nullptr) {
    attributes.Set("perm", std::vector<int64_t>(perm->ints().begin(), perm->ints().end()));
  }
  return c.Return(c.Op(ir::OpKind::kTranspose, {c.input(0)}, attributes));
}

// The tensor that a Constant holds under one of its attributes.
absl::StatusOr<onnx::TensorProto> HeldTensor(const onnx::AttributeProto& attribute) {
  onnx::TensorProto tensor;
  if (attribute.name() == "value") return attribute.t();
  if (attribute.name() == "value_float") {
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(attribute.f());
  } else if (attribute.name() == "value_floats") {
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(attribute.floats_size());
    *tensor.mutable_float_data() = attribute.floats();
  } else if (attribute.name() == "value_int") {
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_int64_data(attribute.i());
  } else if (attribute.name() == "value_ints") {
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(attribute.ints_size());
    *tensor.mutable_int64_data() = attribute.ints();
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", attribute.name(),
                     "' is not supported; wanted value, value_float(s) or value_int(s)"));
  }
  return tensor;
}

absl::Status LowerConstant(NodeContext& c) {
  if (c.node().attribute_size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("got ", c.node().attribute_size(),
                                                   " attributes; wanted one that holds the value"));
  }
  ORRERY_ASSIGN_OR_RETURN(const onnx::TensorProto tensor, HeldTensor(c.node().attribute(0)));
  ORRERY_ASSIGN_OR_RETURN(const ir::TensorType type, TypeOf(tensor));
  ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet values, ValuesOf(tensor, type));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId y, c.Constant(type, values));
  c.SetOutput(0, y);
  return absl::OkStatus();
}

}  // namespace
}  // namespace shape_cc

extern const OnnxOp kTransposeOnnxOp = {.type = "Transpose", .lower = shape_cc::LowerTranspose};

extern const OnnxOp kConstantOnnxOp = {
    .type = "Constant", .inputs = 0, .lower = shape_cc::LowerConstant};

}  // namespace orrery::importer
