#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/batch/pick_rows.h"
#include "importer/batch/rebatch.h"
#include "importer/batch/rebind.h"
#include "importer/onnx.h"
#include "importer/onnx/batch_major.h"
#include "importer/onnx/embedding_bag.h"
#include "importer/onnx/graph_importer.h"
#include "importer/onnx/graph_structure.h"
#include "importer/onnx/import_warnings.h"
#include "importer/onnx/inline_functions.h"
#include "importer/onnx/onnx_file.h"
#include "importer/onnx/onnx_given_values.h"
#include "importer/onnx/rare_batch.h"
#include "importer/onnx/symbols.h"
#include "importer/roles.h"
#include "ir/verifier.h"
#include "support/module.h"
#include "support/status.h"

namespace orrery::importer {
namespace import_onnx_cc {
namespace {

struct Source {
  const onnx::GraphProto& graph;
  int64_t opset;
  std::filesystem::path path;
  const ImportOptions& options;
};

absl::StatusOr<ir::Function> ImportWith(const Source& source, const SymbolValues& symbols,
                                        int64_t rare_batch = 0) {
  GraphImporter importer(source.graph, source.opset, source.path.stem().string(),
                         source.path.parent_path().string(), rare_batch);
  ORRERY_RETURN_IF_ERROR(importer.Run(symbols));
  ORRERY_RETURN_IF_ERROR(importer.CheckOutputs());
  ORRERY_ASSIGN_OR_RETURN(
      ir::Function function,
      AssignRoles(importer.function(), {.weights = importer.weights(),
                                        .weight_inputs = importer.weight_inputs(),
                                        .shared_inputs = importer.shared_inputs(),
                                        .patterns = source.options.roles}));
  ORRERY_RETURN_IF_ERROR(ir::Verify(function));
  return PickRowsBySample(function);
}

// A dynamic batch: with a value that no other size has, what is computed from it can be told from
// what is not.
absl::StatusOr<ir::Function> ImportWithDynamicBatch(const Source& source, SymbolValues symbols) {
  const int64_t rare = RareBatch(source.graph, symbols);
  const int64_t wanted = symbols.values.at(symbols.batch[0]);
  for (const std::string& symbol : symbols.batch) symbols.values[symbol] = rare;
  ORRERY_ASSIGN_OR_RETURN(const ir::Function with_rare, ImportWith(source, symbols, rare));
  ORRERY_ASSIGN_OR_RETURN(const ir::Function free, MakeBatchFree(with_rare, BatchSize::kRare));
  if (const std::optional<ir::OpId> op = ComputesWithBatch(free, rare); op.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        free.name(), ": ", free.info(*op).name, " ", ir::PrintValue(free, free.result(*op)),
        " cannot follow the batch: it computes with how many samples there are"));
  }
  ORRERY_ASSIGN_OR_RETURN(ir::Function function, WithBatch(free, wanted));
  if (HasSizeOf(function, rare)) return absl::InvalidArgumentError("another size is its batch");
  return function;
}

bool SameOutputs(const ir::Function& one, const ir::Function& other) {
  return std::equal(one.outputs().begin(), one.outputs().end(), other.outputs().begin(),
                    other.outputs().end(), [&](const ir::Output& a, const ir::Output& b) {
                      return one.type(a.value) == other.type(b.value);
                    });
}

// A fixed batch that the graph computes its shapes from, as if it were dynamic. `fixed` is what the
// file says.
std::optional<ir::Function> ImportAsDynamic(const Source& source, SymbolValues symbols,
                                            const ir::Function& fixed) {
  const bool computes =
      std::any_of(source.graph.node().begin(), source.graph.node().end(),
                  [](const onnx::NodeProto& node) { return node.op_type() == "Shape"; });
  onnx::GraphProto graph;
  if (computes) graph = source.graph;
  if (!computes || !MakeBatchDynamic(graph, symbols)) return std::nullopt;
  Source dynamic = {
      .graph = graph, .opset = source.opset, .path = source.path, .options = source.options};
  absl::StatusOr<ir::Function> function = ImportWithDynamicBatch(dynamic, symbols);
  if (!function.ok() || !SameOutputs(*function, fixed)) return std::nullopt;
  return *std::move(function);
}

// The function, as free of its batch as can be. Why it is not is noted where the file has a dynamic
// one.
absl::StatusOr<ir::Function> ImportFree(const Source& source, const SymbolValues& symbols,
                                        ImportNotes& notes) {
  absl::Status lost;
  if (!symbols.batch.empty()) {
    absl::StatusOr<ir::Function> function = ImportWithDynamicBatch(source, symbols);
    if (function.ok()) return function;
    if (absl::IsOutOfRange(function.status())) {  // a loop over samples
      return absl::InvalidArgumentError(function.status().message());
    }
    lost = function.status();
  }
  ORRERY_ASSIGN_OR_RETURN(ir::Function function, ImportWith(source, symbols));
  if (symbols.batch.empty()) {
    std::optional<ir::Function> dynamic = ImportAsDynamic(source, symbols, function);
    if (dynamic.has_value()) return *std::move(dynamic);
  }
  absl::StatusOr<ir::Function> free = MakeBatchFree(function);
  if (free.ok()) return free;
  if (!lost.ok()) notes.batch_lost = std::string(lost.message());
  return function;
}

absl::StatusOr<ir::Function> Import(onnx::ModelProto model, const std::filesystem::path& path,
                                    const ImportOptions& options, ImportNotes& notes) {
  ORRERY_RETURN_IF_ERROR(GiveValues(options.values, *model.mutable_graph()));
  ORRERY_RETURN_IF_ERROR(InlineFunctions(model));
  CollapseEmbeddingBags(*model.mutable_graph());
  ORRERY_RETURN_IF_ERROR(Tidy(model));
  PutBatchFirst(*model.mutable_graph());
  ORRERY_ASSIGN_OR_RETURN(const SymbolValues symbols, FindSymbols(options, model.graph()));
  ORRERY_ASSIGN_OR_RETURN(const int64_t opset, OpsetOf(model));
  const Source source = {.graph = model.graph(), .opset = opset, .path = path, .options = options};
  // What depends on data has the sizes of that data.
  const bool keeps = !options.values.empty();
  ORRERY_ASSIGN_OR_RETURN(ir::Function function,
                          keeps ? ImportWith(source, symbols) : ImportFree(source, symbols, notes));
  for (std::optional<std::string> warning :
       {EvaluationForm(model, opset),
        InputsThatMayBeWeights(model.graph(), function, options.roles)}) {
    if (warning.has_value()) notes.warnings.push_back(*std::move(warning));
  }
  return function;
}

}  // namespace
}  // namespace import_onnx_cc

absl::StatusOr<ir::Function> ImportOnnx(const std::string& path, const ImportOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(onnx::ModelProto model, ReadOnnxFile(path));
  ImportNotes nobody_asks;
  absl::StatusOr<ir::Function> function = import_onnx_cc::Import(
      std::move(model), path, options, options.notes == nullptr ? nobody_asks : *options.notes);
  if (!function.ok()) return Annotate(function.status(), path);
  return function;
}

}  // namespace orrery::importer

ORRERY_MODULE_ENTRY(onnx, orrery::importer::ImportOnnx)
