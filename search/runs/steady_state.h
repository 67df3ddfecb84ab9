#ifndef ORRERY_SEARCH_RUNS_STEADY_STATE_H_
#define ORRERY_SEARCH_RUNS_STEADY_STATE_H_

#include <cstdint>
#include <vector>

#include "simulator/program/program.h"
#include "simulator/report/report.h"
#include "transforms/schedules/schedule.h"

// Asynchronous pipelines never drain: a step of one is what two runs of a full pipeline differ by.

namespace orrery::search {

/// Batches of `shape.microbatches` that the shorter run has: enough to fill the pipeline, and one.
/// One where the schedule is synchronous. Of microbatches that are dealt, `replicas` of each stage:
/// as many that no round of replicas is begun and not ended.
int32_t RoundsFor(const transforms::PipelineSchedule& schedule,
                  const transforms::PipelineShape& shape,
                  const std::vector<int64_t>& replicas = {});

/// The period of the steady state, in batches, after which a full pipeline is where it was: a stage
/// goes through its versions of the weights in as many updates as there are stages, and not each
/// need take as long as the next. Of microbatches that are dealt it is as many as are under way on
/// all stages, and more, up to whole rounds of the replicas of each.
int32_t RoundsOfAPeriod(const transforms::PipelineSchedule& schedule,
                        const transforms::PipelineShape& shape,
                        const std::vector<int64_t>& replicas = {});

/// The report of one of the `batches` by which two runs of a full pipeline differ: filling and
/// draining are in both. `longer` is that of `program`, and memory is its.
simulator::Report Difference(const simulator::Program& program, simulator::Report longer,
                             const simulator::Report& shorter, int32_t batches);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_RUNS_STEADY_STATE_H_
