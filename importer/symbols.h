#ifndef ORRERY_IMPORTER_SYMBOLS_H_
#define ORRERY_IMPORTER_SYMBOLS_H_

#include <onnx/onnx_pb.h>

#include <string>

#include "absl/status/status.h"
#include "importer/onnx.h"

namespace orrery::importer {

/// How `ImportOptions::symbols` calls dynamic dimension `dim` of a graph input.
std::string SymbolOf(const onnx::ValueInfoProto& value, int dim);

/// Gives each dynamic dimension of the graph that `options` has a value for that value. Errors: a
/// value below 1, a symbol that no input has.
absl::Status BindSymbols(const ImportOptions& options, onnx::GraphProto& graph);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_SYMBOLS_H_
