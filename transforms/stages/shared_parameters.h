#ifndef ORRERY_TRANSFORMS_STAGES_SHARED_PARAMETERS_H_
#define ORRERY_TRANSFORMS_STAGES_SHARED_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.h"
#include "transforms/stages/stage_plan.h"

namespace orrery::transforms {

/// Lets every rank with stages that read a parameter have a copy of it, and updates all copies
/// alike. Expects each op to have its stage. `ranks`: that hold each stage; empty: one each.
///
/// What sums up the gradient of such a parameter from what several stages make of it is done once a
/// step, in the update: with two copies on both ranks, which exchange their parts (as much as an
/// all-reduce of two ranks); with more on the last of them, which sends the others the sum.
/// Megatron-LM does the same for tied embeddings, which the first and the last stage read.
void ShareParameters(const ir::Function& function, const std::vector<int32_t>& ranks,
                     StagePlan& plan);

/// What a stage updates of these parameters, as positions among them: by one optimizer, if any; and
/// with `plan.late_updates` by another one what the stage has the last of several copies of.
std::vector<std::vector<size_t>> UpdatesOf(const StagePlan& plan, int32_t stage,
                                           std::span<const ir::ValueId> parameters);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_SHARED_PARAMETERS_H_
