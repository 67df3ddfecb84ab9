#ifndef ORRERY_TRANSFORMS_SIMPLIFY_BATCH_RULES_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_BATCH_RULES_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/builder.h"
#include "ir/function.h"
#include "transforms/simplify/batch_layout.h"

// Which ops work as well on values that have the batch elsewhere, and how.

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

/// A result of an op whose rows stand in another order: rows of `layout`, or what has no rows.
struct BatchResult {
  ir::ValueId value;
  std::optional<BatchLayout> layout;
};

/// The same for an op that computes each row of [time · batch] by itself, by its sharding rule:
/// rows are seen as [batch · time]. All operands with the batch must be layouts.
std::vector<BatchResult> ApplyToSamples(const BatchRuleCall& call);

/// The value of `layout`, of `dims`: a view of its base, transposed where it must be.
ir::ValueId ViewOf(ir::Builder& builder, const BatchLayout& layout, const ir::Dims& dims,
                   absl::string_view name);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_BATCH_RULES_H_
