#ifndef ORRERY_SEARCH_RUNS_SKIP_AHEAD_H_
#define ORRERY_SEARCH_RUNS_SKIP_AHEAD_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "search/runs/run.h"
#include "simulator/report/report.h"
#include "support/id_table.h"
#include "support/units.h"
#include "transforms/schedules/schedule.h"

// Time is stepped over. With fixed durations a pipeline becomes periodic (F. Baccelli et al.,
// Synchronization and Linearity, 1992): it fills, goes on in the same way for as many microbatches
// as there are, and drains. So a step of few microbatches is played, its steady state found, and
// what one more period adds is added as often as it takes.

namespace orrery::search {

/// The period of so many forwards of the first stage in the steady state of `run`, a run of one
/// batch of a pipeline that is folded or not: of the tasks before the first stage's last forward
/// but `behind`, the last so many forwards' are the ones before them, with all steps of as many
/// microbatches, and so are all that they wait for, each later by the same time; and what came
/// before the steady state has ended a period before the first of what comes behind starts, so that
/// this waits for nothing of it. Then with more microbatches such periods follow each other, and
/// what comes behind is later by as much. None where it is not so, as far as was played.
std::optional<Period> FindPeriodOf(const Run& run, int64_t forwards, int64_t behind = 0);

/// The shortest period of at most `ranks` forwards; where the last ones see
/// already that the end is near, before those.
std::optional<Period> FindPeriod(const Run& run, int64_t ranks);

/// Whether orders have what may be such a period: in those of GPipe, all of whose forwards come
/// first, there is none.
bool MayRepeat(const transforms::RankOrders& orders);

/// The numbers of microbatches that may stand for `all` in a pipeline of `ranks`: few, then more,
/// each congruent to `all` modulo `ranks`, two thirds of it at most. Empty where playing all is as
/// quick.
std::vector<int64_t> FewerMicrobatches(int64_t all, int64_t ranks);

/// Adds to the brief report of `run` so many more of a period that was found in it. False where it
/// does not tell what ranks need then: they hold more with each, and the peak came before; or where
/// the step takes longer than is simulated.
bool AddPeriods(const Skipped& skipped, Run& run);

/// The report of a run with `periods` more periods than `shorter`, where `longer` has one more: all
/// figures grow by as much with each, and peaks by what ranks hold more. None where the two differ
/// by something else than such a period: in time, or in what ranks need at their peaks.
std::optional<simulator::Report> WithPeriods(const simulator::Program& program,
                                             const simulator::Report& shorter,
                                             const simulator::Report& longer, const Period& period,
                                             int64_t periods);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_RUNS_SKIP_AHEAD_H_
