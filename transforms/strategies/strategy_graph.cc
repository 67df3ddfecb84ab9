#include "transforms/strategies/strategy_graph.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::transforms::strategies {
namespace strategy_graph_cc {
namespace {

// Sums of this many stay finite, so that only kImpossible is infinite.
constexpr double kLargest = 1e100;

bool IsCost(double cost) { return cost == kImpossible || std::abs(cost) <= kLargest; }

std::string NodeName(const StrategyGraph& graph, size_t node) {
  return absl::StrCat("node ", node, " '", graph.nodes[node].name, "'");
}

absl::Status ValidateNode(const StrategyGraph& graph, size_t number) {
  const StrategyNode& node = graph.nodes[number];
  const std::string where = NodeName(graph, number);
  if (node.cost.empty() || node.cost.size() > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": got ", node.cost.size(), " strategies, wanted 1 to 65535"));
  }
  if (!node.memory.empty() && node.memory.size() != node.cost.size()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": got ", node.memory.size(),
                                                   " memories, wanted one for each of its ",
                                                   node.cost.size(), " strategies, or none"));
  }
  for (const double cost : node.cost) {
    if (!IsCost(cost)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": got a cost of ", cost, ", wanted -1e100 to 1e100, or infinity"));
    }
  }
  for (const double memory : node.memory) {
    if (!(memory >= 0 && memory <= kLargest)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": got a memory of ", memory, ", wanted 0 to 1e100"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateEdge(const StrategyGraph& graph, size_t number) {
  const StrategyEdge& edge = graph.edges[number];
  const auto nodes = static_cast<int32_t>(graph.nodes.size());
  const std::string where = absl::StrCat("edge ", number);
  if (edge.from < 0 || edge.from >= nodes || edge.to < 0 || edge.to >= nodes ||
      edge.from == edge.to) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": got nodes ", edge.from, " and ",
                                                   edge.to, ", wanted two of 0 to ", nodes - 1));
  }
  const size_t wanted = graph.nodes[static_cast<size_t>(edge.from)].cost.size() *
                        graph.nodes[static_cast<size_t>(edge.to)].cost.size();
  if (edge.cost.size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": got ", edge.cost.size(),
                                                   " costs, wanted ", wanted,
                                                   ", one for each pair of strategies"));
  }
  for (const double cost : edge.cost) {
    if (!IsCost(cost)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": got a cost of ", cost, ", wanted -1e100 to 1e100, or infinity"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidatePair(const StrategyGraph& graph, const IncompatiblePair& pair) {
  const auto valid = [&](int32_t node, int32_t strategy) {
    return node >= 0 && static_cast<size_t>(node) < graph.nodes.size() && strategy >= 0 &&
           static_cast<size_t>(strategy) < graph.nodes[static_cast<size_t>(node)].cost.size();
  };
  if (valid(pair.node, pair.strategy) && valid(pair.other_node, pair.other_strategy) &&
      pair.node != pair.other_node) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "incompatible pair: got strategy ", pair.strategy, " of node ", pair.node, " and strategy ",
      pair.other_strategy, " of node ", pair.other_node, ", wanted strategies of two nodes"));
}

absl::Status ValidateLiveSet(const StrategyGraph& graph, size_t number) {
  const LiveSet& live = graph.live_sets[number];
  const std::string where = absl::StrCat("live set ", number, " '", live.name, "'");
  if (std::isnan(live.budget) || live.budget < -kLargest) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": got a budget of ", live.budget, ", wanted a number"));
  }
  std::vector<bool> seen(graph.nodes.size());
  for (const int32_t node : live.nodes) {
    if (node < 0 || static_cast<size_t>(node) >= graph.nodes.size() ||
        seen[static_cast<size_t>(node)]) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": got node ", node, ", wanted nodes of the graph, each once"));
    }
    seen[static_cast<size_t>(node)] = true;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace strategy_graph_cc

absl::Status Validate(const StrategyGraph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    ORRERY_RETURN_IF_ERROR(strategy_graph_cc::ValidateNode(graph, i));
  for (size_t i = 0; i < graph.edges.size(); ++i)
    ORRERY_RETURN_IF_ERROR(strategy_graph_cc::ValidateEdge(graph, i));
  for (const IncompatiblePair& pair : graph.incompatible) {
    ORRERY_RETURN_IF_ERROR(strategy_graph_cc::ValidatePair(graph, pair));
  }
  for (size_t i = 0; i < graph.live_sets.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(strategy_graph_cc::ValidateLiveSet(graph, i));
  }
  return absl::OkStatus();
}

double CostOf(const StrategyGraph& graph, const std::vector<int32_t>& assignment) {
  double cost = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    cost += graph.nodes[i].cost[static_cast<size_t>(assignment[i])];
  }
  for (const StrategyEdge& edge : graph.edges) {
    const auto from = static_cast<size_t>(assignment[static_cast<size_t>(edge.from)]);
    const auto to = static_cast<size_t>(assignment[static_cast<size_t>(edge.to)]);
    cost += edge.cost[from * graph.nodes[static_cast<size_t>(edge.to)].cost.size() + to];
  }
  for (const IncompatiblePair& pair : graph.incompatible) {
    if (assignment[static_cast<size_t>(pair.node)] == pair.strategy &&
        assignment[static_cast<size_t>(pair.other_node)] == pair.other_strategy) {
      return kImpossible;
    }
  }
  return cost;
}

double MemoryOf(const StrategyGraph& graph, const LiveSet& live_set,
                const std::vector<int32_t>& assignment) {
  double memory = 0;
  for (const int32_t node : live_set.nodes) {
    const std::vector<double>& memories = graph.nodes[static_cast<size_t>(node)].memory;
    if (!memories.empty()) {
      memory += memories[static_cast<size_t>(assignment[static_cast<size_t>(node)])];
    }
  }
  return memory;
}

}  // namespace orrery::transforms::strategies
