#ifndef ORRERY_IMPORTER_GRAPH_STRUCTURE_H_
#define ORRERY_IMPORTER_GRAPH_STRUCTURE_H_

#include <onnx/onnx_pb.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orrery::importer {

/// Leaves of the model what its outputs need, and checks that it can be imported, as far as that
/// shows without types:
///
///  1. The graph has outputs, none of them twice.
///  2. Each value is made once, and has a name.
///  3. Nodes stand in an order in which they can run.
///  4. Their op types are supported in the opset of the model; no functions, no graphs in graphs,
///  no
///     sparse initializers. Graph inputs are tensors of known rank.
///
/// Returns the first rule broken and where. Graph inputs stay, whether used or not.
absl::Status Tidy(onnx::ModelProto& model);

/// The version of the default opset that the model imports; an error when it names none.
absl::StatusOr<int64_t> OpsetOf(const onnx::ModelProto& model);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_GRAPH_STRUCTURE_H_
