#ifndef ORRERY_IR_BATCH_H_
#define ORRERY_IR_BATCH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// The batch of a function is dimension 0 of its first data input that has dimensions. Other data
// inputs have it too when their dimension 0 is as large. No attribute holds it, save for `batch` of
// losses, `shape` of an Expand with a `batch_dim`, and `factor` of a Scale `over_batch` (both are
// gradients of reductions over the batch), so that another batch is a matter of inferring types
// again.

namespace orrery::ir {

/// The batch, in samples; 0 when no data input has dimensions.
int64_t BatchOf(const Function& function);

/// Whether dimension 0 of the input is the batch.
bool HasBatch(const Function& function, const Input& input);

/// For each value the dimension that grows with the batch, the first of several; -1 where none
/// does, and for all values when the function takes no other batch. Infers all types once.
IdTable<ValueId, int8_t> BatchDims(const Function& function);

/// The same, the last of several: where it is another one, samples meet each other.
IdTable<ValueId, int8_t> LastBatchDims(const Function& function);

/// For each value the elements of its dimension `dims` (of BatchDims) that lie outside of the
/// batch: 1 where samples follow each other, 12 in [12 heads · batch]. 0 where there is no batch,
/// or an op has it whose operands do not tell.
IdTable<ValueId, int64_t> OutsideOfBatch(const Function& function,
                                         const IdTable<ValueId, int8_t>& dims);

/// Why dimension `dim` of operand 0 cannot be samples, which know nothing of each other: it is the
/// time of an LSTM, GRU or RNN, or a Roll moves things along it. Empty when it can.
absl::string_view MixesAlong(OpKind kind, const AttributeSet& attributes, size_t dim);

/// What becomes of the number of samples that losses divide by.
enum class LossBatch {
  kScales,  // with the batch
  kStays,   // it counts all microbatches, and the function becomes that of one
};

/// The function with another batch, in samples; all types are inferred again. Requires batch >= 1.
/// Errors are those of RebuildWithInputs; an invalid argument when there is no batch, or when it is
/// the time of a recurrent op.
absl::StatusOr<Function> ChangeBatch(const Function& function, int64_t batch, LossBatch losses);

}  // namespace orrery::ir

#endif  // ORRERY_IR_BATCH_H_
