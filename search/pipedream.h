#ifndef ORRERY_SEARCH_PIPEDREAM_H_
#define ORRERY_SEARCH_PIPEDREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/evaluate.h"
#include "transforms/strategies/pipedream_plan.h"

namespace orrery::search {

/// A plan of PipeDream's planner, with what it was made from.
struct PipeDreamStages {
  transforms::strategies::PipeDreamPlan plan;
  std::vector<std::string> names;  // of layers
  std::vector<transforms::strategies::PipeDreamLevel> levels;
  int64_t samples = 0;  // of a minibatch
};

/// PipeDream's plan for all devices of the cluster: nodes, and devices within them where there is
/// more than one node. A minibatch is the batch of the setting, cut into `microbatches`. A node
/// sends through all its NICs at once. Errors: the batch does not divide; a cluster of one device.
absl::StatusOr<PipeDreamStages> PlanPipeDream(const Setting& setting, int64_t microbatches);

/// The plan as text: a line for each stage, with its layers and replicas, and the pace.
std::string PipeDreamText(const PipeDreamStages& stages);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_PIPEDREAM_H_
