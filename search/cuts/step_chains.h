#ifndef ORRERY_SEARCH_CUTS_STEP_CHAINS_H_
#define ORRERY_SEARCH_CUTS_STEP_CHAINS_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "ir/function.h"
#include "transforms/stages/pipeline.h"

namespace orrery::search {

/// From `begin` up to, and without, `end`.
struct PositionRange {
  size_t begin = 0, end = 0;

  friend bool operator==(const PositionRange&, const PositionRange&) = default;
};

/// Which ops of a microbatch wait for each other, wherever the model is cut into stages. Stages are
/// parts of forward in its order, and run their ops in that order; a backward op runs where its
/// forward op does.
struct StepChains {
  /// Of each position in forward's order, whether the op is made from data and the loss waits for
  /// it: stage by stage, all of them follow each other, but for those in a gap where stages meet.
  std::vector<char> forward;
  /// Of forward, what lies between two ops in a row of one path from the first op to the loss.
  std::vector<PositionRange> gaps;
  /// Positions in backward's order: the path from the gradient of the loss that takes longest.
  std::vector<size_t> backward;
  /// A stage without an op of both paths has forward ops of one of the first ranges, of positions,
  /// and of `backward` those of one of the second, of its elements: from one product with a
  /// parameter that is on both paths to the next.
  std::vector<PositionRange> outside_forward, outside_backward;
};

/// Those of a step in one stage. `seconds` says how long backward ops take.
StepChains FindChains(const transforms::PipelineStage& stage,
                      const std::function<double(ir::OpId op)>& seconds);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_CUTS_STEP_CHAINS_H_
