#ifndef ORRERY_IMPORTER_ONNX_ONNX_TYPE_H_
#define ORRERY_IMPORTER_ONNX_ONNX_TYPE_H_

#include <onnx/onnx_pb.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/type.h"

// ONNX types and names, and how errors show them. None of these errors says where.

namespace orrery::importer {

/// "node '/l.0/MatMul'"; "the MatMul that makes 'y'" for a node without a name.
std::string Describe(const onnx::NodeProto& node);

/// The element type of that ONNX number; an error for one that the IR cannot express.
absl::StatusOr<ir::DType> ElementType(int onnx_element_type);

/// The type of an initializer or constant.
absl::StatusOr<ir::TensorType> TypeOf(const onnx::TensorProto& tensor);

/// The type of a graph input, a tensor with a shape, whose symbols are bound. The error of a
/// dimension that is still dynamic says how to give it a value.
absl::StatusOr<ir::TensorType> TypeOf(const onnx::ValueInfoProto& input);

/// Ok, or that a dimension is below 1 or the tensor larger than 2^60 bytes.
absl::Status CheckSize(const ir::TensorType& type);

/// Whether `declared`, where it says something, has the element type and the rank of `type`.
bool AgreesInRank(const onnx::TypeProto& declared, const ir::TensorType& type);

/// Whether it says `type`, where it says something.
bool Agrees(const onnx::TypeProto& declared, const ir::TensorType& type);

/// "f32[batch,16]", as far as `type` says it: "?[?]".
std::string ToString(const onnx::TypeProto& type);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_ONNX_TYPE_H_
