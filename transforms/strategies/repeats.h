#ifndef ORRERY_TRANSFORMS_STRATEGIES_REPEATS_H_
#define ORRERY_TRANSFORMS_STRATEGIES_REPEATS_H_

#include <vector>

#include "absl/status/status.h"
#include "transforms/strategies/model.h"
#include "transforms/strategies/solve_model.h"

namespace orrery::transforms::strategies {

/// Says where the blocks differ, if they do. For a model as ModelOf gives it.
absl::Status ValidateRepeats(const Model& model, const std::vector<RepeatedBlocks>& repeats);

/// The cheapest choice for `model`, which has no limits and repeats that are valid. All blocks but
/// the first and the last become one table between their boundaries, the nodes that the block
/// before touches: the table of one block, by elimination, raised to their number in min-plus
/// algebra, by squaring. Blocks with boundaries too large for that are solved one by one.
ModelSolution SolveRepeated(const Model& model, const std::vector<RepeatedBlocks>& repeats,
                            const SolveOptions& options);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_REPEATS_H_
