#ifndef ORRERY_TRANSFORMS_STRATEGIES_LABEL_LAYERS_H_
#define ORRERY_TRANSFORMS_STRATEGIES_LABEL_LAYERS_H_

#include <cstdint>
#include <vector>

#include "transforms/strategies/bucket_tree.h"
#include "transforms/strategies/model.h"

// What does not depend on the choices: which nodes and limits the labels of each layer speak of.

namespace orrery::transforms::strategies {

struct LabelLayer {
  /// A table, and where in the labels the choices for its nodes stand.
  struct Lookup {
    const Table* table = nullptr;
    std::vector<int32_t> positions;  // in `context`
    std::vector<size_t> strides;
  };
  /// A limit that the layer's node counts for.
  struct Use {
    int32_t limit = 0;
    double least_after = 0;  // what nodes of later layers need at least, and at most
    double most_after = 0;
    int32_t from = -1;  // where the memory so far stands in the labels; -1: it is 0
    int32_t to = -1;    // where it stands after; -1: no later node counts
  };

  int32_t node = 0;
  std::vector<int32_t> context;  // nodes whose choices the labels hold before this layer
  std::vector<int32_t> limits;   // whose memory they hold
  std::vector<Lookup> inputs;    // costs that the node's choice settles, by strategy
  std::vector<Lookup> messages;  // bounds that they replace
  std::vector<Use> uses;
  std::vector<int32_t> next_context;  // [position after]: position before; -1: the node itself
  std::vector<int32_t> next_limits;   // [position after]: position before; -1: written by `uses`
};

/// A layer for each node, in the order of `tree`, which must outlive them.
std::vector<LabelLayer> MakeLayers(const Model& model, const BucketTree& tree);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_LABEL_LAYERS_H_
