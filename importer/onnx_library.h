#ifndef ORRERY_IMPORTER_ONNX_LIBRARY_H_
#define ORRERY_IMPORTER_ONNX_LIBRARY_H_

#include <onnx/onnx_pb.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// What the ONNX library is asked. It throws; here that becomes one line. Its first use builds the
// table of all op schemas, which takes 6 ms.

namespace orrery::importer {

/// What ONNX's own checker says to `model`, whose weights need not be there.
absl::Status CheckWithOnnx(const onnx::ModelProto& model);

/// The graph with the types that ONNX's shape inference finds, in `value_info` and `output`. An
/// error when it finds a contradiction.
absl::StatusOr<onnx::GraphProto> InferWithOnnx(const onnx::ModelProto& model);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_LIBRARY_H_
