#include "importer/onnx.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "importer/graph_importer.h"
#include "importer/graph_structure.h"
#include "importer/inline_functions.h"
#include "importer/onnx_file.h"
#include "importer/onnx_given_values.h"
#include "importer/roles.h"
#include "importer/symbols.h"
#include "ir/verifier.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

absl::StatusOr<ir::Function> Import(onnx::ModelProto model, const std::filesystem::path& path,
                                    const ImportOptions& options) {
  ORRERY_RETURN_IF_ERROR(GiveValues(options.values, *model.mutable_graph()));
  ORRERY_RETURN_IF_ERROR(InlineFunctions(model));
  ORRERY_RETURN_IF_ERROR(Tidy(model));
  ORRERY_RETURN_IF_ERROR(BindSymbols(options, *model.mutable_graph()));
  ORRERY_ASSIGN_OR_RETURN(const int64_t opset, OpsetOf(model));
  GraphImporter importer(model.graph(), opset, path.stem().string(), path.parent_path().string());
  ORRERY_RETURN_IF_ERROR(importer.Run());
  ORRERY_RETURN_IF_ERROR(importer.CheckOutputs());
  ORRERY_ASSIGN_OR_RETURN(
      ir::Function function,
      AssignRoles(importer.function(), {.weights = importer.weights(), .freeze = options.freeze}));
  ORRERY_RETURN_IF_ERROR(ir::Verify(function));
  return function;
}

}  // namespace

absl::StatusOr<ir::Function> ImportOnnx(const std::string& path, const ImportOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(onnx::ModelProto model, ReadOnnxFile(path));
  absl::StatusOr<ir::Function> function = Import(std::move(model), path, options);
  if (!function.ok()) return Annotate(function.status(), path);
  return function;
}

}  // namespace orrery::importer
