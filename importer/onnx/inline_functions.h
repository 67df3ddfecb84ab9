#ifndef ORRERY_IMPORTER_ONNX_INLINE_FUNCTIONS_H_
#define ORRERY_IMPORTER_ONNX_INLINE_FUNCTIONS_H_

#include <onnx/onnx_pb.h>

#include "absl/status/status.h"

namespace orrery::importer {

/// Puts the nodes of the model's own functions instead of the nodes that call them, functions that
/// call functions too. What a call makes keeps its name; names inside start with the name of the
/// calling node: "/layer.0/act/sigmoid". Attributes that refer to those of the call take their
/// values, or the function's defaults; one that has neither is left out. Errors: functions that
/// call each other in a circle, a call with more inputs or outputs than its function has, more than
/// 64 calls inside each other, more than 2^16 nodes, more than 256 MiB of names and attributes that
/// calls copy.
absl::Status InlineFunctions(onnx::ModelProto& model);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_INLINE_FUNCTIONS_H_
