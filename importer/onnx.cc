#include "importer/onnx.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "importer/graph_importer.h"
#include "importer/graph_structure.h"
#include "importer/inline_functions.h"
#include "importer/onnx_file.h"
#include "importer/onnx_given_values.h"
#include "importer/symbols.h"
#include "ir/verifier.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

// Leaves out the ops that nothing uses: constants whose values went into attributes, say.
void DropDeadOps(ir::Function& function) {
  IdTable<ir::ValueId, int32_t> uses = ir::CountUses(function);
  std::vector<ir::OpId> order;
  for (size_t i = function.order().size(); i-- > 0;) {
    const ir::OpId op = function.order()[i];
    bool alive = false;
    for (int32_t r = 0; r < function.result_count(op); ++r)
      alive |= uses[function.result(op, r)] > 0;
    if (alive) {
      order.push_back(op);
      continue;
    }
    for (const ir::ValueId operand : function.operands(op)) --uses[operand];
  }
  function.SetOrder(std::vector<ir::OpId>(order.rbegin(), order.rend()));
}

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
  DropDeadOps(importer.function());
  ORRERY_RETURN_IF_ERROR(ir::Verify(importer.function()));
  return std::move(importer.function());
}

}  // namespace

absl::StatusOr<ir::Function> ImportOnnx(const std::string& path, const ImportOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(onnx::ModelProto model, ReadOnnxFile(path));
  absl::StatusOr<ir::Function> function = Import(std::move(model), path, options);
  if (!function.ok()) return Annotate(function.status(), path);
  return function;
}

}  // namespace orrery::importer
