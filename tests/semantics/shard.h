#ifndef ORRERY_TESTS_SEMANTICS_SHARD_H_
#define ORRERY_TESTS_SEMANTICS_SHARD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/execution/execute.h"
#include "ir/function.h"
#include "ir/tensor_parts.h"
#include "transforms/schedules/schedule.h"
#include "transforms/stages/pipeline.h"

// Functions run rank by rank over a mesh that is not there, by ir/execution/execute.h; a pipeline
// runs stage by stage in the order of a schedule. Floats are not rounded, so that whatever computes
// the same gives nearly the same numbers.

namespace orrery::semantics {

using ir::Tensor;

/// Whole tensors by the names of the values.
using Named = ir::NamedTensors;

/// Runs a function that is sharded over its mesh (or not) on every rank of it, from whole inputs to
/// whole outputs.
struct Outcome {
  Named outputs;            // by the name of the value
  double disagreement = 0;  // as ir::Gather has it
};
Outcome RunAll(const ir::Function& function, const Named& inputs);

/// The orders of a schedule, by its name, for the stages and microbatches of a step.
transforms::RankOrders OrdersOf(absl::string_view schedule, const transforms::PipelinedStep& step);

/// Runs all microbatches of a pipelined step in the order that `orders` gives, then its update.
/// Each data-parallel replica cuts its own share of the batch. Outputs that are sums or collections
/// over microbatches go by the name of what is summed. Aborts when a Receive finds nothing sent;
/// what was sent and not received is counted in `lost`.
struct PipelinedOutcome {
  Named outputs;
  double disagreement = 0;
  int lost = 0;
};
PipelinedOutcome RunPipelined(const transforms::PipelinedStep& step,
                              const transforms::RankOrders& orders, const Named& inputs);

}  // namespace orrery::semantics

#endif  // ORRERY_TESTS_SEMANTICS_SHARD_H_
