#ifndef ORRERY_IR_MODEL_FACTS_H_
#define ORRERY_IR_MODEL_FACTS_H_

#include <cstdint>
#include <optional>

#include "ir/function.h"

// What the inputs of a model tell about it, and its mixtures of experts. Nothing else in a function
// says how long a sequence is, or in which type most of it computes.

namespace orrery::ir {

/// Positions of each sample, along which a sequence can be split or sliced: dimension 1 of the
/// first data input of whole numbers, which are tokens, that has the batch and one more dimension;
/// else of the first of any type; 0 when there is none. An image has as many as channels.
int64_t SequenceLength(const Function& function);

/// Tokens of each sample, for tokens per second: dimension 1 of the first data input of whole
/// numbers that has two dimensions. 1 when there is none: then a token is a sample, as an image is.
int64_t TokensASample(const Function& function);

/// The type in which most of a model computes: that of its first parameter; nothing when it has
/// none.
std::optional<DType> ComputeType(const Function& function);

/// Experts that ranks can share out in every mixture of the model: the greatest common divisor of
/// their numbers; 0 when there is no mixture.
int64_t CommonExperts(const Function& function);

}  // namespace orrery::ir

#endif  // ORRERY_IR_MODEL_FACTS_H_
