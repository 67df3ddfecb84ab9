#ifndef ORRERY_TRANSFORMS_STRATEGIES_MODEL_H_
#define ORRERY_TRANSFORMS_STRATEGIES_MODEL_H_

#include <cstdint>
#include <vector>

#include "transforms/strategies/strategy_graph.h"

// The graph as the solver works on it: without strategies that no best choice takes, with one table
// for each pair of nodes, and only with live sets that can run out of memory.

namespace orrery::transforms::strategies {

/// A cost for each choice of the nodes in `scope`; the last of them varies fastest.
struct Table {
  std::vector<int32_t> scope;
  std::vector<double> values;
};

/// Nodes whose memory is needed at once, with a budget that may not suffice.
struct MemoryLimit {
  int32_t live_set = 0;  // in the graph
  std::vector<int32_t> nodes;
  double budget = 0;
};

using Costs = std::vector<std::vector<double>>;  // [node][strategy]

struct Model {
  std::vector<std::vector<int32_t>> kept;  // [node]: the graph's numbers of its strategies
  Costs cost;
  Costs memory;
  std::vector<Table> tables;
  std::vector<MemoryLimit> limits;

  size_t nodes() const { return cost.size(); }
  size_t strategies(int32_t node) const { return cost[static_cast<size_t>(node)].size(); }
};

/// What may be over a budget by rounding alone.
double Slack(double budget);

/// The graph as a model, whole: nothing is taken away yet but what is infinite by itself.
Model ModelOf(const StrategyGraph& graph);

/// Takes away strategies that have no possible neighbour. Returns a node that has none left, or -1.
int32_t DropImpossible(Model& model);

/// What nodes of one strategy cost in tables becomes costs of the other nodes: they are in no table
/// then, and no elimination joins their neighbours.
void FoldFixed(Model& model);

/// Takes away strategies in whose place another is never dearer, whatever the neighbours take, nor
/// needs more memory (Goldstein's dead-end elimination). Looks at nodes in tables of two only.
void DropDominated(Model& model);

/// Takes away limits that cannot bind: the largest memories fit, or another limit is as tight.
void DropLooseLimits(Model& model);

/// The strategies, in the graph's numbers.
std::vector<int32_t> InGraph(const Model& model, const std::vector<int32_t>& choice);

/// The cost of `choice`, one strategy of the model for each node.
double CostOf(const Model& model, const std::vector<int32_t>& choice);

/// Whether all limits hold.
bool Fits(const Model& model, const std::vector<int32_t>& choice);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_MODEL_H_
