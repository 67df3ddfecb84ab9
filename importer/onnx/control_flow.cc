#include "importer/onnx/control_flow.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "importer/onnx/graph_importer.h"
#include "importer/onnx/onnx_type.h"
#include "support/printable.h"
#include "support/status.h"

// If, whose condition is known while importing: the branch that is taken.

namespace orrery::importer {

const onnx::GraphProto* GraphOf(const onnx::NodeProto& node, absl::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name && attribute.has_g()) return &attribute.g();
  }
  return nullptr;
}

std::string PrefixOf(const onnx::NodeProto& node) {
  return node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
}

absl::Status CheckBudget(const ByteBudget& budget) {
  if (!budget.is_spent()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the names inside branches, and the turns of loops, take more than ",
                   ByteBudget::kBytes >> 20, " MiB; wanted shorter ones, and fewer"));
}

absl::Status GraphImporter::AddControlFlow(const onnx::NodeProto& node) {
  if (node.op_type() == "If") return AddIf(node);
  return Annotate(node.op_type() == "Loop" ? AddLoop(node) : AddScan(node), node.op_type());
}

absl::Status GraphImporter::AddIf(const onnx::NodeProto& node) {
  const onnx::GraphProto* const branches[2] = {GraphOf(node, "else_branch"),
                                               GraphOf(node, "then_branch")};
  if (node.input_size() != 1 || branches[0] == nullptr || branches[1] == nullptr) {
    return absl::InvalidArgumentError("wanted one condition, a then_branch and an else_branch");
  }
  NodeContext context(node, opset_, known_, function_, scope_);
  const ir::Tensor* condition = context.has_input(0) ? context.KnownInput(0) : nullptr;
  if (condition == nullptr || condition->size() != 1) {
    return absl::InvalidArgumentError(
        "its condition depends on data; wanted one that is known beforehand");
  }
  const onnx::GraphProto& taken = *branches[condition->Number(0) != 0 ? 1 : 0];
  Renaming renaming;  // what it makes for the outside is called as the output of the node
  for (const onnx::NodeProto& inner : taken.node()) {
    for (int i = 0; i < taken.output_size() && i < node.output_size(); ++i) {
      const std::string& made = taken.output(i).name();
      if (std::count(inner.output().begin(), inner.output().end(), made) == 0) continue;
      if (!made.empty()) renaming.emplace(made, node.output(i));
    }
  }
  const onnx::GraphProto& branch = Copied(taken, PrefixOf(node), renaming);
  ORRERY_RETURN_IF_ERROR(CheckBudget(budget_));
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

// A copy of a graph whose values have names that no other value has: those of `renaming`, which
// gets the others.
onnx::GraphProto& GraphImporter::Copied(const onnx::GraphProto& graph, const std::string& prefix,
                                        Renaming& renaming) {
  if (!names_.has_value()) names_.emplace(graph_);
  const auto name = [&](const std::string& inner) {
    std::string& row = renaming[inner];
    if (!row.empty() || !budget_.Spend(prefix.size() + inner.size())) return;
    row = names_->Take(absl::StrCat(prefix, "/", inner));
  };
  for (const onnx::ValueInfoProto& input : graph.input()) name(input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) name(tensor.name());
  for (const onnx::NodeProto& inner : graph.node()) {
    for (const std::string& made : inner.output()) {
      if (!made.empty()) name(made);
    }
  }
  onnx::GraphProto& copy = taken_.emplace_back(graph);
  const auto rename = [&](auto& rows) {
    for (auto& row : rows) {
      const auto found = renaming.find(row.name());
      if (found != renaming.end()) row.set_name(found->second);
    }
  };
  rename(*copy.mutable_input());
  rename(*copy.mutable_initializer());
  rename(*copy.mutable_output());
  for (onnx::NodeProto& inner : *copy.mutable_node()) RenameValues(renaming, inner, budget_);
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
