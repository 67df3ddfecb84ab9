#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "importer/batch/pick_rows.h"
#include "importer/batch/rebatch.h"
#include "importer/batch/rebind.h"
#include "importer/batch/samples_apart.h"
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
#include "ir/batch.h"
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

// What is imported, and the same free of its batch, where it can be.
struct Imported {
  ir::Function function;
  std::optional<ir::Function> free;
};

// With a fixed batch, dimension 0 of the first data input.
absl::StatusOr<Imported> ImportWithFixedBatch(const Source& source, const SymbolValues& symbols) {
  ORRERY_ASSIGN_OR_RETURN(ir::Function function, ImportWith(source, symbols));
  std::optional<ir::Function> dynamic = ImportAsDynamic(source, symbols, function);
  if (dynamic.has_value()) return Imported{std::move(function), std::move(dynamic)};
  absl::StatusOr<ir::Function> free = MakeBatchFree(function);
  if (!free.ok()) return Imported{std::move(function), std::nullopt};
  return Imported{std::move(function), *std::move(free)};
}

// Whether the first data input may be time, batch and features, or tokens of each, of a net: a file
// without weights has nothing that tells samples from features.
bool MayHaveTimeFirst(const onnx::GraphProto& graph, const ir::Function& function) {
  const bool weights = std::ranges::any_of(
      graph.initializer(), [](const onnx::TensorProto& tensor) { return tensor.dims_size() > 1; });
  for (const ir::Input& input : function.inputs()) {
    const ir::TensorType& type = function.type(input.value);
    if (input.role != ir::InputRole::kData || type.dims.empty()) continue;
    return weights && type.dims.size() >= (ir::IsFloat(type.dtype) ? 3 : 2);
  }
  return false;
}

// With the batch in those dimensions of its inputs; nothing where it cannot be followed from there.
std::optional<ir::Function> ImportWithBatchIn(const BatchDimOfInput& dims, const Source& source,
                                              const SymbolValues& symbols) {
  onnx::GraphProto graph = source.graph;
  PutBatchFirst(dims, graph);
  const Source moved = {
      .graph = graph, .opset = source.opset, .path = source.path, .options = source.options};
  absl::StatusOr<Imported> imported = ImportWithFixedBatch(moved, symbols);
  if (!imported.ok() || !imported->free.has_value() || !SamplesStayApart(*imported->free)) {
    return std::nullopt;
  }
  return *std::move(imported->free);
}

// Nets whose time comes first, with a batch behind it that the file fixes. What would be a sample
// then meets others, in attention or the steps of an LSTM; where another dimension is the batch,
// none does.
std::optional<ir::Function> ImportWithBatchElsewhere(const Source& source,
                                                     const SymbolValues& symbols,
                                                     const ir::Function& first,
                                                     ImportNotes& notes) {
  if (!MayHaveTimeFirst(source.graph, first)) return std::nullopt;
  for (const BatchDimOfInput& dims : OtherBatchDims(first)) {
    std::optional<ir::Function> moved = ImportWithBatchIn(dims, source, symbols);
    if (!moved.has_value()) continue;
    notes.warnings.push_back(BatchFoundElsewhere(
        dims, first, "samples in dimension 0 of each would know of each other"));
    return moved;
  }
  return std::nullopt;
}

// Data inputs that all samples share, but that have a dimension 1 as large as the batch: the state
// of an LSTM, keys and values of all layers in one. Of a batch of 1 nothing else tells. What has
// two dimensions may be a column, of rows of samples and time.
BatchDimOfInput BehindFirstDim(const ir::Function& function) {
  BatchDimOfInput dims;
  const int64_t batch = ir::BatchOf(function);
  for (const ir::Input& input : function.inputs()) {
    const ir::Dims& sizes = function.type(input.value).dims;
    const bool second = input.role == ir::InputRole::kData && sizes.size() >= 3 &&
                        sizes[0] != batch && sizes[1] == batch;
    if (second) dims[std::string(function.value_name(input.value))] = 1;
  }
  return dims;
}

// With the batch there, as far as it can be followed.
std::optional<ir::Function> ImportWithBatchBehind(const Source& source, const SymbolValues& symbols,
                                                  const ir::Function& first, ImportNotes& notes) {
  const BatchDimOfInput dims = BehindFirstDim(first);
  if (dims.empty()) return std::nullopt;
  std::optional<ir::Function> moved = ImportWithBatchIn(dims, source, symbols);
  if (!moved.has_value()) return std::nullopt;
  notes.warnings.push_back(
      BatchFoundElsewhere(dims, first, "dimension 0 of the first input has it"));
  return moved;
}

// Why a file cannot be imported whose batch is dynamic: where it can with the batch that it was
// exported with, as a rule a small one, it has that one as a number somewhere.
absl::Status WithBatchAsNumber(const Source& source, SymbolValues symbols,
                               const absl::Status& status) {
  if (absl::StrContains(status.message(), "; try ")) return status;
  for (const int64_t batch : {2, 3, 4, 8, 16, 32, 1}) {  // with 1, what is no batch may broadcast
    for (const std::string& symbol : symbols.batch) symbols.values[symbol] = batch;
    if (!ImportWith(source, symbols).ok()) continue;
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(), ": with a batch of ", batch,
                     " it agrees, so the file has that as a number, in a constant or a shape; try "
                     "to make it of the input: x.shape[0], torch.arange(x.shape[0])"));
  }
  return status;
}

// The function, as free of its batch as can be. Why it is not is noted where the file has a dynamic
// one.
absl::StatusOr<ir::Function> ImportFree(const Source& source, const SymbolValues& symbols,
                                        ImportNotes& notes) {
  if (symbols.batch.empty()) {
    ORRERY_ASSIGN_OR_RETURN(Imported imported, ImportWithFixedBatch(source, symbols));
    std::optional<ir::Function>& free = imported.free;
    if (free.has_value() && SamplesStayApart(*free)) {
      std::optional<ir::Function> more =
          ImportWithBatchBehind(source, symbols, imported.function, notes);
      return more.has_value() ? *std::move(more) : *std::move(free);
    }
    std::optional<ir::Function> elsewhere =
        ImportWithBatchElsewhere(source, symbols, imported.function, notes);
    if (elsewhere.has_value()) return *std::move(elsewhere);
    return free.has_value() ? *std::move(free) : std::move(imported.function);
  }
  absl::StatusOr<ir::Function> function = ImportWithDynamicBatch(source, symbols);
  if (function.ok()) return function;
  if (absl::IsOutOfRange(function.status())) {  // a loop over samples
    return absl::InvalidArgumentError(function.status().message());
  }
  absl::StatusOr<ir::Function> fixed = ImportWith(source, symbols);
  if (!fixed.ok()) return WithBatchAsNumber(source, symbols, fixed.status());
  absl::StatusOr<ir::Function> free = MakeBatchFree(*fixed);
  if (free.ok()) return free;
  notes.batch_lost = std::string(function.status().message());
  return fixed;
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
