#include "importer/onnx/embedding_bag.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// The value whose element `turn` of the Loop is unsqueezed for input i of `slice`; "" for others.
std::string ElementsOf(const Makers& makers, const NodeProto* slice, int i,
                       const std::string& turn) {
  const NodeProto* element = Behind(makers, Behind(makers, slice, i, "Unsqueeze"), 0, "Gather");
  const bool one_each = element != nullptr && InputOf(*element, 1) == turn;
  return one_each ? InputOf(*element, 0) : std::string();
}

// What weighs the rows of `bag` before they are summed, input 1 of `product`: as much of it, as a
// column. "" for anything else.
std::string WeightsOf(const Makers& makers, const NodeProto& product, const NodeProto& bag) {
  const NodeProto* column = Behind(makers, &product, 1, "Unsqueeze");
  const NodeProto* part = Behind(makers, column, 0, "Slice");
  const bool as_bag = part != nullptr && InputOf(*part, 1) == InputOf(bag, 1) &&
                      InputOf(*part, 2) == InputOf(bag, 2);
  return as_bag && IsNumber(makers, InputOf(*column, 1), 1) ? InputOf(*part, 0) : std::string();
}

void AddInts(absl::string_view name, const std::vector<int64_t>& values, NodeProto& node) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

void AddInt(absl::string_view name, int64_t value, NodeProto& node) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

// One result of each turn, and no state but the condition.
std::optional<BagLoop> Match(const NodeProto& loop, const GraphProto& graph) {
  const GraphProto* body = BodyOf(loop);
  if (loop.op_type() != "Loop" || loop.output_size() != 1 || body == nullptr ||
      body->input_size() != 2 || body->output_size() != 2) {
    return std::nullopt;
  }
  Makers makers;
  AddMakers(graph, makers);
  AddMakers(*body, makers);
  const auto last = makers.find(body->output(1).name());
  if (last == makers.end()) return std::nullopt;
  const NodeProto& reduction = *last->second;
  const std::string& kind = reduction.op_type();
  if (kind != "ReduceSum" && kind != "ReduceMean" && kind != "ReduceMax") return std::nullopt;
  if (!ReducesRows(makers, reduction)) return std::nullopt;
  const NodeProto* product = Behind(makers, &reduction, 0, "Mul");
  const NodeProto* rows = Behind(makers, product != nullptr ? product : &reduction, 0, "Gather");
  const NodeProto* bag = Behind(makers, rows, 1, "Slice");
  if (bag == nullptr || makers.contains(InputOf(*rows, 0))) return std::nullopt;
  const std::string& turn = body->input(0).name();
  BagLoop bags = {.table = InputOf(*rows, 0),
                  .ids = InputOf(*bag, 0),
                  .weights = product != nullptr ? WeightsOf(makers, *product, *bag) : "",
                  .starts = ElementsOf(makers, bag, 1, turn),
                  .ends = ElementsOf(makers, bag, 2, turn),
                  .reduction = kind,
                  .axes_are_input = reduction.input_size() > 1};
  const bool weighs = product == nullptr || (!bags.weights.empty() && kind == "ReduceSum");
  if (!weighs || bags.starts.empty() || bags.ends.empty()) return std::nullopt;
  return bags;
}

using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;

NodeProto& Append(absl::string_view type, const std::vector<std::string>& inputs,
                  const std::string& output, Nodes& nodes) {
  NodeProto& node = *nodes.Add();
  node.set_op_type(std::string(type));
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

// What holds these numbers.
std::string AppendInts(const std::string& name, const std::vector<int64_t>& numbers, Nodes& nodes) {
  AddInts("value_ints", numbers, Append("Constant", {}, name, nodes));
  return name;
}

// All bags at once: `ids` and `weights` are [bags,size].
void AppendBags(const NodeProto& loop, const BagLoop& bags, Nodes& nodes) {
  const std::string& result = loop.output(0);
  std::string rows = absl::StrCat(result, ".rows");
  NodeProto& gather = Append("Gather", {bags.table, bags.ids}, rows, nodes);
  gather.set_name(absl::StrCat(loop.name(), "/rows"));
  AddInt("axis", 0, gather);
  if (!bags.weights.empty()) {
    const std::string column = absl::StrCat(result, ".column"),
                      weighed = absl::StrCat(result, ".weighed");
    const std::string last = AppendInts(absl::StrCat(result, ".last"), {2}, nodes);
    Append("Unsqueeze", {bags.weights, last}, column, nodes);
    Append("Mul", {std::exchange(rows, weighed), column}, weighed, nodes);
  }
  std::vector<std::string> inputs = {rows};
  if (bags.axes_are_input) inputs.push_back(AppendInts(absl::StrCat(result, ".axes"), {1}, nodes));
  NodeProto& reduction = Append(bags.reduction, inputs, result, nodes);
  reduction.set_name(loop.name());
  AddInt("keepdims", 0, reduction);
  if (!bags.axes_are_input) AddInts("axes", {1}, reduction);
}

// With what is [bags,size] before it is flattened; nothing where bags are not its rows.
std::optional<BagLoop> OfRows(BagLoop bags, const Makers& makers) {
  const NodeProto* flat = MadeBy(makers, bags.ids, "Reshape");
  if (flat == nullptr || !StepsByRows(makers, bags.starts, InputOf(*flat, 0))) return std::nullopt;
  bags.ids = InputOf(*flat, 0);
  if (bags.weights.empty()) return bags;
  const NodeProto* flat_weights = MadeBy(makers, bags.weights, "Reshape");
  if (flat_weights == nullptr) return std::nullopt;
  bags.weights = InputOf(*flat_weights, 0);
  return bags;
}

}  // namespace
}  // namespace embedding_bag_cc

std::optional<BagLoop> MatchBagLoop(const onnx::NodeProto& loop, const onnx::GraphProto& graph) {
  return embedding_bag_cc::Match(loop, graph);
}

onnx::GraphProto BagsAtOnce(const onnx::NodeProto& loop, BagLoop bags, int64_t count,
                            int64_t size) {
  using embedding_bag_cc::Append;
  onnx::GraphProto graph;
  auto& nodes = *graph.mutable_node();
  const std::string& result = loop.output(0);
  const std::string shape =
      embedding_bag_cc::AppendInts(absl::StrCat(result, ".shape"), {count, size}, nodes);
  for (std::string* flat : {&bags.ids, &bags.weights}) {
    if (flat->empty()) continue;
    std::string name = absl::StrCat(result, flat == &bags.ids ? ".ids" : ".weights");
    Append("Reshape", {*flat, shape}, name, nodes);
    *flat = std::move(name);
  }
  embedding_bag_cc::AppendBags(loop, bags, nodes);
  return graph;
}

void CollapseEmbeddingBags(onnx::GraphProto& graph) {
  const auto is_loop = [](const onnx::NodeProto& node) { return node.op_type() == "Loop"; };
  if (std::none_of(graph.node().begin(), graph.node().end(), is_loop)) return;
  embedding_bag_cc::Makers makers;
  embedding_bag_cc::AddMakers(graph, makers);
  embedding_bag_cc::Nodes nodes;
  for (const onnx::NodeProto& node : graph.node()) {
    std::optional<BagLoop> bags = is_loop(node) ? MatchBagLoop(node, graph) : std::nullopt;
    if (bags.has_value()) bags = embedding_bag_cc::OfRows(*std::move(bags), makers);
    if (bags.has_value()) {
      embedding_bag_cc::AppendBags(node, *bags, nodes);
    } else {
      *nodes.Add() = node;
    }
  }
  graph.mutable_node()->Swap(&nodes);
}

}  // namespace orrery::importer
