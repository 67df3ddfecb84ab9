#ifndef ORRERY_LOWERING_BLOCKS_BUCKETS_H_
#define ORRERY_LOWERING_BLOCKS_BUCKETS_H_

#include <vector>

#include "cost_models/gradient_compression.h"
#include "lowering/blocks/task_template.h"
#include "simulator/program/program.h"
#include "support/units.h"

// Gradients are reduced while backward still runs, in buckets, as data-parallel training does it
// (Li et al., "PyTorch Distributed", VLDB 2020). A stream runs in order, so a reduction that is
// queued behind one whose gradient is made later waits for nothing; and many small reductions pay
// many latencies.

namespace orrery::lowering {

/// Puts the collectives of `update` that wait for none of its kernels first, in the order in which
/// the tasks of `backward`, the last one to run before it, make what they reduce, but those over hp
/// and what waits for them after all others: their stream has all of backward's before them. In
/// this order,
/// those of one stream, group, kind and data type are merged into buckets of at most `bucket_size`
/// (0: none are merged; a larger gradient is a bucket of its own). All buckets are of one size: the
/// first is not made smaller, as PyTorch's is.
///
/// A bucket is one collective of all its members' bytes. It waits for what each of them waits for,
/// and what waited for one of them waits for it. It takes no memory of its own: gradients are views
/// of it, as in Megatron's contiguous buffers.
///
/// `update` must tell every dependency (TemplateContext::every_dependency); those that the order of
/// a stream implies are gone afterwards. What merged tasks are called goes to the labels of
/// `program`.
/// `sizes`: of each task of `update`, afterwards the sum of those that a bucket has; or none.
void FormBuckets(const TaskTemplate& backward, Bytes bucket_size, TaskTemplate& update,
                 simulator::Program& program,
                 std::vector<cost_models::GradientSize>* sizes = nullptr);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_BUCKETS_H_
