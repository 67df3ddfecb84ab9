#include "importer/onnx/graph_importer.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "importer/onnx/graph_structure.h"
#include "importer/onnx/onnx_type.h"
#include "importer/onnx/tensor_values.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace graph_importer_cc {
namespace {

// Whether a constant behind `kind` is still the constant, as far as training goes.
bool PassesWeights(ir::OpKind kind) {
  const ir::OpInfo& info = ir::GetOpInfo(kind);
  return info.op_class == ir::OpClass::kView || info.strided_view ||
         kind == ir::OpKind::kTranspose || kind == ir::OpKind::kCast;
}

}  // namespace
}  // namespace graph_importer_cc

absl::Status GraphImporter::Run(const SymbolValues& symbols) {
  ORRERY_RETURN_IF_ERROR(AddInputs(symbols));
  ORRERY_RETURN_IF_ERROR(AddInitializers(graph_));
  for (const onnx::NodeProto& node : graph_.node()) ORRERY_RETURN_IF_ERROR(AddNode(graph_, node));
  for (const onnx::ValueInfoProto& output : graph_.output()) {
    function_.AddOutput(
        {.value = scope_.at(output.name()), .role = ir::OutputRole::kResult, .of = {}});
  }
  return absl::OkStatus();
}

absl::Status GraphImporter::CheckOutputs() const {
  for (const onnx::ValueInfoProto& output : graph_.output()) {
    const ir::TensorType& type = function_.type(scope_.at(output.name()));
    if (AgreesInRank(output.type(), type)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "output ", Show(output.name()), ": the file says ", ToString(output.type()), "; wanted ",
        ir::ToString(type, function_.mesh()), ", as its operands make it"));
  }
  return absl::OkStatus();
}

absl::Status GraphImporter::AddInputs(const SymbolValues& symbols) {
  absl::flat_hash_set<absl::string_view> initializers;
  for (const onnx::TensorProto& tensor : graph_.initializer()) initializers.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : graph_.input()) {
    if (initializers.contains(input.name())) continue;  // of an old file: IR version 3
    const absl::StatusOr<ir::TensorType> type = TypeOf(Bound(symbols, input));
    if (!type.ok()) return Annotate(type.status(), absl::StrCat("input ", Show(input.name())));
    const bool table = symbols.fixed.contains(input.name());
    scope_[input.name()] = function_.AddInput(
        input.name(), *type, table ? ir::InputRole::kBuffer : ir::InputRole::kData);
  }
  return absl::OkStatus();
}

absl::Status GraphImporter::AddInitializers(const onnx::GraphProto& graph) {
  for (const bool parameters : {true, false}) {  // inputs of a function come before its ops
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      absl::Status status = AddInitializer(tensor, parameters);
      if (!status.ok()) return Annotate(status, absl::StrCat("initializer ", Show(tensor.name())));
    }
  }
  return absl::OkStatus();
}

// A parameter when it is of floating point and no scalar, else a constant; nothing unless
// `parameters` says that it is the turn of its kind.
absl::Status GraphImporter::AddInitializer(const onnx::TensorProto& tensor, bool parameters) {
  ORRERY_ASSIGN_OR_RETURN(const ir::TensorType type, TypeOf(tensor));
  const bool trained = ir::IsFloat(type.dtype) && !type.dims.empty();
  if (trained != parameters) return absl::OkStatus();
  ir::ValueId value;
  if (parameters) {
    value = function_.AddInput(tensor.name(), type, ir::InputRole::kParameter);
    initializers_.emplace(tensor.name(), &tensor);
  } else {
    ORRERY_ASSIGN_OR_RETURN(const ir::AttributeSet values, ValuesOf(tensor, type));
    const absl::string_view name = tensor.name();
    value = function_.result(function_.AddOp(ir::OpKind::kConstant, {},
                                             function_.InternAttributes(values),
                                             std::span(&type, 1), std::span(&name, 1)));
    held_.insert(value.index());
  }
  scope_[tensor.name()] = value;
  if (ir::ElementCount(type.dims) <= kMaxValues) known_.AddSource(value, tensor);
  return absl::OkStatus();
}

absl::Status GraphImporter::AddNode(const onnx::GraphProto& graph, const onnx::NodeProto& node) {
  for (const std::string& input : node.input()) {
    if (input.empty() || scope_.contains(input)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(node), ": uses ", Show(input), ", which nothing has made before"));
  }
  const bool runs_graphs = IsControlFlow(node);
  if (!runs_graphs) {
    ORRERY_RETURN_IF_ERROR(CheckNode(graph, node, opset_));
    if (AddCopyOfInitializer(node)) return absl::OkStatus();
  }
  absl::Status status = runs_graphs ? AddControlFlow(node) : Lower(node);
  if (status.ok()) return status;
  // A lowering may have quoted an attribute, which holds what it likes.
  return Annotate(absl::Status(status.code(), OneLine(status.message())), Describe(node));
}

// PyTorch stores initializers that are equal when they are exported (all gains of layer norms are
// one then) once, and names the others by an Identity: each is a parameter of its own.
bool GraphImporter::AddCopyOfInitializer(const onnx::NodeProto& node) {
  if (node.op_type() != "Identity" || node.output_size() != 1) return false;
  const auto found = initializers_.find(node.input(0));
  if (found == initializers_.end()) return false;
  const onnx::TensorProto& tensor = *found->second;
  const ir::TensorType type = function_.type(scope_.at(node.input(0)));
  const ir::ValueId value = function_.AddInput(node.output(0), type, ir::InputRole::kParameter);
  scope_[node.output(0)] = value;
  initializers_.emplace(node.output(0), &tensor);
  if (ir::ElementCount(type.dims) <= kMaxValues) known_.AddSource(value, tensor);
  return true;
}

absl::Status GraphImporter::Lower(const onnx::NodeProto& node) {
  const OnnxOp& op = *FindOnnxOp(node.domain(), node.op_type());
  NoteWeights(node, op);
  NodeContext context(node, opset_, known_, function_, scope_);
  const absl::Status lowered = op.lower(context);
  ORRERY_RETURN_IF_ERROR(context.status());  // the cause of whatever came after it
  ORRERY_RETURN_IF_ERROR(lowered);
  NoteStored(node);
  NoteShared(node);
  for (const std::string& output : node.output()) {
    if (output.empty() || scope_.contains(output)) continue;
    return absl::InvalidArgumentError(absl::StrCat("output ", Show(output), " is not supported"));
  }
  return absl::OkStatus();
}

// A Constant node may hold what is trained, unless all its elements are equal: nobody learned
// those. What the graph computes is none, save for another view of such a constant, which is
// folded, and for a ConstantOfShape that stands for weights that were left out: the file has its
// shape.
void GraphImporter::NoteStored(const onnx::NodeProto& node) {
  if (node.output_size() != 1) return;
  const auto result = scope_.find(node.output(0));
  if (result == scope_.end()) return;
  const ir::OpId op = function_.producer(result->second);
  if (!op.valid() || function_.kind(op) != ir::OpKind::kConstant) return;
  if (!ir::IsFloat(function_.type(result->second).dtype)) return;
  const bool differs = node.op_type() == "Constant" &&
                       function_.attributes(op).Find("fill") == nullptr &&
                       !AllEqual(node.attribute(0).t());
  const bool placeholder =
      node.op_type() == "ConstantOfShape" && held_.contains(scope_.at(node.input(0)).index());
  if (differs || placeholder || ViewsStored(node)) stored_.insert(result->second.index());
}

// An Expand or Tile of an input that leaves it as it is was to repeat it for each sample, where the
// file was exported with one.
void GraphImporter::NoteShared(const onnx::NodeProto& node) {
  if (node.op_type() != "Expand" && node.op_type() != "Tile") return;
  const ir::ValueId from = scope_.at(node.input(0));
  const auto to = scope_.find(node.output(0));
  if (function_.producer(from).valid() || to == scope_.end()) return;
  const ir::Dims& dims = function_.type(from).dims;
  if (dims.empty() || dims[0] != 1 || function_.type(to->second).dims != dims) return;
  weights_.shared.push_back(from);
}

bool GraphImporter::ViewsStored(const onnx::NodeProto& node) const {
  constexpr absl::string_view kViews[] = {"Cast",    "Flatten",   "Identity", "Reshape",
                                          "Squeeze", "Transpose", "Unsqueeze"};
  if (node.input_size() == 0 || node.input(0).empty()) return false;
  return std::find(std::begin(kViews), std::end(kViews), node.op_type()) != std::end(kViews) &&
         stored_.contains(scope_.at(node.input(0)).index());
}

void GraphImporter::NoteWeights(const onnx::NodeProto& node, const OnnxOp& op) {
  for (int i = 0; i < node.input_size() && i < 32; ++i) {
    if ((op.weights >> i & 1) == 0 || node.input(i).empty()) continue;
    ir::ValueId value = scope_.at(node.input(i));
    ir::OpId producer = function_.producer(value);
    while (producer.valid() && graph_importer_cc::PassesWeights(function_.kind(producer)) &&
           !function_.operands(producer).empty()) {
      value = function_.operands(producer)[0];
      producer = function_.producer(value);
    }
    if (!producer.valid() && weights_.seen.insert(value.index()).second) {
      weights_.inputs.push_back(value);
    }
    if (!producer.valid() || function_.kind(producer) != ir::OpKind::kConstant) continue;
    const ir::TensorType& type = function_.type(value);
    if (!ir::IsFloat(type.dtype) || ir::ElementCount(type.dims) <= 1) continue;
    if (!stored_.contains(value.index())) continue;
    if (weights_.seen.insert(value.index()).second) weights_.constants.push_back(value);
  }
}

}  // namespace orrery::importer
