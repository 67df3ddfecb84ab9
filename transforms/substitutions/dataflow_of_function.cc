#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "ir/op_info.h"
#include "ir/roles.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/pass/equal_ops.h"
#include "transforms/substitutions/dataflow.h"

// Functions as flows, and back.

namespace orrery::transforms::substitutions {
namespace dataflow_of_function_cc {
namespace {

// The work of an op, with the types that it has.
WorkId WorkOf(const ir::Function& function, ir::OpId op, WorkTable& works) {
  absl::InlinedVector<ir::TypeId, 4> operands, results;
  for (const ir::ValueId operand : function.operands(op)) {
    operands.push_back(works.Intern(function.type(operand)));
  }
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    results.push_back(works.Intern(function.type(function.result(op, i))));
  }
  const ir::OpKind kind = function.kind(op);
  const ir::AttributeSet& attributes = function.attributes(op);
  const WorkId work =
      function.info(op).infer != nullptr ? works.Infer(kind, attributes, operands) : WorkId();
  // A type that is not as inferred, such as that of a narrower result, stays as it is.
  if (work.valid() && std::ranges::equal(works[work].results, results)) return work;
  return works.Typed(kind, attributes, operands, results);
}

// A node an op, in their order, without fingerprints and prices.
absl::StatusOr<Dataflow> NodesOf(const ir::Function& function, bool weights_are_fixed,
                                 WorkTable& works) {
  if (function.mesh().size() > 1) {
    return absl::InvalidArgumentError(
        "the function is spread over several ranks; wanted one device: substitute before sharding");
  }
  Dataflow flow;
  IdTable<ir::ValueId, Port> ports(function.value_limit());
  for (const ir::Input& input : function.inputs()) {
    ports[input.value] = {.node = static_cast<int32_t>(flow.nodes.size())};
    flow.nodes.push_back({.work = works.Input(works.Intern(function.type(input.value))),
                          .operands = {},
                          .fixed = weights_are_fixed && ir::IsWeightOrBuffer(input.role),
                          .names = {input.value}});
  }
  flow.inputs = static_cast<int32_t>(flow.nodes.size());
  for (const ir::OpId op : function.order()) {
    const auto here = static_cast<int32_t>(flow.nodes.size());
    Node node = {.work = WorkOf(function, op, works), .operands = {}};
    for (const ir::ValueId operand : function.operands(op)) {
      node.operands.push_back(ports[operand]);
    }
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      const ir::ValueId result = function.result(op, i);
      ports[result] = {.node = here, .result = i};
      node.names.push_back(result);
    }
    if (!IsWhatItReads(function, op)) node.mark = here;
    flow.nodes.push_back(std::move(node));
  }
  for (const ir::Output& output : function.outputs()) flow.outputs.push_back(ports[output.value]);
  return flow;
}

}  // namespace
}  // namespace dataflow_of_function_cc

absl::StatusOr<Dataflow> ToDataflow(const ir::Function& function, bool weights_are_fixed,
                                    WorkTable& works) {
  ORRERY_ASSIGN_OR_RETURN(Dataflow flow,
                          dataflow_of_function_cc::NodesOf(function, weights_are_fixed, works));
  Dataflow clean = *Replace(works, flow, {});
  if (KeepsOutputsApart(flow, clean)) return clean;
  // Two outputs that are one value computed twice stay so.
  for (const Port output : flow.outputs) {
    if (output.node >= flow.inputs) flow.nodes[static_cast<size_t>(output.node)].mark = output.node;
  }
  return *Replace(works, flow, {});
}

absl::StatusOr<Dataflow> OpByOp(const ir::Function& function, bool weights_are_fixed,
                                WorkTable& works) {
  ORRERY_ASSIGN_OR_RETURN(Dataflow flow,
                          dataflow_of_function_cc::NodesOf(function, weights_are_fixed, works));
  for (size_t i = 0; i < flow.nodes.size(); ++i) flow.nodes[i].mark = static_cast<int32_t>(i);
  return *Replace(works, flow, {});
}

ir::Function ToFunction(const WorkTable& works, const Dataflow& flow, const ir::Function& like) {
  ir::Function function(like.name(), like.mesh());
  std::vector<std::vector<ir::ValueId>> values;
  absl::flat_hash_set<absl::string_view> taken;
  for (const ir::Input& input : like.inputs()) {
    taken.insert(like.value_name(input.value));
    values.push_back(
        {function.AddInput(like.value_name(input.value), like.type(input.value), input.role)});
  }
  for (size_t i = values.size(); i < flow.nodes.size(); ++i) {
    const Node& node = flow.nodes[i];
    const Work& work = works[node.work];
    std::vector<ir::ValueId> operands;
    for (const Port port : node.operands) {
      operands.push_back(values[static_cast<size_t>(port.node)][static_cast<size_t>(port.result)]);
    }
    std::vector<ir::TensorType> types;
    std::vector<absl::string_view> names;
    for (size_t r = 0; r < work.results.size(); ++r) {
      types.push_back(works.type(work.results[r]));
      const bool named = r < node.names.size() && node.names[r].valid();
      const absl::string_view name = named ? like.value_name(node.names[r]) : absl::string_view();
      names.push_back(name.empty() || taken.insert(name).second ? name : absl::string_view());
    }
    const ir::OpId op =
        function.AddOp(work.kind, operands,
                       function.InternAttributes(works.attributes(work.attributes)), types, names);
    values.emplace_back();
    for (int32_t r = 0; r < function.result_count(op); ++r) {
      values.back().push_back(function.result(op, r));
    }
  }
  for (size_t i = 0; i < flow.outputs.size(); ++i) {
    ir::Output output = like.outputs()[i];
    const Port port = flow.outputs[i];
    output.value = values[static_cast<size_t>(port.node)][static_cast<size_t>(port.result)];
    if (output.of.valid()) {
      const auto of = std::ranges::find(like.inputs(), output.of, &ir::Input::value);
      ORRERY_CHECK(of != like.inputs().end()) << "output " << i << " belongs to no input";
      output.of = values[static_cast<size_t>(of - like.inputs().begin())][0];
    }
    function.AddOutput(output);
  }
  return function;
}

}  // namespace orrery::transforms::substitutions
