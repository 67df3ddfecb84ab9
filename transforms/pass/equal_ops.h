#ifndef ORRERY_TRANSFORMS_PASS_EQUAL_OPS_H_
#define ORRERY_TRANSFORMS_PASS_EQUAL_OPS_H_

#include "ir/function.h"

// When two ops are one: what whoever looks for common subexpressions goes by.

namespace orrery::transforms {

/// Whether any other op of that kind, with the same attributes, operands and types of results,
/// computes the same. Not of ops that do more than their results say, nor of what is drawn at
/// random, nor of constants that have not kept their elements.
bool IsWhatItReads(const ir::Function& function, ir::OpId op);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PASS_EQUAL_OPS_H_
