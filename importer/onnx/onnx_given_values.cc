#include "importer/onnx/onnx_given_values.h"

#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_type.h"
#include "ir/mesh.h"
#include "support/printable.h"

namespace orrery::importer {
namespace onnx_given_values_cc {
namespace {

// `value`, which a half can hold, as one.
uint16_t HalfBits(double value) {
  const unsigned sign = std::signbit(value) ? 0x8000U : 0U;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00U);
  if (magnitude > 65504) return static_cast<uint16_t>(sign | 0x7C00U);
  if (magnitude < std::ldexp(1.0, -14)) {
    return static_cast<uint16_t>(sign | static_cast<unsigned>(std::ldexp(magnitude, 24)));
  }
  const int exponent = std::ilogb(magnitude);
  const auto fraction = static_cast<unsigned>(std::ldexp(magnitude, 10 - exponent)) - 1024U;
  return static_cast<uint16_t>(sign | static_cast<unsigned>(exponent + 15) << 10 | fraction);
}

uint16_t BFloat16Bits(double value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
}

// The number that ONNX has for `dtype`; UNDEFINED when it has none.
int OnnxElementType(ir::DType dtype) {
  for (int type = onnx::TensorProto_DataType_DataType_MIN;
       type <= onnx::TensorProto_DataType_DataType_MAX; ++type) {
    const absl::StatusOr<ir::DType> same = ElementType(type);
    if (same.ok() && *same == dtype) return type;
  }
  return onnx::TensorProto::UNDEFINED;
}

void AddFloat(double value, ir::DType dtype, onnx::TensorProto& proto) {
  switch (dtype) {
    case ir::DType::kF64:
      return proto.add_double_data(value);
    case ir::DType::kF16:
      return proto.add_int32_data(HalfBits(value));
    case ir::DType::kBF16:
      return proto.add_int32_data(BFloat16Bits(value));
    default:
      return proto.add_float_data(static_cast<float>(value));
  }
}

void AddInteger(int64_t value, ir::DType dtype, onnx::TensorProto& proto) {
  switch (dtype) {
    case ir::DType::kI64:
      return proto.add_int64_data(value);
    case ir::DType::kU32:
    case ir::DType::kU64:
      return proto.add_uint64_data(static_cast<uint64_t>(value));
    default:
      return proto.add_int32_data(static_cast<int32_t>(value));
  }
}

onnx::NodeProto ConstantNode(const std::string& name, const ir::Tensor& tensor) {
  onnx::NodeProto node;
  node.set_op_type("Constant");
  node.add_output(name);
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  onnx::TensorProto& proto = *attribute.mutable_t();
  proto.set_data_type(OnnxElementType(tensor.dtype()));
  for (const int64_t dim : tensor.dims()) proto.add_dims(dim);
  for (const double value : tensor.floats()) AddFloat(value, tensor.dtype(), proto);
  for (const int64_t value : tensor.ints()) AddInteger(value, tensor.dtype(), proto);
  return node;
}

// The position of the input of that name; -1 when there is none.
int FindInput(const onnx::GraphProto& graph, const std::string& name) {
  for (int i = 0; i < graph.input_size(); ++i) {
    if (graph.input(i).name() == name) return i;
  }
  return -1;
}

}  // namespace
}  // namespace onnx_given_values_cc

absl::Status GiveValues(const std::map<std::string, ir::Tensor>& values, onnx::GraphProto& graph) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (const auto& [name, tensor] : values) {
    const int input = onnx_given_values_cc::FindInput(graph, name);
    if (input < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a value is given for ", Show(name), ", which is no input of the graph"));
    }
    const onnx::TypeProto& type = graph.input(input).type();
    if (!Agrees(type, tensor.type())) {
      return absl::InvalidArgumentError(absl::StrCat("input ", Show(name), ": the value given is ",
                                                     ir::ToString(tensor.type(), ir::Mesh()),
                                                     "; wanted ", ToString(type)));
    }
    *nodes.Add() = onnx_given_values_cc::ConstantNode(name, tensor);
    graph.mutable_input()->DeleteSubrange(input, 1);
  }
  nodes.MergeFrom(graph.node());
  graph.mutable_node()->Swap(&nodes);
  return absl::OkStatus();
}

}  // namespace orrery::importer
