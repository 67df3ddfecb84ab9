#ifndef ORRERY_LOWERING_ASTRA_PLAN_H_
#define ORRERY_LOWERING_ASTRA_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/collectives/collective_kind.h"
#include "lowering/transfers.h"

namespace orrery::lowering {

/// What one rank does in a phase of a chunk.
struct AstraPhase {
  struct Message {
    int32_t to = 0;
    simulator::FlowId flow;
  };
  std::vector<Message> sends = {};
  int32_t receives = 0;
  Bytes reduced = {};  // of each message that is received: local memory is charged for it
};

/// What one rank does with a chunk in a dimension: `phases[order[i]]` one after the other.
struct AstraRankPlan {
  std::vector<AstraPhase> phases = {};
  std::vector<int32_t> order = {};
};

/// The plans of all ranks of a dimension for one kind of step and size.
struct AstraStepPlan {
  std::vector<AstraRankPlan> ranks = {};
};

/// The step of a chunk of `size` bytes, on the links of `links`.
absl::StatusOr<AstraStepPlan> PlanAstraStep(cost_models::CollectiveKind kind,
                                            absl::string_view algorithm, Bytes size,
                                            LinkResources& links);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_ASTRA_PLAN_H_
