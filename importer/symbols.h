#ifndef ORRERY_IMPORTER_SYMBOLS_H_
#define ORRERY_IMPORTER_SYMBOLS_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "importer/onnx.h"

namespace orrery::importer {

/// How `ImportOptions::symbols` calls dynamic dimension `dim` of a graph input.
std::string SymbolOf(const onnx::ValueInfoProto& value, int dim);

struct SymbolValues {
  std::map<std::string, int64_t> values;
  /// The symbol that is dimension 0 of the first data input, when it has a value: the batch.
  std::string batch = {};
};

/// What the options say about the dynamic dimensions of the inputs. Errors: a value below 1, a
/// symbol that no input has.
absl::StatusOr<SymbolValues> FindSymbols(const ImportOptions& options,
                                         const onnx::GraphProto& graph);

/// The input with each dynamic dimension that has a value at that value.
onnx::ValueInfoProto Bound(const SymbolValues& symbols, onnx::ValueInfoProto input);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_SYMBOLS_H_
