#ifndef ORRERY_TRANSFORMS_MEMORY_MUON_UPDATE_H_
#define ORRERY_TRANSFORMS_MEMORY_MUON_UPDATE_H_

#include "absl/status/status.h"
#include "ir/function.h"
#include "transforms/stages/pipeline.h"

// Muon on many ranks. What it makes orthogonal are whole matrices, and a rank may have a part of
// one: a share of hp, or ZeRO's. As in Moonshot's distributed Muon (Liu et al. 2025, algorithm 1)
// each rank updates its part of the momentum, gathers that of the others in the type of the
// gradient, makes the whole matrix orthogonal, and takes its part of the result.

namespace orrery::transforms {

/// Whether the function has an update by Muon that ExpandMuon has not seen.
bool HasMuon(const ir::Function& function);

/// Puts MuonMomentum, gathers where a matrix is split, NewtonSchulz, slices and Sgd in the place of
/// each Muon in the updates of `step`, for one parameter after the other.
///
/// To come after ApplyZero, which says who holds what.
absl::Status ExpandMuon(PipelinedStep& step);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_MUON_UPDATE_H_
