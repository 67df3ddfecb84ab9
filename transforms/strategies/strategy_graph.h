#ifndef ORRERY_TRANSFORMS_STRATEGIES_STRATEGY_GRAPH_H_
#define ORRERY_TRANSFORMS_STRATEGIES_STRATEGY_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Which strategy each op takes: one for each node, such that the costs of the strategies and of the
// edges between them add up to the least, and no live set needs more memory than there is. This is
// the integer program of Alpa (Zheng et al., OSDI 2022, section 4.2) and of XLA's auto-sharding.

namespace orrery::transforms::strategies {

/// Of a strategy that cannot be, or of two that cannot meet.
inline constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// An op, or a group of ops that share their strategy.
struct StrategyNode {
  std::string name;            // for messages
  std::vector<double> cost;    // of each strategy; may be kImpossible
  std::vector<double> memory;  // of each strategy, at least 0; empty: none needs any
};

/// What it costs that two nodes take their strategies. Several between the same two nodes add up.
struct StrategyEdge {
  int32_t from = 0;
  int32_t to = 0;
  std::vector<double> cost;  // [strategy of `from`][strategy of `to`]; may be kImpossible
};

/// Two strategies that may not be taken together.
struct IncompatiblePair {
  int32_t node = 0;
  int32_t strategy = 0;
  int32_t other_node = 0;
  int32_t other_strategy = 0;
};

/// Nodes whose memory is needed at the same time.
struct LiveSet {
  std::string name;            // for messages
  std::vector<int32_t> nodes;  // each once
  double budget = kImpossible;
};

/// What SolveStrategies chooses in: for each node one strategy, so that the costs of all nodes and
/// edges are the least.
struct StrategyGraph {
  std::vector<StrategyNode> nodes;
  std::vector<StrategyEdge> edges;
  std::vector<IncompatiblePair> incompatible;
  std::vector<LiveSet> live_sets;
};

/// Blocks of nodes that are equal, such as the layers of a transformer: node i of each has the same
/// costs, and the edges within each block, and from each to the next, are the same. Edges from
/// elsewhere go to the first or the last block only, or come from nodes that have a strategy which
/// is never dearer than another one, such as tables that all layers read.
struct RepeatedBlocks {
  std::vector<std::vector<int32_t>> blocks;  // in their order; no node is in two
  /// So many equal blocks more, before the last one, of which the graph has no nodes: the edges
  /// between the last two blocks are those of each to the next (ShortGraph).
  int64_t more = 0;

  /// All blocks.
  size_t count() const { return blocks.size() + static_cast<size_t>(more); }
};

/// How far the search goes, and what it may do once for many.
struct SolveOptions {
  /// Blocks that are solved once, and composed. Used where no memory limit can bind.
  std::vector<RepeatedBlocks> repeats;
  /// The search gives up after so many partial choices, with the best choice found until then.
  int64_t label_limit = 4'000'000;
  /// Entries of the largest table of an elimination; beyond it bounds replace tables.
  int64_t table_limit = 1 << 21;
};

/// Why there is no choice.
struct NoChoice {
  std::string reason;     // one line
  int32_t live_set = -1;  // that is short of memory; -1: two strategies cannot meet
  double excess = 0;      // by how much at least, were all budgets to grow by the same
  bool proven = true;     // false: the search gave up before it found one
};

/// The choice that was found, and what is proven of it.
struct StrategyChoice {
  std::vector<int32_t> assignment;  // the strategy of each node; empty where there is none
  /// Of RepeatedBlocks::more: [repeat][block][node of it]; neither cost nor bound counts them.
  std::vector<std::vector<std::vector<int32_t>>> further = {};
  double cost = kImpossible;
  double bound = 0;      // no choice costs less than this, but for rounding
  int64_t labels = 0;    // partial choices that the search made
  int64_t composed = 0;  // blocks of `repeats` that one of them was solved for
  std::optional<NoChoice> none;
  /// Whether no choice is cheaper.
  bool optimal() const { return !none.has_value() && bound >= cost; }
};

/// The cheapest choice. Exact unless `label_limit` is reached; then `bound` tells what is proven.
/// Errors: a graph whose parts do not fit together, repeats that are not equal; FailedPrecondition
/// where those that stand for `more` cannot be composed, or there is no choice for them.
absl::StatusOr<StrategyChoice> SolveStrategies(const StrategyGraph& graph,
                                               const SolveOptions& options = {});

/// Says what is wrong with `graph`, if anything.
absl::Status Validate(const StrategyGraph& graph);

/// The cost of `assignment`, one strategy for each node; kImpossible where two cannot meet.
double CostOf(const StrategyGraph& graph, const std::vector<int32_t>& assignment);

/// The memory that the live set needs.
double MemoryOf(const StrategyGraph& graph, const LiveSet& live_set,
                const std::vector<int32_t>& assignment);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_STRATEGY_GRAPH_H_
