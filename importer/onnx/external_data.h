#ifndef ORRERY_IMPORTER_ONNX_EXTERNAL_DATA_H_
#define ORRERY_IMPORTER_ONNX_EXTERNAL_DATA_H_

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace orrery::importer {

/// The tensor of an initializer whose data lies in a file of its own, in `folder` or below it.
/// Nothing for one of more than kMaxValues elements. Errors: the file is not there, is too short or
/// lies elsewhere, or holds another number of bytes for it.
absl::StatusOr<std::optional<ir::Tensor>> ExternalTensorOf(const onnx::TensorProto& tensor,
                                                           const ir::TensorType& type,
                                                           const std::string& folder);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_EXTERNAL_DATA_H_
