#ifndef ORRERY_SIMULATOR_TRACES_MICROBATCH_SPANS_H_
#define ORRERY_SIMULATOR_TRACES_MICROBATCH_SPANS_H_

#include <span>
#include <vector>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/rank_tasks.h"

namespace orrery::simulator {

/// The way of a microbatch through a stage that a rank holds, by what the rank computes of it.
struct MicrobatchSpan {
  Time start;                  // of its forward; of its backward where it has no forward
  Time finish;                 // of its backward; of its forward where it has no backward
  TaskId last_forward = {};    // invalid: none
  TaskId first_backward = {};  // invalid: none
};

/// What a rank does once it has all gradients of a step.
struct Updates {
  TaskId last_backward = {};   // before it; invalid: none
  TaskId first = {};           // invalid: none
  std::vector<Time> finishes;  // of each task that updates, in time order
};

/// The ways of all microbatches of the rank that runs `tasks`, by stage and microbatch; and, if
/// wanted, its updates.
std::vector<MicrobatchSpan> MicrobatchSpansOf(const Program& program, const Trace& trace,
                                              std::span<const RankTask> tasks,
                                              Updates* updates = nullptr);

/// From `time` on, so many microbatches are in flight: begun forward, and not yet through backward.
struct InFlight {
  Time time;
  int32_t microbatches = 0;
};
/// One for each moment at which that changes, in time order, from 0 on.
std::vector<InFlight> InFlightOf(std::span<const MicrobatchSpan> spans);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_MICROBATCH_SPANS_H_
