#include "importer/onnx/batch_major.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "importer/onnx/symbols.h"

namespace orrery::importer {
namespace batch_major_cc {
namespace {

// The dimension of an input that says that it is the batch; 0 where that is the first, or none
// does.
int BatchDim(const onnx::ValueInfoProto& input) {
  const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
  int found = 0;
  for (int d = shape.dim_size() - 1; d >= 0; --d) {
    if (!shape.dim(d).has_dim_value() && SaysBatch(shape.dim(d).dim_param())) found = d;
  }
  return found;
}

// Moves dimension `dim` to the front.
void MoveToFront(int dim, onnx::ValueInfoProto& input) {
  onnx::TensorShapeProto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int d = dim; d > 0; --d) shape.mutable_dim()->SwapElements(d, d - 1);
}

// What makes of the input, with the batch first, what the graph wants under `name`.
onnx::NodeProto MoveBack(const onnx::ValueInfoProto& input, int dim, const std::string& name) {
  onnx::NodeProto node;
  node.set_op_type("Transpose");
  node.set_name(name);
  node.add_input(input.name());
  node.add_output(name);
  onnx::AttributeProto& perm = *node.add_attribute();
  perm.set_name("perm");
  perm.set_type(onnx::AttributeProto::INTS);
  const int rank = input.type().tensor_type().shape().dim_size();
  for (int d = 0; d < rank; ++d) perm.add_ints(d < dim ? d + 1 : d == dim ? 0 : d);
  return node;
}

using Names = absl::flat_hash_map<std::string, std::string>;

// In nodes, and in what they hold: branches see the names around them.
void Rename(const Names& names, google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  for (onnx::NodeProto& node : nodes) {
    for (std::string& input : *node.mutable_input()) {
      const auto found = names.find(input);
      if (found != names.end()) input = found->second;
    }
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) Rename(names, *attribute.mutable_g()->mutable_node());
    }
  }
}

absl::flat_hash_set<std::string> NamesOf(const onnx::GraphProto& graph) {
  absl::flat_hash_set<std::string> names;
  for (const onnx::NodeProto& node : graph.node()) {
    names.insert(node.output().begin(), node.output().end());
  }
  for (const onnx::TensorProto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : graph.input()) names.insert(input.name());
  return names;
}

// `dim_of` tells the dimension of an input.
template <typename DimOf>
void PutFirst(const DimOf& dim_of, onnx::GraphProto& graph) {
  Names renamed;
  std::vector<onnx::NodeProto> moves;
  absl::flat_hash_set<std::string> taken;
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    const int dim = dim_of(input);
    if (dim == 0) continue;
    if (taken.empty()) taken = NamesOf(graph);
    std::string name = absl::StrCat(input.name(), ".batch", dim);
    while (!taken.insert(name).second) name += "'";
    MoveToFront(dim, input);
    moves.push_back(MoveBack(input, dim, name));
    renamed.emplace(input.name(), std::move(name));
  }
  if (moves.empty()) return;
  Rename(renamed, *graph.mutable_node());
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (onnx::NodeProto& move : moves) *nodes.Add() = std::move(move);
  nodes.MergeFrom(graph.node());
  graph.mutable_node()->Swap(&nodes);
}

}  // namespace
}  // namespace batch_major_cc

void PutBatchFirst(onnx::GraphProto& graph) {
  batch_major_cc::PutFirst(batch_major_cc::BatchDim, graph);
}

void PutBatchFirst(const BatchDimOfInput& dims, onnx::GraphProto& graph) {
  const auto dim_of = [&](const onnx::ValueInfoProto& input) {
    const auto found = dims.find(input.name());
    return found == dims.end() ? 0 : found->second;
  };
  batch_major_cc::PutFirst(dim_of, graph);
}

std::vector<BatchDimOfInput> OtherBatchDims(const ir::Function& function) {
  std::vector<BatchDimOfInput> all;
  for (const size_t first_dim : {size_t{0}, size_t{1}}) {
    for (const size_t preferred : {first_dim, 1 - first_dim}) {
      BatchDimOfInput dims;
      int64_t batch = 0;  // until the first input has told
      for (const ir::Input& input : function.inputs()) {
        const ir::Dims& sizes = function.type(input.value).dims;
        if (input.role != ir::InputRole::kData || sizes.empty()) continue;
        if (batch == 0 && first_dim >= sizes.size()) return all;
        const bool is_first = std::exchange(batch, batch == 0 ? sizes[first_dim] : batch) == 0;
        const auto has = [&](size_t dim) { return dim < sizes.size() && sizes[dim] == batch; };
        const bool second = is_first ? first_dim == 1 : preferred == 0 ? !has(0) && has(1) : has(1);
        if (second) dims[std::string(function.value_name(input.value))] = 1;
      }
      if (!dims.empty() && std::ranges::find(all, dims) == all.end()) all.push_back(dims);
    }
  }
  return all;
}

}  // namespace orrery::importer
