#ifndef ORRERY_SEARCH_PLANNERS_EXPERT_H_
#define ORRERY_SEARCH_PLANNERS_EXPERT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "search/search.h"
#include "search/spaces/plan_list.h"

// What an engineer would begin with: the plan that others are held against.

namespace orrery::search {

/// The plans of a space in the order in which an engineer tries them, by the rules of Narayanan et
/// al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021,
/// section 5: as little model parallelism as fits, of that tensor parallelism within a node first,
/// then pipelines, with 1F1B and small microbatches; an optimizer shared out over data-parallel
/// ranks (ZeRO 1); recomputation before more parallelism, of attention alone before all. What few
/// train with (other schedules, context parallelism, offload, orders of axes) comes last.
/// `batch_size` in samples, `devices_a_node` of the cluster.
std::vector<size_t> ExpertOrder(const PlanList& plans, int64_t batch_size, int64_t devices_a_node);

/// What came of the expert's plan.
struct ExpertChoice {
  size_t place = 0;  // in the list
  /// Of the plan at that place, then of what was tried in its place (SearchOptions::relief).
  std::vector<Result> results = {};
  size_t best = 0;     // of the results, the one that counts
  int64_t played = 0;  // plans, until it was found

  const Result& result() const { return results[best]; }
};

/// The first in that order that fits, and of those that differ from it in the number of
/// microbatches alone the fastest that is found by halving it as long as that helps. None where
/// none of the first `most` fits, `options.stop` came before, or so many
/// seconds as `options.budget` has, or a minute, had passed. Of `options` relief, stop and budget
/// are read.
absl::StatusOr<std::optional<ExpertChoice>> PlayExpert(const SettingOf& setting_of,
                                                       const PlanList& plans,
                                                       const SearchOptions& options, size_t most);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_PLANNERS_EXPERT_H_
