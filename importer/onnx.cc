#include "importer/onnx.h"

#include <filesystem>
#include <utility>

#include "importer/graph_importer.h"
#include "importer/graph_structure.h"
#include "importer/inline_functions.h"
#include "importer/onnx_file.h"
#include "importer/onnx_given_values.h"
#include "importer/rebatch.h"
#include "importer/rebind.h"
#include "importer/roles.h"
#include "importer/symbols.h"
#include "ir/verifier.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

struct Source {
  const onnx::GraphProto& graph;
  int64_t opset;
  std::filesystem::path path;
  std::string freeze;
};

absl::StatusOr<ir::Function> ImportWith(const Source& source, const SymbolValues& symbols) {
  GraphImporter importer(source.graph, source.opset, source.path.stem().string(),
                         source.path.parent_path().string());
  ORRERY_RETURN_IF_ERROR(importer.Run(symbols));
  ORRERY_RETURN_IF_ERROR(importer.CheckOutputs());
  ORRERY_ASSIGN_OR_RETURN(
      ir::Function function,
      AssignRoles(importer.function(), {.weights = importer.weights(), .freeze = source.freeze}));
  ORRERY_RETURN_IF_ERROR(ir::Verify(function));
  return function;
}

// A prime that divides no size that stands in the file.
int64_t RareBatch(const onnx::GraphProto& graph) {
  constexpr int64_t kPrimes[] = {10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079};
  const auto divides = [&](int64_t prime) {
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      for (const int64_t dim : tensor.dims()) {
        if (dim % prime == 0) return true;
      }
    }
    return false;
  };
  for (const int64_t prime : kPrimes) {
    if (!divides(prime)) return prime;
  }
  return kPrimes[0];
}

// A dynamic batch: with a value that no other size has, what is computed from it can be told from
// what is not.
absl::StatusOr<ir::Function> ImportWithDynamicBatch(const Source& source, SymbolValues symbols) {
  int64_t& batch = symbols.values[symbols.batch];
  const int64_t rare = RareBatch(source.graph);
  const int64_t wanted = std::exchange(batch, rare);
  ORRERY_ASSIGN_OR_RETURN(const ir::Function with_rare, ImportWith(source, symbols));
  ORRERY_ASSIGN_OR_RETURN(const ir::Function free, MakeBatchFree(with_rare));
  if (ComputesWithBatch(free, rare)) return absl::InvalidArgumentError("computes with its batch");
  return WithBatch(free, wanted);
}

absl::StatusOr<ir::Function> Import(onnx::ModelProto model, const std::filesystem::path& path,
                                    const ImportOptions& options) {
  ORRERY_RETURN_IF_ERROR(GiveValues(options.values, *model.mutable_graph()));
  ORRERY_RETURN_IF_ERROR(InlineFunctions(model));
  ORRERY_RETURN_IF_ERROR(Tidy(model));
  ORRERY_ASSIGN_OR_RETURN(const SymbolValues symbols, FindSymbols(options, model.graph()));
  ORRERY_ASSIGN_OR_RETURN(const int64_t opset, OpsetOf(model));
  const Source source = {
      .graph = model.graph(), .opset = opset, .path = path, .freeze = options.freeze};
  const bool keeps = !options.values.empty();  // what depends on data has the sizes of that data
  if (!keeps && !symbols.batch.empty()) {
    absl::StatusOr<ir::Function> function = ImportWithDynamicBatch(source, symbols);
    if (function.ok()) return function;
  }
  ORRERY_ASSIGN_OR_RETURN(ir::Function function, ImportWith(source, symbols));
  if (keeps) return function;
  absl::StatusOr<ir::Function> free = MakeBatchFree(function);
  return free.ok() ? free : function;
}

}  // namespace

absl::StatusOr<ir::Function> ImportOnnx(const std::string& path, const ImportOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(onnx::ModelProto model, ReadOnnxFile(path));
  absl::StatusOr<ir::Function> function = Import(std::move(model), path, options);
  if (!function.ok()) return Annotate(function.status(), path);
  return function;
}

}  // namespace orrery::importer
