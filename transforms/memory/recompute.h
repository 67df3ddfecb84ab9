#ifndef ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_H_
#define ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_H_

#include "absl/status/status.h"
#include "transforms/memory/recompute_policy.h"
#include "transforms/stages/pipeline.h"

// Activation recomputation (Chen et al. 2016; Korthikanti et al. 2022): backward
// rematerializes a part of what forward has made, instead of keeping it.

namespace orrery::transforms {

/// Whether the rule leaves forward anything to drop: where not, Recompute changes nothing.
bool Rematerializes(const KeepRule& rule);

/// Rewrites each stage so that forward keeps what `rule` says. What backward reads beyond that,
/// it rematerializes from what is kept, from parameters and from data, just before its first use,
/// by the ops of forward, with their collectives. It computes the same numbers: dropout drops the
/// same elements.
///
/// Never rematerialized is what other stages have sent, what is added up or collected over
/// microbatches, and what the update reads. A view is looked at again, and a Relu's gradient reads
/// the result of the Relu. An error when a pattern finds nothing that is kept, or
/// the model has no such module.
absl::Status Recompute(PipelinedStep& step, const KeepRule& rule);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_H_
