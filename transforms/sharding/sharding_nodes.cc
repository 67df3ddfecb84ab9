#include "transforms/sharding/sharding_nodes.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ir/op_info.h"
#include "ir/optimizer_operands.h"

namespace orrery::transforms {

using ir::OpId;
using ir::TensorType;
using ir::ValueId;

ShardingNodes::ShardingNodes(const AxisProblem& problem, OpStrategies& strategies,
                             const IdTable<OpId, StepPhase>& phase)
    : problem_(problem),
      node_of_(problem.function.value_limit(), -1),
      position_(problem.function.value_limit(), 0),
      node_of_op_(problem.function.op_limit(), -1) {
  const ir::Function& function = problem.function;
  const auto is_optimizer = [&](OpId op) {
    return function.info(op).op_class == ir::OpClass::kOptimizer;
  };
  for (const OpId op : function.order()) {
    if (is_optimizer(op)) AddOptimizer(op);
  }
  AddInputs();
  for (size_t node = 0; node < nodes_.size(); ++node) AddGroupStrategies(node);
  for (const OpId op : function.order()) {
    if (is_optimizer(op)) {
      AddGroupSeconds(op);
    } else {
      AddOp(op, strategies.Of(op));
      nodes_.back().once_a_step = phase[op] == StepPhase::kUpdate;
    }
  }
  AddOutputs();
}

size_t ShardingNodes::AddNode(std::string name, bool is_group) {
  nodes_.push_back({.name = std::move(name),
                    .strategies = nullptr,
                    .values = {},
                    .is_group = is_group,
                    .once_a_step = is_group});
  return nodes_.size() - 1;
}

void ShardingNodes::AddValue(size_t node, ValueId value) {
  node_of_[value] = static_cast<int32_t>(node);
  const size_t position = nodes_[node].is_group ? ShapeIn(node, problem_.function.type(value).dims)
                                                : nodes_[node].values.size();
  position_[value] = static_cast<int8_t>(position);
  nodes_[node].values.push_back(value);
}

// The number of a shape in a group, which has it from now on.
size_t ShardingNodes::ShapeIn(size_t node, const ir::Dims& dims) {
  if (shapes_.size() <= node) shapes_.resize(node + 1);
  std::vector<ir::Dims>& shapes = shapes_[node];
  const auto found = std::ranges::find(shapes, dims);
  if (found != shapes.end()) return static_cast<size_t>(found - shapes.begin());
  shapes.push_back(dims);
  return shapes.size() - 1;
}

// How a shape of the group is split where the parameter is in `layout`.
AxisLayout ShardingNodes::LayoutIn(size_t node, size_t shape, AxisLayout layout) const {
  const std::vector<ir::Dims>& shapes = shapes_[node];
  const bool lacks =
      layout >= 0 && !ir::HasDimension(shapes[0], shapes[shape], static_cast<size_t>(layout));
  return lacks ? kWholeLayout : layout;
}

// What an optimizer brings together is sharded alike: inputs that are its operands, and its
// results.
void ShardingNodes::AddOptimizer(OpId op) {
  const ir::Function& function = problem_.function;
  const ir::OptimizerOperands operands(function, op);
  const size_t first = nodes_.size();
  for (const ValueId parameter : operands.parameters()) {
    ShapeIn(AddNode(ir::PrintValue(function, parameter), true), function.type(parameter).dims);
  }
  for (size_t i = 0; i < operands.all().size(); ++i) {
    const ValueId operand = operands.all()[i];
    const size_t node = first + operands.ParameterOf(i);
    const bool takes = !function.producer(operand).valid() && node_of_[operand] < 0;
    if (takes && i < operands.first_gradient()) {
      AddValue(node, operand);
    } else {
      uses_.push_back({.value = operand,
                       .node = static_cast<int32_t>(node),
                       .operand = -1,
                       .position = ShapeIn(node, function.type(operand).dims)});
    }
  }
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    AddValue(first + operands.ParameterOf(static_cast<size_t>(i)), function.result(op, i));
  }
  node_of_op_[op] = static_cast<int32_t>(first);
}

void ShardingNodes::AddInputs() {
  for (const ir::Input& input : problem_.function.inputs()) {
    if (node_of_[input.value] >= 0) continue;
    AddValue(AddNode(ir::PrintValue(problem_.function, input.value), true), input.value);
  }
}

void ShardingNodes::AddGroupStrategies(size_t node) {
  const auto& values = nodes_[node].values;
  std::vector<OpStrategy>& strategies = of_groups_.emplace_back();
  const auto add = [&](AxisLayout layout) {
    OpStrategy& strategy = strategies.emplace_back();
    for (size_t shape = 0; shape < shapes_[node].size(); ++shape) {
      strategy.results.push_back(LayoutIn(node, shape, layout));
    }
  };
  add(kWholeLayout);
  for (size_t d = 0; d < shapes_[node][0].size(); ++d) {
    const auto can = [&](ValueId value) {
      const ir::TensorType& type = problem_.function.type(value);
      return !ir::HasDimension(shapes_[node][0], type.dims, d) || CanSplit(type, d, problem_);
    };
    if (std::ranges::all_of(values, can)) add(static_cast<AxisLayout>(d));
  }
  nodes_[node].strategies = &strategies;
}

// What the optimizer takes for the parameter of each of its groups, as if it were alone.
void ShardingNodes::AddGroupSeconds(OpId op) {
  const ir::Function& function = problem_.function;
  const ir::OptimizerOperands operands(function, op);
  ir::AttributeSet attributes = function.attributes(op);
  attributes.Set(ir::kParameterCount, int64_t{1});
  for (size_t i = 0; i < operands.count(); ++i) {
    const size_t group = static_cast<size_t>(node_of_op_[op]) + i;
    for (OpStrategy& strategy : of_groups_[group]) {
      std::vector<TensorType> types;
      for (size_t k = 0; k < operands.groups(); ++k) {
        const TensorType& type = function.type(operands.all()[operands.Position(k, i)]);
        types.push_back(InLayout(type, strategy.results[ShapeIn(group, type.dims)], problem_.axis));
      }
      std::vector<const TensorType*> positions;
      for (const TensorType& type : types) positions.push_back(&type);
      const std::span<const TensorType* const> all = positions;
      strategy.seconds = SecondsOf({.kind = function.kind(op),
                                    .attributes = attributes,
                                    .operands = all,
                                    .results = all.first(all.size() - 1)},
                                   problem_.mesh, problem_.prices);
    }
  }
}

void ShardingNodes::AddOp(OpId op, const std::vector<OpStrategy>& strategies) {
  const ir::Function& function = problem_.function;
  const std::string name(function.result_count(op) == 0 ? function.info(op).name
                                                        : function.value_name(function.result(op)));
  const size_t node = AddNode(name, false);
  node_of_op_[op] = static_cast<int32_t>(node);
  nodes_[node].strategies = &strategies;
  for (int32_t i = 0; i < function.result_count(op); ++i) AddValue(node, function.result(op, i));
  for (size_t i = 0; i < function.operands(op).size(); ++i) uses_.push_back(UseOf(op, i));
}

// A gradient or an update is as the input is that it belongs to.
void ShardingNodes::AddOutputs() {
  for (const ir::Output& output : problem_.function.outputs()) {
    if (!output.of.valid() || node_of_[output.value] == node_of_[output.of]) continue;
    uses_.push_back({.value = output.value,
                     .node = node_of_[output.of],
                     .operand = -1,
                     .position = PositionOf(output.of)});
  }
}

ShardingUse ShardingNodes::UseOf(OpId op, size_t i) const {
  const ir::Function& function = problem_.function;
  const ValueId value = function.operands(op)[i];
  if (function.info(op).op_class != ir::OpClass::kOptimizer) {
    return {.value = value, .node = node_of_op_[op], .operand = static_cast<int>(i)};
  }
  const size_t parameter = ir::OptimizerOperands(function, op).ParameterOf(i);
  const int32_t node = node_of_op_[op] + static_cast<int32_t>(parameter);
  const auto& shapes = shapes_[static_cast<size_t>(node)];
  const auto shape = std::ranges::find(shapes, function.type(value).dims);
  ORRERY_CHECK(shape != shapes.end()) << "of a group, and of none of its shapes";
  return {.value = value,
          .node = node,
          .operand = -1,
          .position = static_cast<size_t>(shape - shapes.begin())};
}

}  // namespace orrery::transforms
