#ifndef ORRERY_IMPORTER_BATCH_REBIND_H_
#define ORRERY_IMPORTER_BATCH_REBIND_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::importer {

/// The function with another batch, in samples: dimension 0 of each data input that has the old one
/// there, and the attribute `batch` of the losses in proportion; all other types follow. The result
/// verifies. Requires batch >= 1. An error names the op that cannot follow, and how to export the
/// model so that it can.
absl::StatusOr<ir::Function> WithBatch(const ir::Function& function, int64_t batch);

/// The function in `dtype`: what is of the floating-point type of most of its parameters (data,
/// parameters, saved values, constants, casts). Another floating-point type beside it is on
/// purpose, a softmax in f32, and stays; so do optimizer state and accumulators. The result
/// verifies.
absl::StatusOr<ir::Function> WithDType(const ir::Function& function, ir::DType dtype);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BATCH_REBIND_H_
