#ifndef ORRERY_LOWERING_BLOCKS_UNITS_H_
#define ORRERY_LOWERING_BLOCKS_UNITS_H_

#include "lowering/blocks/task_template.h"
#include "simulator/program/program.h"

namespace orrery::lowering {

/// Makes one collective of the collectives of a unit that stand one after another in
/// `task_template`, where group, kind and data type are the same. It waits for what any of them
/// waits for. What they are called together goes to the labels of `program`. No more than `most` of
/// a unit becomes one; 0: all of it.
///
/// A gather that waits for nothing, as parameters are there all the time, waits for the kernel that
/// stands before it: so far ahead is it issued, and no farther (transforms::OrderUnits). Without
/// such a kernel it has a gate (TemplateTask::gate). Not where
/// everything is `blocking`: there it has its position in the one stream.
///
/// The kernels after a scatter wait for the scatter before it, as in FSDP: else gradients that are
/// yet to be scattered would pile up where the network is slow.
void FormUnits(bool blocking, Bytes most, TaskTemplate& task_template, simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_UNITS_H_
