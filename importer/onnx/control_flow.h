#ifndef ORRERY_IMPORTER_ONNX_CONTROL_FLOW_H_
#define ORRERY_IMPORTER_ONNX_CONTROL_FLOW_H_

#include <onnx/onnx_pb.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "importer/onnx/inline_names.h"

// What If, Loop and Scan have in common: graphs among attributes, copied into the graph around.

namespace orrery::importer {

/// The attribute of that name, when it is a graph; else null.
const onnx::GraphProto* GraphOf(const onnx::NodeProto& node, absl::string_view name);

/// What names of values in the node's graphs begin with.
std::string PrefixOf(const onnx::NodeProto& node);

/// An error once copies have taken more than the budget.
absl::Status CheckBudget(const ByteBudget& budget);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_CONTROL_FLOW_H_
