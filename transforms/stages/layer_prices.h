#ifndef ORRERY_TRANSFORMS_STAGES_LAYER_PRICES_H_
#define ORRERY_TRANSFORMS_STAGES_LAYER_PRICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/sharding/sharding_prices.h"

namespace orrery::transforms {

/// The layers of a training step, in order, as planners of stages want them
/// (docs/pipeline_stages.md): what precedes the first is part of it, what follows the last, a
/// classifier say, is one more.
struct LayerPrices {
  std::vector<std::string> names;    // of the first value that each makes and that has one
  std::vector<double> seconds;       // forward and backward, and its share of the update
  std::vector<double> weight_bytes;  // parameters
  std::vector<double> output_bytes;  // that the next one needs of it and of those before it
  /// Parameters, gradients and the optimizer's state, and what forward leaves of the batch.
  std::vector<double> held_bytes;
  /// Parts of these: what a microbatch adds, and what is there anyway.
  std::vector<double> kept_bytes, state_bytes;
  /// Whether each is a layer, and not what comes before all of them or after.
  std::vector<char> whole;
};

/// Of a step that is sharded over nothing, or over the mesh that `prices` knows: of one microbatch,
/// an update being shared by so many.
absl::StatusOr<LayerPrices> PriceLayers(const ir::Function& step, const ShardingPrices& prices,
                                        int64_t microbatches = 1);

/// The same with whole layers alone, as StageChoice::layers_per_stage counts them: what is none
/// goes with the layer before it, or with the first.
LayerPrices JoinedToLayers(const LayerPrices& prices);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_LAYER_PRICES_H_
