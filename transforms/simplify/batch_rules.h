#ifndef ORRERY_TRANSFORMS_SIMPLIFY_BATCH_RULES_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_BATCH_RULES_H_

#include <vector>

#include "ir/builder.h"
#include "ir/function.h"
#include "transforms/simplify/batch_layout.h"

// Which ops work as well on values that have the batch first, and how.

namespace orrery::transforms {

/// An operand of an op whose function is being copied.
struct BatchOperand {
  ir::Dims dims;                        // of the value
  bool has_batch = false;               // whether some dimension grows with the batch
  const BatchLayout* layout = nullptr;  // null: the value stands as it is, `plain`
  ir::ValueId plain;
};

/// An op, some operands of which are layouts, and where what stands for it is to be appended.
struct BatchRuleCall {
  const ir::Function& function;
  ir::OpId op;
  ir::Builder& builder;
  std::vector<BatchOperand> operands;
};

/// Appends the op made of the bases of its operands, and returns the layouts of its results. Empty,
/// and nothing is appended that anybody reads, where no rule says how: the op mixes the dimensions
/// that the layouts part, or works along the batch.
std::vector<BatchLayout> ApplyBatchRule(const BatchRuleCall& call);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_BATCH_RULES_H_
