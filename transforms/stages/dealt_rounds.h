#ifndef ORRERY_TRANSFORMS_STAGES_DEALT_ROUNDS_H_
#define ORRERY_TRANSFORMS_STAGES_DEALT_ROUNDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "transforms/schedules/schedule.h"
#include "transforms/stages/dealt_orders.h"
#include "transforms/stages/pipeline.h"

// PipeDream as its planner means it (Narayanan et al., SOSP 2019, sections 3.2 and 3.3): the R_s
// replicas of stage s run microbatches in turn and never drain. R_s microbatches, one each, are a
// round: their gradients are added up, and all replicas update. A replica does not stand still
// meanwhile, which is what the planner's max(compute, all-reduce) / R_s supposes:
//
//   replica 0 | F0 B0    F2 B2 U01   F4 B4 U23
//   replica 1 |    F1 B1    F3 B3 U01   F5 B5 U23
//   all-reduce|         01          23
//
// So an update comes one backward of the replica later than it would without replicas.
// PipeDream-2BW (ICML 2021) likewise, where a round is a batch of as many microbatches for each
// replica.

namespace orrery::transforms {

/// Of stages whose microbatches are dealt, how many replicas each has; empty: they are not dealt.
std::vector<int64_t> ReplicasOf(const UnequalStages& unequal);

/// What keeps the schedule from going on with microbatches that are dealt in turn: Infeasible
/// (kUnsupported). OK for one that drains, and for 1F1B's order.
absl::Status CheckDealtOnAndOn(const PipelineSchedule& schedule);

/// Microbatch m of so many is run by replica m mod R_s of stage s.
DealtMicrobatches DealInTurn(const std::vector<int64_t>& replicas, int64_t microbatches);

/// After how many microbatches all stages have had whole rounds: the least common multiple of their
/// replicas, 1 of none; at most 2^30.
int64_t MicrobatchesInRounds(const std::vector<int64_t>& replicas);

/// Of an asynchronous schedule with `microbatches` a batch, how many all replicas of a stage run
/// between two updates: 1 where each replica runs one, else whole rounds of all stages, and at
/// least a batch and all that are under way.
int64_t DealtUpdateEvery(const PipelineSchedule& schedule, const std::vector<int64_t>& replicas,
                         int64_t microbatches);

/// The same of each replica of a stage alone, which has so many: 1, or its part of `every`.
int64_t UpdateEveryOfReplica(int64_t every, int64_t replicas);

/// How many of its own backwards after the last of a round a replica updates by it: 0 of a stage of
/// one replica, where there is nothing to wait for, else 1.
int64_t BackwardsBehind(int64_t replicas);

/// Versions of its weights that each replica of a stage keeps: as many as it has microbatches under
/// way (UnderWay) of an asynchronous schedule, those of the schedule where an update is of a batch,
/// 1 of others. That an update is late moves all versions alike.
int32_t DealtWeightVersions(const PipelineSchedule& schedule, const std::vector<int64_t>& replicas,
                            int32_t stage);

/// As Staleness, of each stage, in updates of its replicas: of orders of a replica each. `every`:
/// DealtUpdateEvery.
std::vector<int32_t> DealtStaleness(const RankOrders& orders, const std::vector<int64_t>& replicas,
                                    int64_t every);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_DEALT_ROUNDS_H_
