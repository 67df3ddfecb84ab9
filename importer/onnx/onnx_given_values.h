#ifndef ORRERY_IMPORTER_ONNX_ONNX_GIVEN_VALUES_H_
#define ORRERY_IMPORTER_ONNX_ONNX_GIVEN_VALUES_H_

#include <onnx/onnx_pb.h>

#include <map>
#include <string>

#include "absl/status/status.h"
#include "ir/tensor.h"

namespace orrery::importer {

/// Makes each graph input that `values` has a Constant node in front of all others, which holds
/// that value. Errors: a name that no input has, a value of another type than the input's.
absl::Status GiveValues(const std::map<std::string, ir::Tensor>& values, onnx::GraphProto& graph);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_ONNX_GIVEN_VALUES_H_
