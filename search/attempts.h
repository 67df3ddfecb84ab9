#ifndef ORRERY_SEARCH_ATTEMPTS_H_
#define ORRERY_SEARCH_ATTEMPTS_H_

#include "absl/status/statusor.h"
#include "search/plan_player.h"
#include "search/runs/run.h"

namespace orrery::search {

/// Plays a prepared plan in as many ways as it takes, and returns the best run: the fastest of
/// those that fit in memory, or else the one that needs the least. What prices cannot tell is
/// played: each way of attention where the plan leaves it open, Megatron's pattern beside what
/// costs the least, each with the sequence whole, split, and split with what is gathered of it kept
/// in parts; shardings and stages that need less memory. So a flag that is left out is not worse
/// than one that is given, but for what ADR 16 does not promise. The ways are the same whatever the
/// memory, so that more of it is never worse; where weights alone do not fit, or the first way
/// needs more than eight times what there is, there is the first only. Where the player's budget
/// ends before, the best until then; `Run::all_ways` tells. Infeasible where the first way is.
absl::StatusOr<Run> BestRun(PlanPlayer& player);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_ATTEMPTS_H_
