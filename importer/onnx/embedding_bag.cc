#include "importer/onnx/embedding_bag.h"

#include <algorithm>
#include <cstdint>
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

// The node of that type that makes `value`; null when another does.
const NodeProto* MadeBy(const Makers& makers, const std::string& value, absl::string_view type) {
  const auto found = makers.find(value);
  return found != makers.end() && found->second->op_type() == type ? found->second : nullptr;
}

// `value` before casts.
std::string WithoutCasts(const Makers& makers, std::string value) {
  while (const NodeProto* cast = MadeBy(makers, value, "Cast")) value = cast->input(0);
  return value;
}

// What a Loop over bags does: the rows of `table` that `ids` name, [bags,size], are reduced.
struct Bags {
  std::string table, ids, reduction;
};

// Whether the offsets of bags, which begin with a Range, count in steps as long as dimension 1 of
// `ids`: then all bags are its rows.
bool StepsByRows(const Makers& makers, const std::string& offsets, const std::string& ids) {
  const NodeProto* ends = MadeBy(makers, offsets, "Concat");
  const NodeProto* range = ends != nullptr ? MadeBy(makers, ends->input(0), "Range") : nullptr;
  if (range == nullptr || range->input_size() != 3) return false;
  const NodeProto* size = MadeBy(makers, WithoutCasts(makers, range->input(2)), "Gather");
  const NodeProto* shape = size != nullptr ? MadeBy(makers, size->input(0), "Shape") : nullptr;
  return shape != nullptr && shape->input(0) == ids;
}

const GraphProto* BodyOf(const NodeProto& node) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == "body" && attribute.has_g()) return &attribute.g();
  }
  return nullptr;
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
  const NodeProto* rows = MadeBy(makers, reduction.input(0), "Gather");
  const NodeProto* bag = rows != nullptr ? MadeBy(makers, rows->input(1), "Slice") : nullptr;
  const NodeProto* flat = bag != nullptr ? MadeBy(makers, bag->input(0), "Reshape") : nullptr;
  const NodeProto* first = bag != nullptr && bag->input_size() > 1
                               ? MadeBy(makers, bag->input(1), "Unsqueeze")
                               : nullptr;
  const NodeProto* offset = first != nullptr ? MadeBy(makers, first->input(0), "Gather") : nullptr;
  if (flat == nullptr || offset == nullptr || makers.contains(rows->input(0))) return std::nullopt;
  if (!StepsByRows(makers, offset->input(0), flat->input(0))) return std::nullopt;
  return Bags{.table = rows->input(0), .ids = flat->input(0), .reduction = kind};
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
  if (bags.reduction != "ReduceSum") return AddInts("axes", 1, reduction);
  NodeProto constant;  // an input since opset 13
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
