#ifndef ORRERY_IMPORTER_TENSOR_VALUES_H_
#define ORRERY_IMPORTER_TENSOR_VALUES_H_

#include <onnx/onnx_pb.h>

#include "absl/status/statusor.h"
#include "ir/attributes.h"
#include "ir/type.h"

namespace orrery::importer {

/// Tensors of at most this many elements keep their values: shapes, axes, scalars, not weights.
inline constexpr int64_t kMaxValues = 64;

/// `{values=[…]}` of a small tensor of that type; empty for one that is large, whose data is left
/// out or lies in another file, or that holds what the IR's text cannot (not a number). An error
/// when the data is not as long as the shape says.
absl::StatusOr<ir::AttributeSet> ValuesOf(const onnx::TensorProto& tensor,
                                          const ir::TensorType& type);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_TENSOR_VALUES_H_
