#ifndef ORRERY_TRANSFORMS_STAGES_DEALT_ORDERS_H_
#define ORRERY_TRANSFORMS_STAGES_DEALT_ORDERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "transforms/schedules/schedule.h"

// Orders where each microbatch is run by one replica of each stage, as PipeDream deals them out
// (Narayanan et al., SOSP 2019, section 3.2: 1F1B-RR), stages having their own numbers of replicas.

namespace orrery::transforms {

/// By stage and microbatch, the replica that runs it, from 0.
using DealtMicrobatches = std::vector<std::vector<int32_t>>;

/// Deals microbatches to replicas so that replica r has shares[r] of them in all, and about that
/// part of the first ones, however many; of equal shares in turn. Their number is the sum. Aborts
/// for a share below 0 and a sum below 1.
std::vector<int32_t> DealInShares(const std::vector<int64_t>& shares);

/// How many microbatches the replica of a stage has that has most of them; by microbatch, who runs
/// it.
int64_t MostDealt(const std::vector<int32_t>& replica_of);

/// Microbatches that a replica of each stage has under way before its first backward, as 1F1B-RR
/// begins: the replicas of this stage and those after it, over its own, rounded up.
std::vector<int64_t> UnderWay(const std::vector<int64_t>& replicas);

/// The orders of all replicas, stage by stage, with slots. Where all stages deal alike, each
/// replica and those of its number are a pipeline by itself, in the orders of the schedule; else
/// replicas go by 1F1B-RR, or forwards first of `gpipe`. Infeasible (kSchedule) for other schedules
/// there, and for those of several chunks a rank. Of an asynchronous schedule (CheckDealtOnAndOn)
/// replicas of a stage run backwards round by round: slots of a round come before those of the
/// next.
absl::StatusOr<RankOrders> DealtOrders(const PipelineSchedule& schedule,
                                       const DealtMicrobatches& replica_of);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_DEALT_ORDERS_H_
