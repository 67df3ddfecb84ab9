#ifndef ORRERY_TRANSFORMS_STAGES_FORWARD_LAYERS_H_
#define ORRERY_TRANSFORMS_STAGES_FORWARD_LAYERS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "transforms/stages/pipeline.h"

// Layers of any graph. Between two layers the forward pass is narrow: one activation crosses, such
// as the residual stream of a transformer.

namespace orrery::transforms {

/// Positions in the order of a function: from `begin` up to, and without, `end`.
struct LayerRange {
  int32_t begin = 0, end = 0;

  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

/// The layers of a model whose stages have these forward functions, in their order; for each stage
/// those of its own, first to last. A layer that stages share is one in each of them. Layers may
/// leave ops between them, before and after. What follows the stage with the loss is another model:
/// that of a second pipeline.
///
///  - Where most of the graph repeats, a layer is what repeats: attention and feed-forward together
///  in a transformer. It begins at a cut point, and what lives longer than a layer, a mask say,
///  does not count there. What is left before and after is looked at in the same way. Where what
///  repeats is six units or more, of half as many kinds, as of Mamba-2 layers, feed-forwards and
///  attention now and then, each unit is a layer: one from each cut point that more work follows.
///  - Elsewhere a layer begins at each cut point that more work follows, before the activations
///  that go into a matrix product or a convolution.
///  - What stands alone between the last layer that repeats and the loss, the head, is no layer,
///  and neither is what comes before any work, as embeddings do.
///
/// How the functions are sharded makes no difference. In time near linear in the ops where they
/// repeat, at most quadratic.
std::vector<std::vector<LayerRange>> FindLayers(std::span<const StageFunction* const> forwards);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_FORWARD_LAYERS_H_
