#ifndef ORRERY_TESTS_SEMANTICS_SPREAD_H_
#define ORRERY_TESTS_SEMANTICS_SPREAD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/function.h"
#include "tests/semantics/interpreter.h"
#include "transforms/pipeline.h"
#include "transforms/schedules/schedule.h"

// Functions run rank by rank over a mesh that is not there: every rank has its own tensors, and a
// collective takes them from all ranks of its group. A pipeline runs stage by stage in the order of
// a schedule.

namespace orrery::semantics {

/// Whole tensors by the names of the values.
using Named = std::map<std::string, Tensor>;

/// What rank `rank` holds of `whole`, a value of type `type`, which must not be partial.
Tensor Scatter(const Tensor& whole, const ir::TensorType& type, const ir::Mesh& mesh, int32_t rank);

/// The whole tensor from the parts of `ranks`: what is partial is added up. `disagreement` is
/// raised to the largest difference between ranks that should hold the same.
Tensor Gather(std::span<const Tensor> parts, const ir::TensorType& type, const ir::Mesh& mesh,
              std::span<const int32_t> ranks, double& disagreement);

/// Runs a function that is spread over its mesh (or not) on every rank of it, from whole inputs to
/// whole outputs. `disagreement` as in Gather.
struct Outcome {
  Named outputs;  // by the name of the value
  double disagreement = 0;
};
Outcome RunAll(const ir::Function& function, const Named& inputs);

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
                              const transforms::StageOrders& orders, const Named& inputs);

}  // namespace orrery::semantics

#endif  // ORRERY_TESTS_SEMANTICS_SPREAD_H_
