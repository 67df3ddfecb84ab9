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
  if (!IsIf(node)) {
    ORRERY_RETURN_IF_ERROR(CheckNode(graph, node, opset_));
    if (AddCopyOfInitializer(node)) return absl::OkStatus();
  }
  absl::Status status = IsIf(node) ? AddIf(node) : Lower(node);
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

absl::Status GraphImporter::AddIf(const onnx::NodeProto& node) {
  const onnx::GraphProto* branches[2] = {nullptr, nullptr};
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    if (attribute.name() == "then_branch") branches[1] = &attribute.g();
    if (attribute.name() == "else_branch") branches[0] = &attribute.g();
  }
  if (node.input_size() != 1 || branches[0] == nullptr || branches[1] == nullptr) {
    return absl::InvalidArgumentError("wanted one condition, a then_branch and an else_branch");
  }
  NodeContext context(node, opset_, known_, function_, scope_);
  const ir::Tensor* condition = context.has_input(0) ? context.KnownInput(0) : nullptr;
  if (condition == nullptr || condition->size() != 1) {
    return absl::InvalidArgumentError(
        "its condition depends on data; wanted one that is known beforehand");
  }
  const onnx::GraphProto& branch = Inlined(node, *branches[condition->Number(0) != 0 ? 1 : 0]);
  if (budget_.is_spent()) {
    return absl::InvalidArgumentError(absl::StrCat("the names inside branches take more than ",
                                                   ByteBudget::kBytes >> 20,
                                                   " MiB; wanted shorter ones"));
  }
  if (branch.output_size() != node.output_size()) {
    return absl::InvalidArgumentError(absl::StrCat("has ", node.output_size(),
                                                   " outputs; the branch that is taken makes ",
                                                   branch.output_size()));
  }
  ORRERY_RETURN_IF_ERROR(AddBranch(branch));
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& result = branch.output(i).name();
    if (node.output(i).empty() || result == node.output(i)) continue;
    const auto found = scope_.find(result);
    if (found == scope_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Show(result), " of its branch is made by no node"));
    }
    context.SetOutput(i, found->second);
  }
  return absl::OkStatus();
}

// A copy of the branch whose values have names that no other value of the graph has. What it makes
// for the outside is called as the output of the node.
onnx::GraphProto& GraphImporter::Inlined(const onnx::NodeProto& node,
                                         const onnx::GraphProto& branch) {
  if (!names_.has_value()) names_.emplace(graph_);
  const std::string prefix =
      node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  Renaming renaming;
  for (const onnx::NodeProto& inner : branch.node()) {
    for (const std::string& made : inner.output()) renaming.emplace(made, "");
  }
  renaming.erase("");
  for (int i = 0; i < branch.output_size() && i < node.output_size(); ++i) {
    const auto found = renaming.find(branch.output(i).name());
    if (found != renaming.end() && found->second.empty()) found->second = node.output(i);
  }
  const auto name = [&](const std::string& inner) {
    std::string& row = renaming[inner];
    if (!row.empty() || !budget_.Spend(prefix.size() + inner.size())) return;
    row = names_->Take(absl::StrCat(prefix, "/", inner));
  };
  for (const onnx::TensorProto& tensor : branch.initializer()) name(tensor.name());
  for (const onnx::NodeProto& inner : branch.node()) {
    for (const std::string& made : inner.output()) {
      if (!made.empty()) name(made);
    }
  }
  onnx::GraphProto& copy = taken_.emplace_back(branch);
  for (onnx::TensorProto& tensor : *copy.mutable_initializer()) {
    tensor.set_name(renaming.at(tensor.name()));
  }
  for (onnx::NodeProto& inner : *copy.mutable_node()) RenameValues(renaming, inner, budget_);
  for (onnx::ValueInfoProto& output : *copy.mutable_output()) {
    const auto found = renaming.find(output.name());
    if (found != renaming.end()) output.set_name(found->second);
  }
  return copy;
}

absl::Status GraphImporter::AddBranch(const onnx::GraphProto& branch) {
  absl::flat_hash_set<absl::string_view> made;
  for (const onnx::TensorProto& tensor : branch.initializer()) {
    if (made.insert(tensor.name()).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("initializer ", Show(tensor.name()), " stands twice"));
  }
  for (const onnx::NodeProto& node : branch.node()) {
    for (const std::string& output : node.output()) {
      if (output.empty() || made.insert(output).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(node), ": makes ", Show(output), ", which is made already"));
    }
  }
  ORRERY_RETURN_IF_ERROR(AddInitializers(branch));
  for (const onnx::NodeProto& node : branch.node()) ORRERY_RETURN_IF_ERROR(AddNode(branch, node));
  return absl::OkStatus();
}

}  // namespace orrery::importer
