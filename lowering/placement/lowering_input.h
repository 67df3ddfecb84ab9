#ifndef ORRERY_LOWERING_PLACEMENT_LOWERING_INPUT_H_
#define ORRERY_LOWERING_PLACEMENT_LOWERING_INPUT_H_

#include <vector>

#include "cluster/cluster.h"
#include "cluster/memory_overhead.h"
#include "cost_models/cost_model.h"
#include "cost_models/gradient_compression.h"
#include "lowering/blocks/stack_kernels.h"
#include "lowering/blocks/stack_memory.h"
#include "simulator/program/program.h"
#include "transforms/schedules/schedule.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

class ExchangeStore;

/// What is simulated of a step, in how much detail, and what it may use. It has so many fields:
/// each is a choice of its own.
struct LoweringOptions {
  bool blocking = false;  // communication on the compute stream: no overlap
  /// Simulate one rank a stage where all are alike; or where there would be more tasks than
  /// `most_unfolded_tasks`: of those that are not alike the slowest then sets the pace, which on
  /// machines that one can buy moves the step by less than 0.01 %.
  bool fold = true;
  int64_t most_unfolded_tasks = int64_t{1} << 16;
  Bytes memory_limit = {};     // that a rank may use; 0: no limit
  bool device_memory = false;  // likewise, the memory of its device
  /// Of each rank, beside what the step holds: in residents; but its fragmentation, which follows
  /// from the peak (simulator::AddFragmentation).
  cluster::MemoryOverhead memory_overhead = {};
  StackMemory stack_memory = {};
  StackKernels kernels = {};
  /// At most that much of a stage's gradients is reduced at once; 0: each gradient by itself. Not
  /// read when `blocking`. PyTorch's choice.
  Bytes bucket_size = Bytes(25 << 20);
  /// What ranks exchange in the place of all-reduces of gradients. Not read when `blocking`.
  cost_models::GradientCompression compression = {};
  /// Flows for all communication and resources for all links that carry it, for traces and reports
  /// of links. If not, only for what shares a link with something else. No time depends on it.
  bool every_link = false;
  /// Kernels that follow each other at once whatever happens are one task (FuseRuns).
  bool fuse_runs = false;
  /// Likewise runs and the collectives between them, whose times follow from the first kernel's
  /// (FuseStretches). Only beside `fuse_runs`, and not read when `blocking`.
  bool fuse_stretches = false;
  /// Whether the slowest of many ranks takes longer, as cost models have it (WaitForTheSlowest);
  /// not where ranks draw for themselves how long they take.
  bool stragglers = true;
  /// Whether tasks have names. Figures are the same without.
  bool names = true;
  /// Of collectives, where they can serve a group: elsewhere, and where none is named, the fastest.
  /// Not read by cost models that know no links.
  cost_models::CollectiveChoice algorithms = {};
};

/// A step of the schedule with what its rank runs for it: tasks from `begin` up to `end`, of those
/// the ones of the stage and of the step's phase. Between them may lie those of a step that runs at
/// once.
struct LoweredStep {
  transforms::ScheduleStep step;
  simulator::TaskId begin, end;  // end: the one after the last
};

/// What a program is made from: a step, its order, and what it runs on. All must outlive the call.
struct LoweringInput {
  const transforms::PipelinedStep& step;
  const transforms::PipelineSchedule& schedule;
  const cluster::Cluster& cluster;
  const cost_models::CostModel& cost_model;
  LoweringOptions options = {};
  /// Batches to run one after the other; more than one only for asynchronous schedules.
  int32_t rounds = 1;
  /// Of the step's microbatches so many are run, as if there were no more; 0: all. What ranks hold
  /// the whole time, and whether they are folded, is as with all.
  int64_t first_microbatches = 0;
  /// Where given, gets the steps of the schedule in the order in which they are lowered.
  std::vector<LoweredStep>* lowered = nullptr;
  /// Where given, of the topology of `cluster`: has what steps lowered before exchange, too.
  ExchangeStore* exchanges = nullptr;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_LOWERING_INPUT_H_
