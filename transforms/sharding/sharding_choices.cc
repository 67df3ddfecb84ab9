#include <algorithm>

#include "ir/op_info.h"
#include "transforms/sharding/sharding_graph.h"

// Which strategies of an op may be chosen, and what else becomes of its results.

namespace orrery::transforms {

using ir::OpId;
using ir::ValueId;

bool ShardingGraph::SplitsSamples(size_t number, const OpStrategy& strategy) const {
  const Node& node = nodes_[number];
  for (const ValueId value : node.values) {
    const bool split = strategy.results[static_cast<size_t>(position_[value])] == 0;
    if (samples_[value] != 0 && split) return true;
  }
  if (node.is_group || node.values.empty()) return false;
  const auto operands = function_.operands(function_.producer(node.values[0]));
  for (size_t i = 0; i < operands.size(); ++i) {
    if (samples_[operands[i]] != 0 && strategy.operands[i] == 0) return true;
  }
  return false;
}

// Whether a matrix product has a weight that is split brought into another layout.
bool ShardingGraph::MovesWeights(size_t number, const OpStrategy& strategy) const {
  const Node& node = nodes_[number];
  if (node.is_group || node.values.empty() || !weights_stay_) return false;
  const OpId op = function_.producer(node.values[0]);
  const auto operands = function_.operands(op);
  for (size_t i = 0; function_.info(op).matrix_product && i < operands.size(); ++i) {
    const AxisLayout pin = function_.producer(operands[i]).valid() ? kNoLayout : pins_[operands[i]];
    if (pin >= 0 && strategy.operands[i] != pin) return true;
  }
  return false;
}

void ShardingGraph::MakeChoices(size_t number) {
  Node& node = nodes_[number];
  for (size_t s = 0; s < node.strategies->size(); ++s) {
    const OpStrategy& strategy = (*node.strategies)[s];
    if (SplitsSamples(number, strategy) || MovesWeights(number, strategy)) continue;
    const Choice plain{.strategy = static_cast<int32_t>(s)};
    node.choices.push_back(plain);
    if (node.values.empty() || use_count_[node.values[0]] < 2) continue;
    const ValueId value = node.values[0];
    const AxisLayout given = GivenBy(value, plain);
    if (given == kWholeLayout) continue;  // to be sliced for nothing
    const auto rank = static_cast<AxisLayout>(function_.type(value).dims.size());
    for (AxisLayout extra = kWholeLayout; extra < rank; ++extra) {
      const bool useful = (extra == kWholeLayout || given == kPartialLayout) &&
                          !(extra == 0 && samples_[value] != 0);
      if (!useful || ways_.Find(value, given, extra).seconds == strategies::kImpossible) continue;
      node.choices.push_back({.strategy = static_cast<int32_t>(s), .extra = extra});
    }
  }
}

}  // namespace orrery::transforms
