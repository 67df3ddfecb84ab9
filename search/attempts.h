#ifndef ORRERY_SEARCH_ATTEMPTS_H_
#define ORRERY_SEARCH_ATTEMPTS_H_

#include "absl/status/statusor.h"
#include "search/plan_player.h"
#include "search/run.h"

namespace orrery::search {

/// Plays a prepared plan in as many ways as it takes, and returns the best run: one that fits in
/// memory, of those the fastest. What prices cannot tell is played: each way of attention where the
/// plan leaves it open, Megatron's pattern beside what costs the least, and choices of less and
/// less memory where a run does not fit. Where the player's budget ends before, the best until
/// then; `Run::all_ways` tells. Infeasible where the first way is.
absl::StatusOr<Run> BestRun(PlanPlayer& player);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_ATTEMPTS_H_
