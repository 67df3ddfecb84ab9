#include "tests/fuzz/onnx_mutator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"

namespace orrery::fuzz {
namespace onnx_mutator_cc {
namespace {

void SetRaw(onnx::TensorProto& tensor, size_t position, int64_t value) {
  std::string& raw = *tensor.mutable_raw_data();
  const size_t size = tensor.data_type() == onnx::TensorProto::INT64 ? 8 : 4;
  if ((position + 1) * size > raw.size()) return;
  std::memcpy(raw.data() + position * size, &value, size);
}

template <typename Rows>
void Drop(Rows& rows, size_t i) {
  rows.DeleteSubrange(static_cast<int>(i), 1);
}

}  // namespace
}  // namespace onnx_mutator_cc

int64_t OnnxMutator::AnyNumber() {
  constexpr int64_t kNumbers[] = {0,
                                  1,
                                  2,
                                  3,
                                  7,
                                  16,
                                  -1,
                                  -2,
                                  -7,
                                  1000,
                                  4097,
                                  int64_t{1} << 20,
                                  int64_t{1} << 31,
                                  int64_t{1} << 40,
                                  int64_t{1} << 59,
                                  std::numeric_limits<int32_t>::max(),
                                  std::numeric_limits<int32_t>::min(),
                                  std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::min()};
  return kNumbers[Below(std::size(kNumbers))];
}

std::string OnnxMutator::AnyName(const onnx::GraphProto& graph) {
  std::vector<const std::string*> names;
  for (const onnx::ValueInfoProto& input : graph.input()) names.push_back(&input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) names.push_back(&tensor.name());
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) names.push_back(&output);
  }
  if (names.empty() || OneIn(8)) return OneIn(2) ? "" : absl::StrCat("new", Below(4));
  return *names[Below(names.size())];
}

std::string OnnxMutator::Mutate(const std::string& bytes) {
  onnx::ModelProto model;
  const size_t times = 1 + Below(4);
  if (OneIn(5) || !model.ParseFromString(bytes) || model.graph().node_size() == 0) {
    std::string damaged = bytes;
    for (size_t i = 0; i < times && !damaged.empty(); ++i) MutateBytes(damaged);
    return damaged;
  }
  for (size_t i = 0; i < times; ++i) MutateModel(model);
  return model.SerializeAsString();
}

void OnnxMutator::MutateBytes(std::string& bytes) {
  const size_t at = Below(bytes.size());
  const size_t length = 1 + Below(std::min<size_t>(16, bytes.size() - at));
  switch (Below(5)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
      return;
    case 1:
      bytes.resize(at);
      return;
    case 2:
      bytes.erase(at, length);
      return;
    case 3:
      bytes.insert(Below(bytes.size()), bytes.substr(at, length));
      return;
    default:
      bytes[at] = static_cast<char>(Below(256));
  }
}

void OnnxMutator::MutateModel(onnx::ModelProto& model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  switch (Below(12)) {
    case 0:
      if (model.opset_import_size() > 0) {
        model.mutable_opset_import(0)->set_version(static_cast<int64_t>(Below(23)));
      }
      return;
    case 1:
    case 2:
      if (graph.input_size() == 0) return;
      return MutateType(
          *graph.mutable_input(static_cast<int>(Below(static_cast<size_t>(graph.input_size())))));
    case 3:
      if (graph.output_size() == 0) return;
      return MutateType(
          *graph.mutable_output(static_cast<int>(Below(static_cast<size_t>(graph.output_size())))));
    case 4:
    case 5:
      if (graph.initializer_size() == 0) return;
      return MutateTensor(*graph.mutable_initializer(
          static_cast<int>(Below(static_cast<size_t>(graph.initializer_size())))));
    case 6:
      graph.add_output()->set_name(AnyName(graph));
      return;
    default:
      return MutateNodes(graph);
  }
}

void OnnxMutator::MutateNodes(onnx::GraphProto& graph) {
  if (graph.node_size() == 0) return;
  const auto count = static_cast<size_t>(graph.node_size());
  const size_t i = Below(count);
  switch (Below(8)) {
    case 0:
      return onnx_mutator_cc::Drop(*graph.mutable_node(), i);
    case 1:
      graph.mutable_node()->SwapElements(static_cast<int>(i), static_cast<int>(Below(count)));
      return;
    case 2: {
      onnx::NodeProto copy = graph.node(static_cast<int>(i));
      for (std::string& output : *copy.mutable_output()) output += "_";
      *graph.add_node() = copy;
      return;
    }
    default:
      return MutateNode(*graph.mutable_node(static_cast<int>(i)), graph);
  }
}

void OnnxMutator::MutateNode(onnx::NodeProto& node, const onnx::GraphProto& graph) {
  switch (Below(7)) {
    case 0: {
      const auto ops = importer::OnnxOps();
      const importer::OnnxOp& op = *ops[Below(ops.size())];
      node.set_op_type(std::string(op.type));
      node.set_domain(std::string(op.domain));
      return;
    }
    case 1:
      node.add_input(AnyName(graph));
      return;
    case 2:
      if (node.output_size() > 0) node.set_output(0, AnyName(graph));
      return;
    case 3:
    case 4:
      if (node.input_size() == 0) return;
      node.set_input(static_cast<int>(Below(static_cast<size_t>(node.input_size()))),
                     AnyName(graph));
      return;
    default:
      return MutateAttribute(node);
  }
}

void OnnxMutator::MutateAttribute(onnx::NodeProto& node) {
  constexpr const char* kNames[] = {"axis",      "axes",    "keepdims", "perm",  "shape",
                                    "to",        "split",   "pads",     "group", "strides",
                                    "allowzero", "epsilon", "k",        "mode",  "num_outputs"};
  if (node.attribute_size() == 0 || OneIn(6)) {
    onnx::AttributeProto* attribute = node.add_attribute();
    attribute->set_name(kNames[Below(std::size(kNames))]);
    attribute->set_type(OneIn(2) ? onnx::AttributeProto::INT : onnx::AttributeProto::INTS);
    attribute->set_i(AnyNumber());
    for (size_t n = Below(5); n > 0; --n) attribute->add_ints(AnyNumber());
    return;
  }
  const size_t i = Below(static_cast<size_t>(node.attribute_size()));
  if (OneIn(6)) return onnx_mutator_cc::Drop(*node.mutable_attribute(), i);
  MutateValue(*node.mutable_attribute(static_cast<int>(i)));
}

void OnnxMutator::MutateValue(onnx::AttributeProto& attribute) {
  if (OneIn(10)) {
    attribute.set_type(static_cast<onnx::AttributeProto_AttributeType>(Below(12)));
    return;
  }
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return attribute.set_i(AnyNumber());
    case onnx::AttributeProto::FLOAT: {
      constexpr float kNumbers[] = {0.0F, -1.0F, 1e30F, -1e-30F, NAN, INFINITY};
      return attribute.set_f(kNumbers[Below(std::size(kNumbers))]);
    }
    case onnx::AttributeProto::STRING:
      return attribute.set_s(OneIn(2) ? "" : "\n\xff");
    case onnx::AttributeProto::TENSOR:
      return MutateTensor(*attribute.mutable_t());
    case onnx::AttributeProto::INTS:
      if (attribute.ints_size() == 0 || OneIn(3)) return attribute.add_ints(AnyNumber());
      if (OneIn(3)) return attribute.mutable_ints()->RemoveLast();
      return attribute.set_ints(static_cast<int>(Below(static_cast<size_t>(attribute.ints_size()))),
                                AnyNumber());
    default:
      return;
  }
}

void OnnxMutator::MutateType(onnx::ValueInfoProto& value) {
  auto& tensor = *value.mutable_type()->mutable_tensor_type();
  if (OneIn(3)) return tensor.set_elem_type(static_cast<int32_t>(Below(18)));
  auto& shape = *tensor.mutable_shape();
  if (shape.dim_size() == 0 || OneIn(6)) return shape.add_dim()->set_dim_value(AnyNumber());
  if (OneIn(8)) return shape.mutable_dim()->RemoveLast();
  auto& dim = *shape.mutable_dim(static_cast<int>(Below(static_cast<size_t>(shape.dim_size()))));
  OneIn(4) ? dim.set_dim_param("n") : dim.set_dim_value(AnyNumber());
}

void OnnxMutator::MutateTensor(onnx::TensorProto& tensor) {
  switch (Below(5)) {
    case 0:
      return tensor.set_data_type(static_cast<int32_t>(Below(18)));
    case 1:
      if (tensor.dims_size() == 0 || OneIn(4)) return tensor.add_dims(AnyNumber());
      return tensor.set_dims(static_cast<int>(Below(static_cast<size_t>(tensor.dims_size()))),
                             AnyNumber());
    case 2:
      if (tensor.dims_size() > 0) tensor.mutable_dims()->RemoveLast();
      return;
    case 3:
      if (tensor.int64_data_size() > 0) {
        return tensor.set_int64_data(
            static_cast<int>(Below(static_cast<size_t>(tensor.int64_data_size()))), AnyNumber());
      }
      if (tensor.has_raw_data()) onnx_mutator_cc::SetRaw(tensor, Below(4), AnyNumber());
      return;
    default:
      if (tensor.float_data_size() > 0) tensor.set_float_data(0, NAN);
      if (tensor.has_raw_data()) onnx_mutator_cc::SetRaw(tensor, 0, AnyNumber());
  }
}

}  // namespace orrery::fuzz
