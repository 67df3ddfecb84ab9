#ifndef ORRERY_SEARCH_VIEWS_CHANGES_H_
#define ORRERY_SEARCH_VIEWS_CHANGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/evaluate.h"

// Which single change of a plan helps most: its neighbours along every axis are searched.

namespace orrery::search {

/// The neighbours of `plan`: other values of one axis, those of a full search and the examples of
/// its record, as long as they are of the same training step; and two degrees with the same
/// product, with as many samples in a microbatch or as many microbatches. What means nothing beside
/// the new value is left out of it. Without axes that are a plan's own (slices, stages by hand,
/// orders from a file, pins).
std::vector<ParallelPlan> SingleChanges(const Setting& setting, const ParallelPlan& plan);

/// What became of the neighbours of a plan.
struct TriedChanges {
  size_t tried = 0;          // of which bounds or a play tell that they are no better
  size_t left = 0;           // that were not played
  std::vector<Result> best;  // that fit, the fastest first, whether or not faster than the plan
  /// The step, if the host launched kernels in no time; none where it does.
  std::optional<Duration> without_launches = {};
};

/// Searches the neighbours of `plan`, of which `run` is, for the `most` fastest, on all processors.
/// Plays as many as take so much work (PlayBudget), if each takes as much as `run`, and a few in
/// any case: the others are left. What takes as long and as much memory as the plan itself is no
/// change, and of the values of one axis the best counts.
absl::StatusOr<TriedChanges> TryChanges(Setting& setting, const ParallelPlan& plan, const Run& run,
                                        int64_t most, int64_t work);

/// What `to` has otherwise than `from`, as flags of `simulate`: "--hp 1 --dp 4".
std::string ChangeText(const ParallelPlan& from, const ParallelPlan& to);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_CHANGES_H_
