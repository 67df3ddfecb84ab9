#ifndef ORRERY_SEARCH_STAGE_PLANS_H_
#define ORRERY_SEARCH_STAGE_PLANS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/evaluate.h"
#include "search/pipedream.h"
#include "search/settings/setting.h"

// Planners that give stages ranks of their own: their plans, to be played like any other.

namespace orrery::search {

/// The plan that PipeDream's planner made, as flags have it: replicas of each stage on devices that
/// follow each other, microbatches dealt to them in turn. What else `base` says stays.
ParallelPlan PlanOfStages(const Setting& setting, const PipeDreamStages& stages,
                          const ParallelPlan& base);

/// A plan that is worth playing, and where it comes from.
struct StagePlan {
  ParallelPlan plan;
  std::string source;  // "optimum", "submeshes of 4"
  double seconds = 0;  // T of the planner's objective; 0: not of it
};

/// Plans for all devices of the cluster, of `base` with its microbatches, as Alpa's planner makes
/// them (Zheng et al., OSDI 2022, section 5): stages of neighbouring layers on submeshes, each
/// sharded by cost within (dp, hp), so that Σ t_i + (B-1) max t_i is least. Devices of a submesh
/// are of one kind and one node, or whole nodes. The first is the optimum; then those with equal
/// submeshes of each size. Layers beyond 32 are grouped. Infeasible where none fits.
absl::StatusOr<std::vector<StagePlan>> AlpaPlans(const Setting& setting, const ParallelPlan& base);

/// Those whose stages are alike, with dp · hp · pp = devices and the microbatches of `base` for
/// each replica.
std::vector<StagePlan> UniformPlans(const Setting& setting, const ParallelPlan& base);

/// Those with data parallelism and shares by speed, where the batch has so many microbatches: for
/// devices of several kinds.
std::vector<StagePlan> SharedPlans(const Setting& setting, const ParallelPlan& base);

/// What a search tries beside the plans of its list, for each number of microbatches that these
/// have, with the rest as in `base`, whose degrees are 1: PipeDream's plan where devices are of one
/// kind, AlpaPlans, and SharedPlans where they are not. What is infeasible is left out.
absl::StatusOr<std::vector<ParallelPlan>> UnequalPlans(const Setting& setting,
                                                       const ParallelPlan& base,
                                                       const std::vector<int64_t>& microbatches);

/// What came of playing each, and which was the best: fits, and is fastest.
struct PlayedPlans {
  std::vector<StagePlan> plans;
  std::vector<Result> results;  // of each
  size_t best = 0;
};

/// Plays all for their figures. Infeasible where none can be played, for the first one's reason.
absl::StatusOr<PlayedPlans> PlayPlans(const Setting& setting, std::vector<StagePlan> plans);

/// A line for each of them, the best first; for people.
std::string PlansText(const Setting& setting, const PlayedPlans& played);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_STAGE_PLANS_H_
