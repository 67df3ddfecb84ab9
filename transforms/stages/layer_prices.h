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
  std::vector<double> seconds;       // forward and backward of the batch, and update
  std::vector<double> weight_bytes;  // parameters
  std::vector<double> output_bytes;  // that the next one needs of it and of those before it
  /// Parameters, gradients and the optimizer's state, and what forward leaves of the batch.
  std::vector<double> held_bytes;
};

/// Of a step that is sharded over nothing, or over the mesh that `prices` knows.
absl::StatusOr<LayerPrices> PriceLayers(const ir::Function& step, const ShardingPrices& prices);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_LAYER_PRICES_H_
