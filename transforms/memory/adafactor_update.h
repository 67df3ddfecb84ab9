#ifndef ORRERY_TRANSFORMS_MEMORY_ADAFACTOR_UPDATE_H_
#define ORRERY_TRANSFORMS_MEMORY_ADAFACTOR_UPDATE_H_

#include "absl/status/status.h"
#include "ir/function.h"
#include "transforms/stages/pipeline.h"

// Adafactor on many ranks. Its moments are means over rows and columns, and its steps are scaled by
// norms over the whole parameter; a rank may have a part of it: a share of hp or of experts, or
// ZeRO's. Each rank adds up what it has, and the ranks add up these sums, which are small.

namespace orrery::transforms {

/// Whether the function has an update by Adafactor that ExpandAdafactor has not seen, or has left
/// as it was.
bool HasAdafactor(const ir::Function& function);

/// Puts the passes of Adafactor (ir/ops/adafactor.h), each for all parameters before the next one,
/// and all-reduces of what they leave partial in the place of the updates in `step` of parameters
/// that are split. Those that are whole stay in one op. Unsupported where the host updates what is
/// split (`on_host`): its means would wait for the network between its kernels.
///
/// To come after ApplyZero, which says who holds what, and before OffloadOptimizer.
absl::Status ExpandAdafactor(PipelinedStep& step, bool on_host);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_ADAFACTOR_UPDATE_H_
