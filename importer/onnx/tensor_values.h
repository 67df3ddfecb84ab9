#ifndef ORRERY_IMPORTER_ONNX_TENSOR_VALUES_H_
#define ORRERY_IMPORTER_ONNX_TENSOR_VALUES_H_

#include <onnx/onnx_pb.h>

#include <optional>

#include "absl/status/statusor.h"
#include "ir/attributes.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace orrery::importer {

/// Tensors of at most this many elements keep their values: shapes, axes, tables of positions, not
/// weights.
inline constexpr int64_t kMaxValues = 4096;

/// The tensor itself; nothing for one that is large, or whose data is left out or lies in another
/// file. An error when the data is not as long as the shape says.
absl::StatusOr<std::optional<ir::Tensor>> TensorOf(const onnx::TensorProto& tensor,
                                                   const ir::TensorType& type);

/// The attributes of a Constant of that tensor; empty for one that is too large, or that holds what
/// the IR's text cannot (not a number, infinity).
ir::AttributeSet KeptValues(const ir::Tensor& tensor);

/// KeptValues of TensorOf.
absl::StatusOr<ir::AttributeSet> ValuesOf(const onnx::TensorProto& tensor,
                                          const ir::TensorType& type);

/// Whether the tensor has its elements here and all of them are one value, bit for bit.
bool AllEqual(const onnx::TensorProto& tensor);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_TENSOR_VALUES_H_
