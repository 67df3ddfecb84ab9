#ifndef ORRERY_IMPORTER_ONNX_SYMBOLS_H_
#define ORRERY_IMPORTER_ONNX_SYMBOLS_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "importer/import_options.h"

namespace orrery::importer {

/// How `ImportOptions::symbols` calls dynamic dimension `dim` of a graph input.
std::string SymbolOf(const onnx::ValueInfoProto& value, int dim);

/// Whether a symbol is called like the batch: "batch", "batch_size", "Batch".
bool SaysBatch(const std::string& symbol);

struct SymbolValues {
  std::map<std::string, int64_t> values;
  /// Those that are the batch: the one that is dimension 0 of the first data input, and those of
  /// the same value that are dimension 0 of another one and have "batch" in their names. None when
  /// the first is fixed.
  std::vector<std::string> batch = {};
  /// Data inputs without the batch, as dimension 0 of theirs is fixed where the batch is not.
  std::set<std::string> fixed = {};
};

/// What the options say about the dynamic dimensions of the inputs. The batch size is the value of
/// the symbols that are the batch, where `symbols` has none. Errors: a value below 1, a symbol that
/// no input has, one that is the batch but has another value than the batch size, and dynamic
/// dimensions that nothing gives a value.
absl::StatusOr<SymbolValues> FindSymbols(const ImportOptions& options,
                                         const onnx::GraphProto& graph);

/// Makes the batch of a graph dynamic that has a fixed one: dimension 0 of the first data input
/// with dimensions, and of those that are as large there. False when there is none.
bool MakeBatchDynamic(onnx::GraphProto& graph, SymbolValues& symbols);

/// The input with each dynamic dimension that has a value at that value.
onnx::ValueInfoProto Bound(const SymbolValues& symbols, onnx::ValueInfoProto input);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_SYMBOLS_H_
