#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_EXECUTE_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_EXECUTE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "transforms/redistribution/move_set.h"
#include "transforms/redistribution/search.h"
#include "transforms/redistribution/step.h"

// Carries out a redistribution on numbers, rank by rank and element by element: the oracle of all
// planners. A rank knows only what it holds and what a step lets it have from the ranks of its
// group. What is counted is what moves; no formula of a cost model is used.

namespace orrery::transforms::redistribution {

/// What the ranks did in one step.
struct ExecutedStep {
  std::vector<int64_t> sent;      // elements, by rank
  std::vector<int64_t> received;  // elements, by rank
  int64_t held = 0;               // the most elements that a rank holds after the step

  int64_t most_sent() const;
  int64_t most_received() const;
};

struct Execution {
  std::vector<ExecutedStep> steps;

  /// Elements that all ranks together send in all steps.
  int64_t sent() const;
};

/// The most elements that all ranks together may have room for: the size of the tensor times the
/// number of ranks.
inline constexpr int64_t kMostExecuted = int64_t{1} << 26;

/// Starts from `problem.from`, takes `steps`, and checks that every rank then holds what
/// `problem.to` says, with values that are right to the last bit. An error names the step, the rank
/// and the element. Groups are the ranks that differ only along the axes of a step; of a reblock
/// without axes, along those that split its `from` dimension. A reduction takes each element to one
/// rank of the group, which sends the result to those that want it. Where several ranks of a group
/// hold an element, the next one after the receiver sends it.
absl::StatusOr<Execution> Execute(const Problem& problem, const std::vector<Step>& steps);
absl::StatusOr<Execution> Execute(const Problem& problem, const RedistributionPlan& plan);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_EXECUTE_H_
