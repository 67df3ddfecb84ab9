#ifndef ORRERY_TRANSFORMS_TRAINING_PADDING_RULE_H_
#define ORRERY_TRANSFORMS_TRAINING_PADDING_RULE_H_

#include "ir/function.h"
#include "ir/op_info.h"

namespace orrery::transforms {

/// Along which dimensions an op can be made longer: its sharding rule, and what ranks cannot share
/// out but zeros behind it leave as it is: inner dimensions before an activation; the parts of a
/// Split or Concat, each with zeros of its own; classes of a cross entropy, where they are no zeros
/// but logits that take part. Products side by side have a factor each. A single head of keys stays
/// alone however many heads of queries read it. Without operands and results where an op has no
/// rule. Optimizers have none: each tensor is its parameter's.
ir::ShardingRule PaddingRule(const ir::Function& function, ir::OpId op);

/// Whether dimensions of this factor may be longer whatever stands there: a table is looked up at
/// places that it had; queries that are zero, and gradients that are, see to themselves.
bool NeedsNoZeros(ir::OpKind kind);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_PADDING_RULE_H_
