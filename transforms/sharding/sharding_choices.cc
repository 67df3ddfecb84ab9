#include "transforms/sharding/sharding_choices.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::transforms {

using ir::OpId;
using ir::ValueId;

ShardingChoices::ShardingChoices(const AxisProblem& problem, const ShardingNodes& nodes,
                                 LayoutWays& ways, PinnedLayouts pins)
    : problem_(problem),
      nodes_(nodes),
      ways_(ways),
      pins_(std::move(pins)),
      use_count_(problem.function.value_limit(), 0),
      samples_(problem.function.value_limit(), -1),
      is_weight_(problem.function.value_limit(), 0),
      is_frozen_(problem.function.value_limit(), 0) {
  for (const ShardingUse& use : nodes.uses()) ++use_count_[use.value];
  FindSamples();
}

absl::Status ShardingChoices::Make(const ChoiceRules& rules) {
  for (const ShardingNode& node : nodes_.all()) {
    ORRERY_ASSIGN_OR_RETURN(std::vector<size_t> allowed, AllowedBy(node));
    if (rules.never_whole != nullptr) KeepSplit(node, *rules.never_whole, allowed);
    std::erase_if(allowed, [&](size_t number) {
      const OpStrategy& strategy = (*node.strategies)[number];
      return SplitsSamples(node, strategy) || LeavesWeightsWhole(node, strategy);
    });
    if (rules.weights_stay) KeepWeights(node, allowed);
    if (rules.tokens_stay) KeepTokens(node, allowed);
    if (rules.pattern != nullptr) KeepPattern(node, rules, allowed);
    std::vector<ShardingChoice>& choices = choices_.emplace_back();
    for (const size_t number : allowed) {
      const ShardingChoice plain{.strategy = static_cast<int32_t>(number)};
      choices.push_back(plain);
      AddExtras(node, plain, choices);
    }
  }
  return absl::OkStatus();
}

// Takes what leaves an input whole from the strategies, where there is another.
void ShardingChoices::KeepSplit(const ShardingNode& node, const IdTable<ValueId, char>& never_whole,
                                std::vector<size_t>& allowed) const {
  const auto kept = [&](ValueId value) { return never_whole[value] != 0; };
  if (!node.is_group || !std::ranges::any_of(node.values, kept)) return;
  const auto splits = [&](size_t s) { return (*node.strategies)[s].results[0] != kWholeLayout; };
  if (std::ranges::any_of(allowed, splits)) std::erase_if(allowed, std::not_fn(splits));
}

// Takes what moves weights from the strategies, where something is left: a product that other axes
// have split may take them no more as they lie.
void ShardingChoices::KeepWeights(const ShardingNode& node, std::vector<size_t>& allowed) const {
  const auto moves = [&](size_t s) { return MovesWeights(node, (*node.strategies)[s]); };
  if (!std::ranges::all_of(allowed, moves)) std::erase_if(allowed, moves);
}

// Leaves of the strategies of what fills slots [experts, batch, capacity, width] and empties them
// those that split the batch, where there are any.
void ShardingChoices::KeepTokens(const ShardingNode& node, std::vector<size_t>& allowed) const {
  if (node.is_group || node.values.empty()) return;
  const ir::Function& function = problem_.function;
  const OpId op = function.producer(node.values[0]);
  const ir::OpKind kind = function.kind(op);
  const bool fills = kind == ir::OpKind::kDispatch;
  if (!fills && kind != ir::OpKind::kCombine && kind != ir::OpKind::kCombineGrad) return;
  const auto stays = [&](size_t s) {
    const OpStrategy& strategy = (*node.strategies)[s];
    constexpr AxisLayout kByBatch = 1;
    return (fills ? strategy.results[0] : strategy.operands[0]) == kByBatch;
  };
  if (std::ranges::any_of(allowed, stays)) std::erase_if(allowed, std::not_fn(stays));
}

// Takes what is not of the pattern from the strategies of an op, where something is left.
void ShardingChoices::KeepPattern(const ShardingNode& node, const ChoiceRules& rules,
                                  std::vector<size_t>& allowed) const {
  if (node.is_group) return;
  const TensorSplits& pattern = *rules.pattern;
  const auto follows = [&](size_t s) {
    for (const ValueId value : node.values) {
      if (pattern.open[value] != 0) continue;
      const AxisLayout made = (*node.strategies)[s].results[nodes_.PositionOf(value)];
      const AxisLayout wanted = pattern.dims[value];
      if (pattern.adapted[value] != 0 && made == pins_[value]) continue;
      const bool whole = wanted == kWholeLayout && pattern.partial[value] == 0;
      const bool sum = wanted == kWholeLayout && made == kPartialLayout;
      if (made != wanted && !sum && !(whole && rules.opens_whole)) return false;
    }
    return true;
  };
  if (std::ranges::any_of(allowed, follows)) std::erase_if(allowed, std::not_fn(follows));
}

// The strategies of a node; of a group those that all pins of its values allow.
absl::StatusOr<std::vector<size_t>> ShardingChoices::AllowedBy(const ShardingNode& node) const {
  std::vector<size_t> allowed;
  for (size_t s = 0; s < node.strategies->size(); ++s) allowed.push_back(s);
  if (!node.is_group) return allowed;
  for (const ValueId value : node.values) {
    const AxisLayout pin = pins_[value];
    if (pin == kNoLayout || pin == kReducedLayout) continue;
    const size_t position = nodes_.PositionOf(value);
    std::erase_if(allowed,
                  [&](size_t s) { return (*node.strategies)[s].results[position] != pin; });
    if (!allowed.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the pin of ", ir::PrintValue(problem_.function, value),
        " cannot be kept: ", ir::PrintValue(problem_.function, node.values[0]),
        " and what an optimizer keeps for it are sharded alike, and are pinned otherwise; try to "
        "pin the parameter alone"));
  }
  return allowed;
}

// Whole samples are what dp is for. Tensor parallelism shares what is done to each of them, unless
// the user says otherwise: a pin of the batch, or of a dimension that has it.
void ShardingChoices::FindSamples() {
  const std::string& axis = problem_.mesh.axes()[problem_.axis].name;
  if (axis == "cp") FindSamplesOfSequences();
  if (axis != "hp" || problem_.splits_batch) return;
  const ir::Function& function = problem_.function;
  samples_ = ir::BatchDims(function);
  for (int32_t v = 0; v < function.value_limit(); ++v) {
    const ValueId value(v);
    if (!PartsSamples(value, pins_[value])) continue;
    samples_ = IdTable<ValueId, int8_t>(function.value_limit(), -1);
    return;
  }
  tensor_parallel_ = true;
  FindWeights();
}

void ShardingChoices::FindWeights() {
  const ir::Function& function = problem_.function;
  for (const ir::Input& input : function.inputs()) {
    if (!ir::IsWeight(input.role) || function.type(input.value).dims.size() < 2) continue;
    is_weight_[input.value] = 1;
    const bool pinned = pins_[input.value] != kNoLayout;
    is_frozen_[input.value] = input.role == ir::InputRole::kFrozen && !pinned ? 1 : 0;
  }
  for (const OpId op : function.order()) {
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      const ValueId made = function.result(op, i), weight = WeightUnder(function, made);
      is_weight_[made] = is_weight_[weight];
      is_frozen_[made] = is_frozen_[weight];
    }
  }
}

// Context parallelism shares sequences, whatever a replica of whole samples would cost. All that
// comes from data has samples in dimension 0.
void ShardingChoices::FindSamplesOfSequences() {
  const ir::Function& function = problem_.function;
  for (const ir::Input& input : function.inputs()) {
    if (input.role == ir::InputRole::kData) samples_[input.value] = 0;
  }
  for (const OpId op : function.order()) {
    if (function.info(op).op_class == ir::OpClass::kOptimizer) continue;
    const auto operands = function.operands(op);
    const bool any =
        std::ranges::any_of(operands, [&](ValueId operand) { return samples_[operand] == 0; });
    for (int32_t i = 0; any && i < function.result_count(op); ++i) {
      samples_[function.result(op, i)] = 0;
    }
  }
}

bool ShardingChoices::SplitsSamples(const ShardingNode& node, const OpStrategy& strategy) const {
  for (const ValueId value : node.values) {
    if (PartsSamples(value, strategy.results[nodes_.PositionOf(value)])) return true;
  }
  if (node.is_group || node.values.empty()) return false;
  const auto operands = problem_.function.operands(problem_.function.producer(node.values[0]));
  for (size_t i = 0; i < operands.size(); ++i) {
    if (PartsSamples(operands[i], strategy.operands[i])) return true;
  }
  return false;
}

// Whether a product by weights is shared out by tensor parallelism, but not its weights: each rank
// would hold all of them and compute some rows, as data parallelism has it.
bool ShardingChoices::LeavesWeightsWhole(const ShardingNode& node,
                                         const OpStrategy& strategy) const {
  if (!tensor_parallel_ || node.is_group || node.values.empty()) return false;
  const ir::Function& function = problem_.function;
  const OpId op = function.producer(node.values[0]);
  if (!function.info(op).matrix_product) return false;
  const auto operands = function.operands(op);
  bool weights = false, split = false, shares = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    shares = shares || strategy.operands[i] >= 0;
    if (is_weight_[operands[i]] == 0) continue;
    weights = true;
    split = split || strategy.operands[i] >= 0;
  }
  return weights && shares && !split;
}

// Whether a matrix product has a weight that is split brought into another layout.
bool ShardingChoices::MovesWeights(const ShardingNode& node, const OpStrategy& strategy) const {
  if (node.is_group || node.values.empty()) return false;
  const ir::Function& function = problem_.function;
  const OpId op = function.producer(node.values[0]);
  const auto operands = function.operands(op);
  for (size_t i = 0; function.info(op).matrix_product && i < operands.size(); ++i) {
    const ValueId under = WeightUnder(function, operands[i]);
    const ValueId weight = is_weight_[under] != 0 ? under : operands[i];
    const AxisLayout pin = function.producer(weight).valid() ? kNoLayout : pins_[weight];
    if (pin >= 0 && strategy.operands[i] != pin) return true;
  }
  return false;
}

// The same with each other layout in which several consumers may want the first result.
void ShardingChoices::AddExtras(const ShardingNode& node, ShardingChoice plain,
                                std::vector<ShardingChoice>& choices) const {
  if (node.values.empty() || use_count_[node.values[0]] < 2) return;
  const ValueId value = node.values[0];
  const AxisLayout given = GivenBy(value, plain);
  if (given == kWholeLayout) return;  // to be sliced for nothing
  const auto rank = static_cast<AxisLayout>(problem_.function.type(value).dims.size());
  for (AxisLayout extra = kWholeLayout; extra < rank; ++extra) {
    const bool useful =
        (extra == kWholeLayout || given == kPartialLayout) && !PartsSamples(value, extra);
    if (!useful || ways_.Find(value, given, extra).seconds == strategies::kImpossible) continue;
    choices.push_back({.strategy = plain.strategy, .extra = extra});
  }
}

OpStrategy::How ChosenShardings::HowOf(OpId op) const {
  const int32_t node = choices_.nodes().NodeOf(op);
  return choices_.StrategyOf(node, Of(node)).how;
}

AxisLayout ChosenShardings::Wanted(OpId op, size_t i) const {
  const ShardingUse use = choices_.nodes().UseOf(op, i);
  return choices_.WantedBy(use, Of(use.node));
}

}  // namespace orrery::transforms
