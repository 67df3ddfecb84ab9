#ifndef ORRERY_IMPORTER_BATCH_REBATCH_H_
#define ORRERY_IMPORTER_BATCH_REBATCH_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "importer/batch/batch_positions.h"
#include "ir/function.h"

namespace orrery::importer {

/// The function with its batch (ir/batch.h) in no attribute, as far as the batch goes, so that
/// another one is a matter of inferring types again. An export with a fixed batch has it in the
/// shapes of Reshapes and Expands, in ends of Slices, and in constants as large as the batch.
///
/// The batch is followed from the data inputs: each op is asked what becomes of its results when
/// the batch doubles. A Reshape gets -1 for the dimension that has the batch: the one at the same
/// position of the row-major order, and of several (a batch of 1 fits anywhere) the first of
/// exactly its size. Other sizes of that shape are written out. An Expand keeps the dimension of
/// its operand, or is marked with `batch_dim` where it makes the batch. A Slice of the whole batch
/// goes. A constant that must follow the batch becomes the Expand of one of its rows, when they are
/// equal; so does what has the size 1 there.
///
/// An error names the first op that cannot follow: one whose value has the batch in two dimensions,
/// that takes part of a batch, or that needs a tensor of another size than it has.
///
/// With a rare batch every dimension that is a multiple of it has the batch, so that all that makes
/// one is known beforehand.
absl::StatusOr<ir::Function> MakeBatchFree(const ir::Function& function,
                                           BatchSize size = BatchSize::kOrdinary);

/// The first op with an attribute, or constant, that is a multiple of `batch`, other than where
/// MakeBatchFree leaves the batch. With a batch that is a large prime, this tells that the function
/// computes with it; nothing where it does not.
std::optional<ir::OpId> ComputesWithBatch(const ir::Function& function, int64_t batch);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BATCH_REBATCH_H_
