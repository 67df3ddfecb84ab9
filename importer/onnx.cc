#include "importer/onnx.h"

#include <filesystem>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "importer/graph_structure.h"
#include "importer/onnx_file.h"
#include "importer/onnx_library.h"
#include "importer/onnx_op.h"
#include "importer/onnx_type.h"
#include "importer/printable.h"
#include "importer/symbols.h"
#include "importer/tensor_values.h"
#include "ir/verifier.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

// Makes the function of a graph that Tidy has passed.
class GraphImporter {
 public:
  GraphImporter(const onnx::GraphProto& graph, int64_t opset, const std::string& name)
      : graph_(graph), opset_(opset), function_(name) {}

  absl::Status Run() {
    ORRERY_RETURN_IF_ERROR(AddInputs());
    ORRERY_RETURN_IF_ERROR(AddInitializers());
    for (const onnx::NodeProto& node : graph_.node()) {
      if (absl::Status status = AddNode(node); !status.ok())
        return Annotate(status, Describe(node));
    }
    for (const onnx::ValueInfoProto& output : graph_.output()) {
      function_.AddOutput(
          {.value = scope_.at(output.name()), .role = ir::OutputRole::kResult, .of = {}});
    }
    return absl::OkStatus();
  }

  // Whether the types that `graph` has agree with those of the function; `who` says so.
  absl::Status Compare(const onnx::GraphProto& graph, absl::string_view who) const {
    for (const auto* values : {&graph.input(), &graph.value_info(), &graph.output()}) {
      for (const onnx::ValueInfoProto& value : *values) {
        const auto found = scope_.find(value.name());
        if (found == scope_.end()) continue;
        const ir::TensorType& type = function_.type(found->second);
        if (Agrees(value.type(), type)) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "value ", Show(value.name()), ": ", who, " says ", ToString(value.type()), "; wanted ",
            ir::ToString(type, function_.mesh()), ", as its operands make it"));
      }
    }
    return absl::OkStatus();
  }

  ir::Function& function() { return function_; }

 private:
  absl::Status AddInputs() {
    absl::flat_hash_set<absl::string_view> initializers;
    for (const onnx::TensorProto& tensor : graph_.initializer()) initializers.insert(tensor.name());
    for (const onnx::ValueInfoProto& input : graph_.input()) {
      if (initializers.contains(input.name())) continue;  // of an old file: IR version 3
      const absl::StatusOr<ir::TensorType> type = TypeOf(input);
      if (!type.ok()) return Annotate(type.status(), absl::StrCat("input ", Show(input.name())));
      scope_[input.name()] = function_.AddInput(input.name(), *type, ir::InputRole::kData);
    }
    return absl::OkStatus();
  }

  absl::Status AddInitializers() {
    for (const bool parameters : {true, false}) {  // inputs of a function come before its ops
      for (const onnx::TensorProto& tensor : graph_.initializer()) {
        absl::Status status = AddInitializer(tensor, parameters);
        if (!status.ok())
          return Annotate(status, absl::StrCat("initializer ", Show(tensor.name())));
      }
    }
    return absl::OkStatus();
  }

  // A parameter when it is of floating point and no scalar, else a constant; nothing unless
  // `parameters` says that it is the turn of its kind.
  absl::Status AddInitializer(const onnx::TensorProto& tensor, bool parameters) {
    ORRERY_ASSIGN_OR_RETURN(const ir::TensorType type, TypeOf(tensor));
    const bool trained = ir::IsFloat(type.dtype) && !type.dims.empty();
    if (trained != parameters) return absl::OkStatus();
    if (parameters) {
      scope_[tensor.name()] = function_.AddInput(tensor.name(), type, ir::InputRole::kParameter);
      return absl::OkStatus();
    }
    ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet values, ValuesOf(tensor, type));
    const absl::string_view name = tensor.name();
    const ir::OpId op =
        function_.AddOp(ir::OpKind::kConstant, {}, function_.InternAttributes(values),
                        std::span(&type, 1), std::span(&name, 1));
    scope_[tensor.name()] = function_.result(op);
    return absl::OkStatus();
  }

  absl::Status AddNode(const onnx::NodeProto& node) {
    NodeContext context(node, opset_, known_, function_, scope_);
    ORRERY_RETURN_IF_ERROR(FindOnnxOp(node.op_type())->lower(context));
    ORRERY_RETURN_IF_ERROR(context.status());
    for (const std::string& output : node.output()) {
      if (output.empty() || scope_.contains(output)) continue;
      return absl::InvalidArgumentError(absl::StrCat("output ", Show(output), " is not supported"));
    }
    return absl::OkStatus();
  }

  const onnx::GraphProto& graph_;
  int64_t opset_;
  ir::Function function_;
  KnownValues known_;
  Scope scope_;
};

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

absl::StatusOr<ir::Function> Import(onnx::ModelProto model, const std::string& name,
                                    const ImportOptions& options) {
  ORRERY_RETURN_IF_ERROR(Tidy(model));
  ORRERY_RETURN_IF_ERROR(CheckWithOnnx(model));
  ORRERY_RETURN_IF_ERROR(BindSymbols(options, *model.mutable_graph()));
  ORRERY_ASSIGN_OR_RETURN(const int64_t opset, OpsetOf(model));
  GraphImporter importer(model.graph(), opset, name);
  ORRERY_RETURN_IF_ERROR(importer.Run());
  ORRERY_RETURN_IF_ERROR(importer.Compare(model.graph(), "the file"));
  ORRERY_ASSIGN_OR_RETURN(const onnx::GraphProto inferred, InferWithOnnx(model));
  ORRERY_RETURN_IF_ERROR(importer.Compare(inferred, "ONNX's shape inference"));
  DropDeadOps(importer.function());
  ORRERY_RETURN_IF_ERROR(ir::Verify(importer.function()));
  return std::move(importer.function());
}

}  // namespace

absl::StatusOr<ir::Function> ImportOnnx(const std::string& path, const ImportOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(onnx::ModelProto model, ReadOnnxFile(path));
  const std::string name = std::filesystem::path(path).stem().string();
  absl::StatusOr<ir::Function> function = Import(std::move(model), name, options);
  if (!function.ok()) return Annotate(function.status(), path);
  return function;
}

}  // namespace orrery::importer
