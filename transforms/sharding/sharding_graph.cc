#include "transforms/sharding/sharding_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"

namespace orrery::transforms {

using ir::Function;
using ir::OpId;
using ir::TensorType;
using ir::ValueId;

ShardingGraph::ShardingGraph(const Function& function, const ir::Mesh& mesh, ir::AxisIndex axis,
                             const ShardingPrices& prices, OpStrategies& strategies,
                             LayoutWays& ways, PinnedLayouts pins, const AutoShardOptions& options)
    : function_(function),
      mesh_(mesh),
      axis_(axis),
      prices_(prices),
      strategies_(strategies),
      ways_(ways),
      pins_(std::move(pins)),
      weights_stay_(options.sequence_parallel && mesh.axes()[axis].name == "hp"),
      update_share_(1 / static_cast<double>(options.microbatches)),
      in_flight_(static_cast<double>(options.in_flight)),
      node_of_(function.value_limit(), -1),
      position_(function.value_limit(), 0),
      use_count_(function.value_limit(), 0),
      kept_(function.value_limit(), 0),
      summed_(function.value_limit(), 0),
      held_(function.value_limit(), options.held.gradients),
      samples_(function.value_limit(), 0),
      node_of_op_(function.op_limit(), -1) {
  for (const ir::Input& input : function.inputs()) {
    const bool state = input.role == ir::InputRole::kState;
    const bool parameter = input.role == ir::InputRole::kParameter;
    held_[input.value] = state ? options.held.states : parameter ? options.held.parameters : 1;
  }
}

absl::Status ShardingGraph::Build() {
  const auto is_optimizer = [&](OpId op) {
    return function_.info(op).op_class == ir::OpClass::kOptimizer;
  };
  for (const OpId op : function_.order()) {
    if (is_optimizer(op)) AddOptimizer(op);
  }
  AddInputs();
  for (size_t node = 0; node < nodes_.size(); ++node) AddGroupStrategies(node);
  const IdTable<OpId, StepPhase> phase = FindPhases(function_);
  for (const OpId op : function_.order()) {
    if (is_optimizer(op)) {
      AddGroupSeconds(op);
    } else {
      AddOp(op);
      if (phase[op] == StepPhase::kUpdate) nodes_.back().share = update_share_;
    }
  }
  AddOutputs();
  FindSamples();
  FindKept(phase);
  FindSummed(phase);
  for (const Use& use : uses_) ++use_count_[use.value];
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].is_group) {
      if (absl::Status status = PinGroup(node); !status.ok()) return status;
    }
    MakeChoices(node);
    if (absl::Status status = MakeCosts(node); !status.ok()) return status;
    MakeMemory(node);
  }
  for (const Use& use : uses_) MakeEdge(use);
  return absl::OkStatus();
}

size_t ShardingGraph::AddNode(std::string name, bool is_group) {
  nodes_.push_back({.name = std::move(name),
                    .strategies = nullptr,
                    .choices = {},
                    .values = {},
                    .is_group = is_group,
                    .share = is_group ? update_share_ : 1});
  return nodes_.size() - 1;
}

void ShardingGraph::AddValue(size_t node, ValueId value) {
  node_of_[value] = static_cast<int32_t>(node);
  if (!nodes_[node].is_group) position_[value] = static_cast<int8_t>(nodes_[node].values.size());
  nodes_[node].values.push_back(value);
}

// What an optimizer brings together is sharded alike: inputs that are its operands, and its
// results.
void ShardingGraph::AddOptimizer(OpId op) {
  const ir::OptimizerOperands operands(function_, op);
  const size_t first = nodes_.size();
  for (const ValueId parameter : operands.parameters()) {
    AddNode(ir::PrintValue(function_, parameter), true);
  }
  for (size_t i = 0; i < operands.all().size(); ++i) {
    const ValueId operand = operands.all()[i];
    const size_t node = first + operands.ParameterOf(i);
    const bool takes = !function_.producer(operand).valid() && node_of_[operand] < 0;
    if (takes && i < operands.first_gradient()) {
      AddValue(node, operand);
    } else {
      uses_.push_back({.value = operand, .node = static_cast<int32_t>(node), .operand = -1});
    }
  }
  for (int32_t i = 0; i < function_.result_count(op); ++i) {
    AddValue(first + operands.ParameterOf(static_cast<size_t>(i)), function_.result(op, i));
  }
  node_of_op_[op] = static_cast<int32_t>(first);
}

void ShardingGraph::AddInputs() {
  for (const ir::Input& input : function_.inputs()) {
    if (node_of_[input.value] >= 0) continue;
    AddValue(AddNode(ir::PrintValue(function_, input.value), true), input.value);
  }
}

void ShardingGraph::AddGroupStrategies(size_t node) {
  const auto& values = nodes_[node].values;
  std::vector<OpStrategy>& strategies = of_groups_.emplace_back();
  strategies.push_back({.operands = {}, .results = {kWholeLayout}});
  for (size_t d = 0; d < function_.type(values[0]).dims.size(); ++d) {
    const auto can = [&](ValueId value) {
      return CanSplit(function_.type(value), d, axis_, mesh_);
    };
    if (!std::ranges::all_of(values, can)) continue;
    strategies.push_back({.operands = {}, .results = {static_cast<AxisLayout>(d)}});
  }
  nodes_[node].strategies = &strategies;
}

// What the optimizer takes for the parameter of each of its groups, as if it were alone.
void ShardingGraph::AddGroupSeconds(OpId op) {
  const ir::OptimizerOperands operands(function_, op);
  ir::AttributeSet attributes = function_.attributes(op);
  attributes.Set(ir::kParameterCount, int64_t{1});
  for (size_t i = 0; i < operands.count(); ++i) {
    const size_t group = static_cast<size_t>(node_of_op_[op]) + i;
    for (OpStrategy& strategy : of_groups_[group]) {
      std::vector<TensorType> types;
      for (size_t k = 0; k < operands.groups(); ++k) {
        const ValueId operand = operands.all()[operands.Position(k, i)];
        types.push_back(InLayout(function_.type(operand), strategy.results[0], axis_));
      }
      std::vector<const TensorType*> positions;
      for (const TensorType& type : types) positions.push_back(&type);
      const std::span<const TensorType* const> all = positions;
      strategy.seconds =
          SecondsOf(function_.kind(op), attributes, all, all.first(all.size() - 1), mesh_, prices_);
    }
  }
}

void ShardingGraph::AddOp(OpId op) {
  const std::string name(function_.result_count(op) == 0
                             ? function_.info(op).name
                             : function_.value_name(function_.result(op)));
  const size_t node = AddNode(name, false);
  node_of_op_[op] = static_cast<int32_t>(node);
  nodes_[node].strategies = &strategies_.Of(op);
  for (int32_t i = 0; i < function_.result_count(op); ++i) AddValue(node, function_.result(op, i));
  const auto operands = function_.operands(op);
  for (size_t i = 0; i < operands.size(); ++i) {
    uses_.push_back(
        {.value = operands[i], .node = static_cast<int32_t>(node), .operand = static_cast<int>(i)});
  }
}

// A gradient or an update is as the input is that it belongs to.
void ShardingGraph::AddOutputs() {
  for (const ir::Output& output : function_.outputs()) {
    if (!output.of.valid() || node_of_[output.value] == node_of_[output.of]) continue;
    uses_.push_back({.value = output.value, .node = node_of_[output.of], .operand = -1});
  }
}

// Keeps of the layouts of a group those that all pins of its values allow.
absl::Status ShardingGraph::PinGroup(size_t node) {
  std::vector<OpStrategy>& strategies = of_groups_[node];
  for (const ValueId value : nodes_[node].values) {
    const AxisLayout pin = pins_[value];
    if (pin == kNoLayout || pin == kReducedLayout) continue;
    std::erase_if(strategies, [&](const OpStrategy& s) { return s.results[0] != pin; });
    if (!strategies.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the pin of ", ir::PrintValue(function_, value),
        " cannot be kept: ", ir::PrintValue(function_, nodes_[node].values[0]),
        " and what an optimizer keeps for it are sharded alike, and are pinned otherwise; try to "
        "pin the parameter alone"));
  }
  return absl::OkStatus();
}

// Context parallelism shares sequences, whatever a replica of whole samples would cost: those are
// what dp is for. All that comes from data has samples in dimension 0.
void ShardingGraph::FindSamples() {
  if (mesh_.axes()[axis_].name != "cp") return;
  for (const ir::Input& input : function_.inputs()) {
    samples_[input.value] = input.role == ir::InputRole::kData ? 1 : 0;
  }
  for (const OpId op : function_.order()) {
    if (function_.info(op).op_class == ir::OpClass::kOptimizer) continue;
    const auto operands = function_.operands(op);
    const bool any =
        std::ranges::any_of(operands, [&](ValueId operand) { return samples_[operand] != 0; });
    for (int32_t i = 0; any && i < function_.result_count(op); ++i) {
      samples_[function_.result(op, i)] = 1;
    }
  }
}

absl::Status ShardingGraph::MakeCosts(size_t number) {
  const Node& node = nodes_[number];
  strategies::StrategyNode row;
  row.name = node.name;
  for (const Choice& choice : node.choices) {
    double moves = 0;
    for (const ValueId value : node.values) {
      const AxisLayout left = LeftBy(value, choice), given = GivenBy(value, choice);
      if (left != given) moves += ways_.Find(value, left, given).seconds;
      const AxisLayout extra = ExtraBy(value, choice);
      if (extra != kNoLayout) moves += ways_.Find(value, given, extra).seconds;
      if (summed_[value] != 0 && update_share_ < 1) moves += SumSeconds(value, given);
    }
    // Inputs are updated once, but moved for each microbatch.
    const double seconds = (*node.strategies)[static_cast<size_t>(choice.strategy)].seconds;
    row.cost.push_back(seconds * node.share + moves * (node.is_group ? 1 : node.share));
  }
  const bool possible =
      std::ranges::any_of(row.cost, [](double c) { return c < strategies::kImpossible; });
  graph_.nodes.push_back(std::move(row));
  if (possible) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the pins leave no strategy for ", node.name, "; try to leave one out"));
}

// What a backward op reads is kept; of a view, what it looks at.
void ShardingGraph::FindKept(const IdTable<OpId, StepPhase>& phase) {
  const auto& order = function_.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    const ir::OpInfo& info = function_.info(*op);
    const bool view = info.strided_view || info.op_class == ir::OpClass::kView;
    bool seen = phase[*op] == StepPhase::kBackward;
    for (int32_t i = 0; view && !seen && i < function_.result_count(*op); ++i) {
      const ValueId result = function_.result(*op, i);
      seen = kept_[result] != 0;
      kept_[result] = 0;
    }
    if (!seen) continue;
    for (const ValueId operand : function_.operands(*op)) {
      const OpId producer = function_.producer(operand);
      if (producer.valid() && phase[producer] == StepPhase::kForward) kept_[operand] = 1;
    }
  }
}

// What an update reads is added up before, in the layout in which backward leaves it.
void ShardingGraph::FindSummed(const IdTable<OpId, StepPhase>& phase) {
  for (const OpId op : function_.order()) {
    if (phase[op] != StepPhase::kUpdate) continue;
    for (const ValueId operand : function_.operands(op)) {
      const OpId producer = function_.producer(operand);
      if (producer.valid() && phase[producer] == StepPhase::kBackward) summed_[operand] = 1;
    }
  }
}

// Of one more summand.
double ShardingGraph::SumSeconds(ValueId value, AxisLayout layout) const {
  const TensorType type = InLayout(function_.type(value), layout, axis_);
  const TensorType* const summands[] = {&type, &type};
  return SecondsOf(ir::OpKind::kAccumulate, {}, summands, std::span(summands, 1), mesh_, prices_);
}

void ShardingGraph::MakeMemory(size_t number) {
  const Node& node = nodes_[number];
  std::vector<double>& row = memory_.emplace_back();
  const auto bytes = [&](ValueId value, AxisLayout layout) {
    const TensorType type = InLayout(function_.type(value), layout, axis_);
    return static_cast<double>(SizeOf(ir::LocalType(type, mesh_)).count());
  };
  for (const Choice& choice : node.choices) {
    double memory = 0;
    for (const ValueId value : node.values) {
      const bool input = !function_.producer(value).valid();
      double copies = input || summed_[value] != 0 ? held_[value] : 0;
      if (kept_[value] != 0) copies += in_flight_;
      if (copies > 0) memory += copies * bytes(value, GivenBy(value, choice));
    }
    row.push_back(memory);
  }
}

void ShardingGraph::MakeEdge(const Use& use) {
  const int32_t from = node_of_[use.value];
  if (from == use.node) return;
  const Node& maker = nodes_[static_cast<size_t>(from)];
  const Node& taker = nodes_[static_cast<size_t>(use.node)];
  strategies::StrategyEdge edge{.from = from, .to = use.node, .cost = {}};
  edge.cost.reserve(maker.choices.size() * taker.choices.size());
  bool free = true;
  for (const Choice& made : maker.choices) {
    const AxisLayout given = GivenBy(use.value, made), extra = ExtraBy(use.value, made);
    for (const Choice& taken : taker.choices) {
      const AxisLayout wanted = WantedBy(use, taken);
      double seconds = ways_.Find(use.value, given, wanted).seconds;
      if (extra != kNoLayout) {
        seconds = std::min(seconds, ways_.Find(use.value, extra, wanted).seconds);
      }
      free = free && seconds == 0;
      edge.cost.push_back(seconds * taker.share);
    }
  }
  if (!free) graph_.edges.push_back(std::move(edge));
}

AxisLayout ShardingGraph::LeftBy(ValueId value, const Choice& choice) const {
  const Node& node = nodes_[static_cast<size_t>(node_of_[value])];
  return (*node.strategies)[static_cast<size_t>(choice.strategy)]
      .results[static_cast<size_t>(position_[value])];
}

AxisLayout ShardingGraph::GivenBy(ValueId value, const Choice& choice) const {
  const AxisLayout left = LeftBy(value, choice), pin = pins_[value];
  if (pin == kNoLayout) return left;
  if (pin == kReducedLayout) return left == kPartialLayout ? kWholeLayout : left;
  return pin;
}

AxisLayout ShardingGraph::ExtraBy(ValueId value, const Choice& choice) const {
  const Node& node = nodes_[static_cast<size_t>(node_of_[value])];
  return node.values[0] == value ? choice.extra : kNoLayout;
}

AxisLayout ShardingGraph::WantedBy(const Use& use, const Choice& choice) const {
  const Node& node = nodes_[static_cast<size_t>(use.node)];
  const OpStrategy& strategy = (*node.strategies)[static_cast<size_t>(choice.strategy)];
  return use.operand < 0 ? strategy.results[0]
                         : strategy.operands[static_cast<size_t>(use.operand)];
}

OpStrategy::How ShardingGraph::HowOf(OpId op) const {
  if (function_.info(op).op_class == ir::OpClass::kOptimizer) return OpStrategy::How::kPlain;
  const int32_t node = node_of_op_[op];
  const auto strategy = static_cast<size_t>(ChoiceOf(node).strategy);
  return (*nodes_[static_cast<size_t>(node)].strategies)[strategy].how;
}

AxisLayout ShardingGraph::Wanted(OpId op, size_t i) const {
  const bool optimizer = function_.info(op).op_class == ir::OpClass::kOptimizer;
  if (!optimizer) {
    return WantedBy({.value = {}, .node = node_of_op_[op], .operand = static_cast<int>(i)},
                    ChoiceOf(node_of_op_[op]));
  }
  const size_t parameter = ir::OptimizerOperands(function_, op).ParameterOf(i);
  const auto node = node_of_op_[op] + static_cast<int32_t>(parameter);
  return WantedBy({.value = {}, .node = node, .operand = -1}, ChoiceOf(node));
}

}  // namespace orrery::transforms
