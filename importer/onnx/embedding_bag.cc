#include "importer/onnx/embedding_bag.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace orrery::importer {
namespace embedding_bag_cc {
namespace {

using onnx::GraphProto;
using onnx::NodeProto;
using Makers = absl::flat_hash_map<std::string, const NodeProto*>;

void AddMakers(const GraphProto& graph, Makers& makers) {
  for (const NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) makers[output] = &node;
  }
}

// An input of a node; "" where it has not so many. Nobody has checked the graph yet.
std::string InputOf(const NodeProto& node, int i) {
  return i < node.input_size() ? node.input(i) : std::string();
}

// The node of that type that makes `value`; null when another does.
const NodeProto* MadeBy(const Makers& makers, const std::string& value, absl::string_view type) {
  const auto found = makers.find(value);
  return found != makers.end() && found->second->op_type() == type ? found->second : nullptr;
}

// The node of that type that makes input i of `node`; null when another does, or there is no node.
const NodeProto* Behind(const Makers& makers, const NodeProto* node, int i,
                        absl::string_view type) {
  return node == nullptr ? nullptr : MadeBy(makers, InputOf(*node, i), type);
}

const onnx::AttributeProto* FindAttribute(const NodeProto& node, absl::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

// What a Loop over bags does: the rows of `table` that `ids` name, [bags,size], are reduced.
struct Bags {
  std::string table, ids, reduction;
  bool axes_are_input = false;
};

// Whether `value` is a Constant that holds this one number.
bool IsNumber(const Makers& makers, const std::string& value, int64_t number) {
  const NodeProto* constant = MadeBy(makers, value, "Constant");
  const onnx::AttributeProto* held =
      constant != nullptr ? FindAttribute(*constant, "value") : nullptr;
  if (held == nullptr || !held->has_t()) return false;
  const onnx::TensorProto& tensor = held->t();
  if (tensor.data_type() != onnx::TensorProto::INT64) return false;
  if (tensor.int64_data_size() > 0) {
    return tensor.int64_data_size() == 1 && tensor.int64_data(0) == number;
  }
  int64_t found = 0;
  if (tensor.raw_data().size() != sizeof found) return false;
  std::memcpy(&found, tensor.raw_data().data(), sizeof found);
  return found == number;
}

// Whether the offsets of bags, which begin with a Range from 0, count in steps as long as dimension
// 1 of `ids`: then all bags are its rows.
bool StepsByRows(const Makers& makers, const std::string& offsets, const std::string& ids) {
  const NodeProto* range = Behind(makers, MadeBy(makers, offsets, "Concat"), 0, "Range");
  if (range == nullptr) return false;
  const auto plain = [&](int i) {  // before the cast that PyTorch puts there
    const NodeProto* cast = Behind(makers, range, i, "Cast");
    return cast != nullptr ? InputOf(*cast, 0) : InputOf(*range, i);
  };
  const NodeProto* size = MadeBy(makers, plain(2), "Gather");
  const NodeProto* shape = Behind(makers, size, 0, "Shape");
  return shape != nullptr && InputOf(*shape, 0) == ids && IsNumber(makers, plain(0), 0) &&
         IsNumber(makers, InputOf(*size, 1), 1);
}

const GraphProto* BodyOf(const NodeProto& node) {
  const onnx::AttributeProto* body = FindAttribute(node, "body");
  return body != nullptr && body->has_g() ? &body->g() : nullptr;
}

// Whether rows, the first dimension, are reduced and vanish.
bool ReducesRows(const Makers& makers, const NodeProto& reduction) {
  const onnx::AttributeProto* keeps = FindAttribute(reduction, "keepdims");
  if (keeps == nullptr || keeps->i() != 0) return false;
  if (reduction.input_size() > 1) return IsNumber(makers, reduction.input(1), 0);
  const onnx::AttributeProto* axes = FindAttribute(reduction, "axes");
  return axes != nullptr && axes->ints_size() == 1 && axes->ints(0) == 0;
}

// One result of each turn, and no state but the condition.
std::optional<Bags> MatchBags(const NodeProto& loop, const Makers& outside) {
  const GraphProto* body = BodyOf(loop);
  if (body == nullptr || body->input_size() != 2 || body->output_size() != 2) return std::nullopt;
  Makers makers = outside;
  AddMakers(*body, makers);
  const auto last = makers.find(body->output(1).name());
  if (last == makers.end()) return std::nullopt;
  const NodeProto& reduction = *last->second;
  const std::string& kind = reduction.op_type();
  if (kind != "ReduceSum" && kind != "ReduceMean" && kind != "ReduceMax") return std::nullopt;
  if (!ReducesRows(makers, reduction)) return std::nullopt;
  const NodeProto* rows = Behind(makers, &reduction, 0, "Gather");
  const NodeProto* bag = Behind(makers, rows, 1, "Slice");
  const NodeProto* flat = Behind(makers, bag, 0, "Reshape");
  const NodeProto* offset = Behind(makers, Behind(makers, bag, 1, "Unsqueeze"), 0, "Gather");
  if (flat == nullptr || offset == nullptr || makers.contains(InputOf(*rows, 0))) {
    return std::nullopt;
  }
  const std::string ids = InputOf(*flat, 0);
  if (!StepsByRows(makers, InputOf(*offset, 0), ids)) return std::nullopt;
  return Bags{.table = InputOf(*rows, 0),
              .ids = ids,
              .reduction = kind,
              .axes_are_input = reduction.input_size() > 1};
}

void AddInts(absl::string_view name, int64_t value, NodeProto& node) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(onnx::AttributeProto::INTS);
  attribute.add_ints(value);
}

void AddInt(absl::string_view name, int64_t value, NodeProto& node) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

// All bags at once.
void Append(const NodeProto& loop, const Bags& bags,
            google::protobuf::RepeatedPtrField<NodeProto>& nodes) {
  const std::string& result = loop.output(0);
  NodeProto& rows = *nodes.Add();
  rows.set_op_type("Gather");
  rows.set_name(absl::StrCat(loop.name(), "/rows"));
  rows.add_input(bags.table);
  rows.add_input(bags.ids);
  rows.add_output(absl::StrCat(result, ".rows"));
  AddInt("axis", 0, rows);
  const std::string axes = absl::StrCat(result, ".axes");
  NodeProto& reduction = *nodes.Add();
  reduction.set_op_type(bags.reduction);
  reduction.set_name(loop.name());
  reduction.add_input(rows.output(0));
  reduction.add_output(result);
  AddInt("keepdims", 0, reduction);
  if (!bags.axes_are_input) return AddInts("axes", 1, reduction);
  NodeProto constant;
  constant.set_op_type("Constant");
  constant.add_output(axes);
  AddInts("value_ints", 1, constant);
  reduction.add_input(axes);
  *nodes.Add() = constant;
  nodes.SwapElements(nodes.size() - 1, nodes.size() - 2);
}

}  // namespace
}  // namespace embedding_bag_cc

void CollapseEmbeddingBags(onnx::GraphProto& graph) {
  const auto is_loop = [](const onnx::NodeProto& node) {
    return node.op_type() == "Loop" && node.output_size() == 1;
  };
  if (std::none_of(graph.node().begin(), graph.node().end(), is_loop)) return;
  embedding_bag_cc::Makers makers;
  embedding_bag_cc::AddMakers(graph, makers);
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (const onnx::NodeProto& node : graph.node()) {
    const std::optional<embedding_bag_cc::Bags> bags =
        is_loop(node) ? embedding_bag_cc::MatchBags(node, makers) : std::nullopt;
    if (bags.has_value()) {
      embedding_bag_cc::Append(node, *bags, nodes);
    } else {
      *nodes.Add() = node;
    }
  }
  graph.mutable_node()->Swap(&nodes);
}

}  // namespace orrery::importer
