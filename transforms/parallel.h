#ifndef ORRERY_TRANSFORMS_PARALLEL_H_
#define ORRERY_TRANSFORMS_PARALLEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/pipeline.h"

namespace orrery::transforms {

/// How a training step is spread: data-parallel, horizontal (tensor) and pipeline degrees, and the
/// microbatches that each data-parallel replica's share of the batch is cut into.
struct ParallelDegrees {
  int64_t dp = 1;
  int64_t hp = 1;
  int64_t pp = 1;
  int64_t microbatches = 1;
  /// Mesh axes, the one whose neighbours have neighbouring ranks first: "hp,dp,pp" keeps horizontal
  /// groups closest together, as Megatron does.
  std::string order = "hp,dp,pp";
  /// The device of each rank, by its number in the cluster; empty: rank r is on device r.
  std::vector<int32_t> devices = {};

  int64_t ranks() const { return dp * hp * pp; }
};

/// The mesh that `degrees` describes. An error when a degree is below 1 or the order is not a
/// permutation of dp, hp and pp.
absl::StatusOr<ir::Mesh> MakeMesh(const ParallelDegrees& degrees);

/// Spreads a whole training step: Microbatch, then Shard, then PartitionStages. Infeasible where a
/// degree does not divide what it splits; an error for degrees that make no sense.
absl::StatusOr<PipelinedStep> ParallelTransform3d(const ir::Function& function,
                                                  const ParallelDegrees& degrees);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PARALLEL_H_
