#ifndef ORRERY_TRANSFORMS_TRAINING_PAD_DIMENSIONS_H_
#define ORRERY_TRANSFORMS_TRAINING_PAD_DIMENSIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"

// What ranks cannot share out evenly is padded to what they can, as Megatron-LM does with
// vocabularies, and others with heads: all ranks then hold and do the same.

namespace orrery::transforms {

/// Dimensions of one size that are longer now.
struct PaddedDimension {
  std::string name;  // "heads", "vocabulary", "table", "channels" or "width"
  int64_t from = 0, to = 0;

  friend bool operator==(const PaddedDimension&, const PaddedDimension&) = default;
};

/// "heads 12 -> 15, vocabulary 50257 -> 50260"; nothing for none.
std::string ToString(std::span<const PaddedDimension> padded);

/// A function whose dimensions are longer.
struct PaddedFunction {
  ir::Function function;
  std::vector<PaddedDimension> padded;  // each once; none: the function is as it was
};

/// To what dimensions are padded.
struct Padding {
  int64_t ranks = 1;  // that share them out: they divide heads
  /// Other dimensions are a multiple of `ranks` times this, unless that is twice as long as what
  /// `ranks` divide: kernels of 16 bits want 8.
  int64_t share = 1;
};

/// The function with dimensions of weights that ranks do not share out evenly made so long that
/// they do, together with all that follows (transforms/training/dimension_classes.h): biases,
/// optimizer state, gradients, activations. Of attention it is heads that are counted, and heads of
/// keys go with those of queries that read them. With zeros in the added part of each weight, the
/// function computes what it did, but for cross entropies over a larger vocabulary.
///
/// As they are stay dimensions whose padding would change what is computed, those of ops that
/// cannot be that long, and those of which more than half would be padding. `function` is of one
/// device. Requires ranks and share >= 1.
absl::StatusOr<PaddedFunction> PadDimensions(const ir::Function& function, const Padding& padding);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_PAD_DIMENSIONS_H_
