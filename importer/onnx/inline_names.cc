#include "importer/onnx/inline_names.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::importer {
namespace inline_names_cc {
namespace {

void Rename(const Renaming& renaming, std::string& name, ByteBudget& budget) {
  const auto found = renaming.find(name);
  if (found != renaming.end() && budget.Spend(found->second.size())) name = found->second;
}

void RenameInGraph(const Renaming& renaming, onnx::GraphProto& graph, ByteBudget& budget) {
  for (onnx::NodeProto& node : *graph.mutable_node()) RenameValues(renaming, node, budget);
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    Rename(renaming, *tensor.mutable_name(), budget);
  }
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    Rename(renaming, *output.mutable_name(), budget);
  }
}

}  // namespace
}  // namespace inline_names_cc

void RenameValues(const Renaming& renaming, onnx::NodeProto& node, ByteBudget& budget) {
  for (std::string& input : *node.mutable_input()) inline_names_cc::Rename(renaming, input, budget);
  for (std::string& output : *node.mutable_output())
    inline_names_cc::Rename(renaming, output, budget);
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) inline_names_cc::RenameInGraph(renaming, *attribute.mutable_g(), budget);
    for (onnx::GraphProto& graph : *attribute.mutable_graphs())
      inline_names_cc::RenameInGraph(renaming, graph, budget);
  }
}

std::string NameSet::Take(const std::string& name) {
  if (names_.insert(name).second) return name;
  int64_t& others = others_[name];
  std::string other;
  do {
    other = ++others == 1 ? absl::StrCat(name, "'") : absl::StrCat(name, "'", others);
  } while (!names_.insert(other).second);
  return other;
}

void NameSet::Add(const onnx::GraphProto& graph) {
  for (const onnx::ValueInfoProto& input : graph.input()) names_.insert(input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) names_.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) {
    names_.insert(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) Add(attribute.g());
      for (const onnx::GraphProto& inner : attribute.graphs()) Add(inner);
    }
  }
}

}  // namespace orrery::importer
