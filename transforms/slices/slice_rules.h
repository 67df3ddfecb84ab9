#ifndef ORRERY_TRANSFORMS_SLICES_SLICE_RULES_H_
#define ORRERY_TRANSFORMS_SLICES_SLICE_RULES_H_

#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/training/step_phases.h"

// What ops are to slices of the sequence (transforms/slices/slice_sequence.h).

namespace orrery::transforms {

/// Why an Attention, or its gradient, is not one in which a position meets itself and all earlier
/// ones, no more and no less; empty when it is.
absl::string_view WhyNotCausal(const ir::Function& function, ir::OpId attention);

/// The keys and values that an AttentionGrad takes: they stay until then.
IdTable<ir::ValueId, char> FindReadBack(const ir::Function& function);

/// Whether what all slices give, for an op that puts positions together, adds up to what the whole
/// gives: losses, and gradients.
bool SumsUp(const ir::Function& function, ir::OpId op, StepPhase phase);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SLICES_SLICE_RULES_H_
