#include "importer/inline_names.h"

#include <utility>

namespace orrery::importer {
namespace {

void Rename(const Renaming& renaming, std::string& name) {
  const auto found = renaming.find(name);
  if (found != renaming.end()) name = found->second;
}

void RenameInGraph(const Renaming& renaming, onnx::GraphProto& graph) {
  for (onnx::NodeProto& node : *graph.mutable_node()) RenameValues(renaming, node);
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    Rename(renaming, *tensor.mutable_name());
  }
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    Rename(renaming, *output.mutable_name());
  }
}

}  // namespace

void RenameValues(const Renaming& renaming, onnx::NodeProto& node) {
  for (std::string& input : *node.mutable_input()) Rename(renaming, input);
  for (std::string& output : *node.mutable_output()) Rename(renaming, output);
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) RenameInGraph(renaming, *attribute.mutable_g());
    for (onnx::GraphProto& graph : *attribute.mutable_graphs()) RenameInGraph(renaming, graph);
  }
}

std::string NameSet::Take(std::string name) {
  while (!names_.insert(name).second) name += "'";
  return name;
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
