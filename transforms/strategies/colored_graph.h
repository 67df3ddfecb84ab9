#ifndef ORRERY_TRANSFORMS_STRATEGIES_COLORED_GRAPH_H_
#define ORRERY_TRANSFORMS_STRATEGIES_COLORED_GRAPH_H_

#include <cstdint>
#include <vector>

#include "transforms/strategies/model.h"

// Which nodes of a model look alike, and how equal layers follow each other. All of it is a guess,
// as good as hashes and colors are; who builds on it checks what comes out.

namespace orrery::transforms::strategies {

/// A model as its symmetries see it.
struct ColoredGraph {
  struct Edge {
    int32_t node = 0;    // at its other end
    uint64_t label = 0;  // equal for equal tables, seen from this end
  };
  std::vector<std::vector<Edge>> edges;       // [node]
  std::vector<int32_t> color;                 // [node]
  std::vector<std::vector<int32_t>> classes;  // [color]: its nodes, ascending

  size_t ClassSize(int32_t node) const {
    return classes[static_cast<size_t>(color[static_cast<size_t>(node)])].size();
  }
};

/// Colors the nodes of `model`: those with equal costs, refined by what is around them
/// (Weisfeiler & Leman 1968). Few rounds: nodes close to the first or the last layer differ from
/// their like in other layers.
ColoredGraph Colored(const Model& model);

/// The nodes of a class that has one in each layer, layer after layer, from either end: next to
/// each other are those with the shortest way between them. Empty where that is no chain of at
/// least three.
std::vector<int32_t> ChainOf(const ColoredGraph& graph, int32_t color);

/// [node]: its like in the next layer, or -1; no two have the same one. `chain` says so of some
/// nodes; their neighbours follow, and theirs. Of several that look alike, any, after all others.
std::vector<int32_t> NextInLayers(const ColoredGraph& graph, const std::vector<int32_t>& chain);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_COLORED_GRAPH_H_
