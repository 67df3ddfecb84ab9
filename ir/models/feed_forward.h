#ifndef ORRERY_IR_MODELS_FEED_FORWARD_H_
#define ORRERY_IR_MODELS_FEED_FORWARD_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "ir/models/layers.h"

// The part of a block that looks at each position by itself: a feed-forward, or experts of which
// each position goes to a few.

namespace orrery::ir {

/// What stands between the products of a feed-forward.
struct FeedForwardStyle {
  /// "gelu" (in its tanh form); "swiglu", of two products side by side (Shazeer 2020); "relu2", a
  /// ReLU squared (So et al. 2021).
  absl::string_view activation = "gelu";
  bool bias = false;  // of products; experts have none
};

/// x through "name" + "up" (and "gate"), `width` wide, and "down" back to its own width.
ValueId FeedForward(Layers& layers, ValueId x, int64_t width, const FeedForwardStyle& style,
                    const std::string& name);

/// Experts of one block.
struct MixtureShape {
  int64_t experts = 1, topk = 1;
  int64_t ffn = 1;         // width of each
  int64_t shared_ffn = 0;  // width of those that all positions go to, together; 0: none
  /// Width of what goes to experts and comes back, which a product makes of x, and another makes x
  /// of (LatentMoE); 0: x itself.
  int64_t latent = 0;
  double capacity_factor = 1;
  FeedForwardStyle style = {};
};

/// x [batch,seq,width] through the experts that its router chooses, and those that all go to.
ValueId Mixture(Layers& layers, ValueId x, const MixtureShape& shape, const std::string& name);

}  // namespace orrery::ir

#endif  // ORRERY_IR_MODELS_FEED_FORWARD_H_
