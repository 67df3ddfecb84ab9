#ifndef ORRERY_TRANSFORMS_TRAINING_QUANTIZE_FROZEN_H_
#define ORRERY_TRANSFORMS_TRAINING_QUANTIZE_FROZEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// Frozen weights in fewer bits (Dettmers et al., "QLoRA", NeurIPS 2023). A kernel makes of them
// what products read, as bitsandbytes does.

namespace orrery::transforms {

/// Has frozen weights (and buffers) of two dimensions or more that only products read stored as
/// `dtype`, "nf4" or "int8": a Cast to the type that they had stands before each product. "" and
/// "none" change nothing. Of a forward function; an error where no weight is frozen, or all are of
/// 8 bits already, for an unknown name, or where there is a backward pass already.
absl::StatusOr<bool> QuantizeFrozen(ir::Function& function, absl::string_view dtype);

/// Gives backward its own Casts of quantized weights: so what is kept from forward to backward are
/// the weights as they are stored, and each phase makes of them what it multiplies with. False
/// where there is nothing to do.
bool CastAgainInBackward(ir::Function& function);

/// "none, int8 or nf4".
std::string FrozenDTypeNames();

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_QUANTIZE_FROZEN_H_
