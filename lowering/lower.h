#ifndef ORRERY_LOWERING_LOWER_H_
#define ORRERY_LOWERING_LOWER_H_

#include "absl/status/statusor.h"
#include "lowering/placement/lowering_input.h"
#include "simulator/program/program.h"
#include "transforms/schedules/schedule.h"

// Lowering turns a pipelined step, a schedule and a cluster into a Program: durations and bytes are
// numbers from here on.
//
// Each phase of a stage becomes a task template once; the schedule instantiates it. All ranks of a
// stage do the same at the same time where the network treats them alike: then one of them stands
// for all ("folding"), with the true group sizes.
//
// Sends follow the compute of their time slot, in order of the sending stage. On streams of their
// own they overlap with everything that does not need them; with `blocking`, where a rank has one
// stream for everything, this order is one in which no two ranks wait for each other.

namespace orrery::lowering {

/// Whether a task of that label is of the step: of its stage and phase.
bool IsOf(const simulator::TaskLabel& label, const transforms::ScheduleStep& step);

/// The program of one training step. An error when the mesh has more ranks than the cluster has
/// devices.
absl::StatusOr<simulator::Program> Lower(const LoweringInput& input);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_LOWER_H_
