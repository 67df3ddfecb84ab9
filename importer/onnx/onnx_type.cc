#include "importer/onnx/onnx_type.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/symbols.h"
#include "ir/mesh.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace onnx_type_cc {
namespace {

using Dimension = onnx::TensorShapeProto_Dimension;

struct ElementTypeRow {
  int onnx;
  ir::DType dtype;
};

constexpr std::array<ElementTypeRow, 13> kElementTypes = {{
    {onnx::TensorProto::FLOAT, ir::DType::kF32},
    {onnx::TensorProto::FLOAT16, ir::DType::kF16},
    {onnx::TensorProto::BFLOAT16, ir::DType::kBF16},
    {onnx::TensorProto::DOUBLE, ir::DType::kF64},
    {onnx::TensorProto::BOOL, ir::DType::kBool},
    {onnx::TensorProto::INT8, ir::DType::kI8},
    {onnx::TensorProto::INT32, ir::DType::kI32},
    {onnx::TensorProto::INT64, ir::DType::kI64},
    {onnx::TensorProto::INT16, ir::DType::kI16},
    {onnx::TensorProto::UINT8, ir::DType::kU8},
    {onnx::TensorProto::UINT16, ir::DType::kU16},
    {onnx::TensorProto::UINT32, ir::DType::kU32},
    {onnx::TensorProto::UINT64, ir::DType::kU64},
}};

std::string ElementTypeName(int onnx_element_type) {
  if (!onnx::TensorProto_DataType_IsValid(onnx_element_type)) {
    return absl::StrCat("number ", onnx_element_type);
  }
  return onnx::TensorProto_DataType_Name(
      static_cast<onnx::TensorProto_DataType>(onnx_element_type));
}

std::string Show(const ir::TensorType& type) { return ir::ToString(type, ir::Mesh()); }

}  // namespace
}  // namespace onnx_type_cc

std::string Describe(const onnx::NodeProto& node) {
  if (!node.name().empty()) return absl::StrCat("node ", Show(node.name()));
  return absl::StrCat("the ", Printable(node.op_type()), " that makes ",
                      Show(node.output_size() > 0 ? absl::string_view(node.output(0)) : ""));
}

absl::StatusOr<ir::DType> ElementType(int onnx_element_type) {
  for (const onnx_type_cc::ElementTypeRow& row : onnx_type_cc::kElementTypes) {
    if (row.onnx == onnx_element_type) return row.dtype;
  }
  std::string known = absl::StrJoin(onnx_type_cc::kElementTypes, ", ",
                                    [](std::string* out, onnx_type_cc::ElementTypeRow row) {
                                      absl::StrAppend(out, onnx_type_cc::ElementTypeName(row.onnx));
                                    });
  return absl::InvalidArgumentError(absl::StrCat("element type ",
                                                 onnx_type_cc::ElementTypeName(onnx_element_type),
                                                 " is not supported; wanted one of ", known));
}

absl::Status CheckSize(const ir::TensorType& type) {
  constexpr int64_t kMaxBytes = int64_t{1} << 60;
  int64_t bytes = ir::SizeOf(type.dtype);
  for (const int64_t dim : type.dims) {
    const int64_t factor = std::max<int64_t>(dim, 1);
    if (dim >= 0 && !__builtin_mul_overflow(bytes, factor, &bytes) && bytes <= kMaxBytes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("is ", onnx_type_cc::Show(type),
                     "; wanted no negative dimension and at most 2^60 bytes in all"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::TensorType> TypeOf(const onnx::TensorProto& tensor) {
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, ElementType(tensor.data_type()));
  ir::TensorType type{.dtype = dtype, .dims = {}, .sharding = {}};
  type.dims.assign(tensor.dims().begin(), tensor.dims().end());
  ORRERY_RETURN_IF_ERROR(CheckSize(type));
  return type;
}

absl::StatusOr<ir::TensorType> TypeOf(const onnx::ValueInfoProto& input) {
  const onnx::TypeProto_Tensor& tensor = input.type().tensor_type();
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, ElementType(tensor.elem_type()));
  ir::TensorType type{.dtype = dtype, .dims = {}, .sharding = {}};
  for (int d = 0; d < tensor.shape().dim_size(); ++d) {
    const onnx_type_cc::Dimension& dimension = tensor.shape().dim(d);
    if (!dimension.has_dim_value()) {
      const std::string symbol = Printable(SymbolOf(input, d));
      return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " is dynamic ('", symbol,
                                                     "') and has no value; try `symbol` ", symbol,
                                                     "=VALUE"));
    }
    type.dims.push_back(dimension.dim_value());
  }
  ORRERY_RETURN_IF_ERROR(CheckSize(type));
  return type;
}

bool AgreesInRank(const onnx::TypeProto& declared, const ir::TensorType& type) {
  if (declared.value_case() == onnx::TypeProto::VALUE_NOT_SET) return true;
  if (!declared.has_tensor_type()) return false;
  const onnx::TypeProto_Tensor& tensor = declared.tensor_type();
  if (tensor.elem_type() != onnx::TensorProto::UNDEFINED) {
    const auto dtype = ElementType(tensor.elem_type());
    if (!dtype.ok() || *dtype != type.dtype) return false;
  }
  return !tensor.has_shape() || tensor.shape().dim_size() == static_cast<int>(type.dims.size());
}

bool Agrees(const onnx::TypeProto& declared, const ir::TensorType& type) {
  if (!AgreesInRank(declared, type)) return false;
  const onnx::TensorShapeProto& shape = declared.tensor_type().shape();
  for (int d = 0; d < shape.dim_size(); ++d) {
    const onnx_type_cc::Dimension& dimension = shape.dim(d);
    if (dimension.has_dim_value() && dimension.dim_value() != type.dims[static_cast<size_t>(d)]) {
      return false;
    }
  }
  return true;
}

std::string ToString(const onnx::TypeProto& type) {
  if (type.value_case() == onnx::TypeProto::VALUE_NOT_SET) return "of no type";
  if (!type.has_tensor_type()) return "no tensor";
  const onnx::TypeProto_Tensor& tensor = type.tensor_type();
  const auto dtype = ElementType(tensor.elem_type());
  std::string text = dtype.ok() ? std::string(ir::ToString(*dtype))
                                : onnx_type_cc::ElementTypeName(tensor.elem_type());
  if (!tensor.has_shape()) return absl::StrCat(text, "[of unknown rank]");
  std::string dims = absl::StrJoin(
      tensor.shape().dim(), ",", [](std::string* out, const onnx_type_cc::Dimension& d) {
        absl::StrAppend(out, d.has_dim_value()       ? absl::StrCat(d.dim_value())
                             : d.dim_param().empty() ? "?"
                                                     : Printable(d.dim_param()));
      });
  return absl::StrCat(text, "[", dims, "]");
}

}  // namespace orrery::importer
