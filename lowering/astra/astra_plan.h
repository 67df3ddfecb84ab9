#ifndef ORRERY_LOWERING_ASTRA_ASTRA_PLAN_H_
#define ORRERY_LOWERING_ASTRA_ASTRA_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/collectives/collective_kind.h"
#include "lowering/network/transfers.h"

namespace orrery::lowering {

/// What one rank does in a phase of a chunk: it sends, and then awaits what it receives.
struct AstraPhase {
  struct Message {
    int32_t to = 0;
    simulator::FlowId flow;
    int32_t position = -1;  // in the receiver's order, of the phase that receives it; -1: as here
  };
  std::vector<Message> sends = {};
  int32_t receives = 0;
  Bytes reduced = {};  // of each message that is received: local memory is charged for it
  /// Over when all that was received is processed; else when all has arrived and one is processed,
  /// unless it is the last.
  bool awaits_processing = false;
};

/// What one rank does with a chunk in a dimension: `phases[order[i]]` one after the other.
struct AstraRankPlan {
  std::vector<AstraPhase> phases = {};
  std::vector<int32_t> order = {};

  const AstraPhase& PhaseAt(size_t position) const {
    return phases[static_cast<size_t>(order[position])];
  }
};

/// The plans of all ranks of a dimension for one kind of step and size.
struct AstraStepPlan {
  std::vector<AstraRankPlan> ranks = {};
};

/// How many messages all ranks send for one chunk.
int64_t MessageCount(const AstraStepPlan& plan);

/// The step of a chunk of `size` bytes, on the links of `links`: one plan, or two that chunks take
/// in turn (the two trees of doubleBinaryTree, of which each takes whole chunks).
absl::StatusOr<std::vector<AstraStepPlan>> PlanAstraStep(cost_models::CollectiveKind kind,
                                                         absl::string_view algorithm, Bytes size,
                                                         LinkResources& links);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_ASTRA_ASTRA_PLAN_H_
