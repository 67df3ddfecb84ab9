#ifndef ORRERY_SEARCH_VIEWS_TIMELINE_H_
#define ORRERY_SEARCH_VIEWS_TIMELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "search/evaluate.h"
#include "simulator/program/program.h"
#include "support/units.h"
#include "transforms/schedules/schedule.h"

// What each rank runs when, as the simulation has it: with true durations of uneven stages, with
// sends and collectives, and under contention. The picture of a schedule in unit times is
// transforms/schedules/text.h.

namespace orrery::search {

/// When a rank works at a step of the schedule: from the start of its first kernel to the finish of
/// its last one.
struct StepSpan {
  transforms::ScheduleStep step;
  bool update = false;  // the optimizer's: there is no step
  Time start;
  Time finish;
};

/// The spans of a rank class, by their starts. Two steps that run at once have one span and follow
/// each other, the first of them with `step.with_next`.
std::vector<StepSpan> SpansOf(const Run& run, simulator::RankClassId rank);

/// From when to when a picture goes.
struct TimeWindow {
  Time begin;
  Time end;
};

/// The whole step; of an asynchronous schedule, a period of the steady state: from the moment when
/// the first stage begins with the first batch that finds the pipeline full.
TimeWindow WindowOf(const Run& run, const transforms::PipelineSchedule& schedule,
                    const transforms::PipelineShape& shape);

/// The spans within `window` as a picture of `columns` columns (>= 10), rank classes down (of ranks
/// that are simulated each by itself, the first of each position in the pipeline), time across.
/// "F3=====" is the forward of microbatch 3 and lasts as long as the text; where there is no room
/// for the number, a letter stands alone; "." is a column in which the rank mostly waits. Stages
/// are named where a rank has several. Under it, what a column lasts and what the letters are.
std::string DrawRun(const Run& run, const TimeWindow& window, int32_t columns = 120);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_TIMELINE_H_
