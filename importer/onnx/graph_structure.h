#ifndef ORRERY_IMPORTER_ONNX_GRAPH_STRUCTURE_H_
#define ORRERY_IMPORTER_ONNX_GRAPH_STRUCTURE_H_

#include <onnx/onnx_pb.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace orrery::importer {

/// The newest version of the default opset whose ops are lowered. How old one may be is for each op
/// to say.
inline constexpr int64_t kNewestOpset = 21;

/// Leaves of the model what its outputs need, and checks that it can be imported, as far as that
/// shows without types:
///
///  1. The graph has outputs, none of them twice.
///  2. Each value is made once, and has a name.
///  3. Nodes stand in an order in which they can run.
///  4. Their op types are supported in the opset of the model; no sparse initializers.
///     Graph inputs are tensors of known rank.
///
/// Returns the first rule broken and where. Graph inputs stay, whether used or not. Branches of If,
/// and bodies of loops, are looked at where one is taken. The model's own functions must have been
/// inlined.
absl::Status Tidy(onnx::ModelProto& model);

/// Rule 4 for a node of `graph`.
absl::Status CheckNode(const onnx::GraphProto& graph, const onnx::NodeProto& node, int64_t opset);

/// Whether the node is an If, Loop or Scan of the default domain.
bool IsControlFlow(const onnx::NodeProto& node);

/// The version of the default opset that the model imports; an error when it names none, or one
/// that is not supported.
absl::StatusOr<int64_t> OpsetOf(const onnx::ModelProto& model);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_GRAPH_STRUCTURE_H_
