#ifndef ORRERY_TRANSFORMS_STRATEGIES_SHORT_GRAPH_H_
#define ORRERY_TRANSFORMS_STRATEGIES_SHORT_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transforms/strategies/strategy_graph.h"

namespace orrery::transforms::strategies {

/// How graphs of many equal blocks are written with three of them: the first two and the last, and
/// how many more there are (RepeatedBlocks::more). So what it takes to solve one does not grow with
/// its blocks.
class ShortGraph {
 public:
  /// Of graphs of so many nodes, in which there are such blocks.
  ShortGraph(size_t nodes, const std::vector<RepeatedBlocks>& repeats);

  /// Whether anything is left out.
  bool is_shorter() const { return nodes_.size() < places_.size(); }
  /// The nodes and edges of `graph` that stand for all, numbered anew; nothing where its blocks are
  /// not equal, or meet what is left out of others. For a graph without limits of memory.
  std::optional<StrategyGraph> Of(const StrategyGraph& graph) const;
  /// The blocks of such a graph.
  const std::vector<RepeatedBlocks>& repeats() const { return repeats_; }
  /// What a choice for it is for the whole graph.
  std::vector<int32_t> Expand(const StrategyChoice& choice) const;

 private:
  // Where a node stands.
  struct Place {
    int32_t repeat = -1;  // -1: in no block
    int32_t block = 0;
    int32_t index = 0;  // in the block
  };
  // An edge of a block as all blocks have it.
  struct BlockEdge;
  struct EdgesOfBlock;

  bool IsLeftOut(const Place& place) const;
  bool AddTo(const StrategyEdge& edge, std::vector<std::vector<EdgesOfBlock>>& blocks) const;
  bool HasEqualBlocks(const StrategyGraph& graph) const;
  int32_t NumberOf(int32_t node) const { return number_[static_cast<size_t>(node)]; }
  const Place& PlaceOf(int32_t node) const { return places_[static_cast<size_t>(node)]; }

  std::vector<RepeatedBlocks> whole_;    // that are written shorter
  std::vector<RepeatedBlocks> repeats_;  // the same, with the numbers of the short graph
  std::vector<Place> places_;            // [node]
  std::vector<int32_t> nodes_;           // of the short graph
  std::vector<int32_t> number_;          // [node]: in the short graph; -1: left out
};

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_SHORT_GRAPH_H_
