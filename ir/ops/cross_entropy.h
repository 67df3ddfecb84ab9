#ifndef ORRERY_IR_OPS_CROSS_ENTROPY_H_
#define ORRERY_IR_OPS_CROSS_ENTROPY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/op_info.h"
#include "ir/ops/pointwise.h"
#include "ir/tensor.h"

// What the losses of logits and labels share, whether one kernel looks at all classes of a row or
// several at some of them.

namespace orrery::ir {

/// Of a kernel for each logit: maximum, difference, exponential, sum.
inline constexpr double kFlopsALogit = kExpFlops + 3;

/// Ok when operand 0 is logits [..,classes], and operand 1 the label of each row.
absl::Status CheckLogitsAndLabels(const OpTypes& op);
/// Ok when the attribute `batch` is there: the global number of rows.
absl::Status CheckLossBatch(const OpTypes& op);

/// Factors 0, 1, … of the rows of a tensor of so many dimensions; `classes` is the position of the
/// classes, which have none, or past the end.
ShardingRule::Factors RowFactors(size_t rank, size_t classes);

/// Whether a row of that label counts for nothing: it is the attribute `ignore_index`.
bool IsIgnored(const AttributeSet& attributes, int64_t label);
/// The label of a row, of so many classes; -1 for one to be ignored; an error when there is no such
/// class.
absl::StatusOr<int64_t> LabelOf(const Evaluation& e, const Tensor& labels, int64_t row,
                                int64_t classes);

double CrossEntropyFlops(const OpTypes& op, const TypeList& results);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_CROSS_ENTROPY_H_
