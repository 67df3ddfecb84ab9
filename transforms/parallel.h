#ifndef ORRERY_TRANSFORMS_PARALLEL_H_
#define ORRERY_TRANSFORMS_PARALLEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/auto_shard.h"
#include "transforms/offload.h"
#include "transforms/pipeline.h"
#include "transforms/recompute.h"
#include "transforms/zero.h"

namespace orrery::transforms {

/// How a training step is spread: data-parallel, horizontal (tensor) and pipeline degrees, and the
/// microbatches that each data-parallel replica's share of the batch is cut into.
struct ParallelDegrees {
  int64_t dp = 1;
  int64_t hp = 1;
  int64_t pp = 1;
  int64_t microbatches = 1;
  /// Mesh axes, the one whose neighbours have neighbouring ranks first: "hp,dp,pp" keeps horizontal
  /// groups closest together, as Megatron does. Those of cp and ep, where it does not name them,
  /// come after hp: "hp,cp,ep,dp,pp".
  std::string order = "hp,dp,pp";
  /// The device of each rank, by its number in the cluster; empty: rank r is on device r.
  std::vector<int32_t> devices = {};
  /// Of context parallelism, which splits sequences; and of the experts: ranks that share the
  /// experts among them, and split the batch beside dp.
  int64_t cp = 1;
  int64_t ep = 1;

  int64_t ranks() const { return dp * hp * pp * cp * ep; }
};

/// The order with the axes cp and ep where it leaves them out: after hp.
std::vector<std::string> FullOrder(absl::string_view order);

/// The mesh that `degrees` describes; axes cp and ep only where they are more than 1. An error when
/// a degree is below 1, or the order does not name dp, hp and pp once each.
absl::StatusOr<ir::Mesh> MakeMesh(const ParallelDegrees& degrees);

/// How to find out what each axis does to each value.
struct SpreadOptions {
  /// By cost (AutoShard); null: by Megatron's pattern (Shard), which knows dp and hp only.
  const ShardingPrices* prices = nullptr;
  /// `memory_limit` of one rank; `microbatches` and `in_flight` are those of the degrees.
  AutoShardOptions sharding = {};
  /// How the stages are cut, and which rank holds which.
  PartitionOptions stages = {};
  /// Microbatches that the schedule has in flight on the first stage; 0: one a stage.
  int64_t in_flight = 0;
  /// Where microbatches are slices of the sequence of each sample (transforms/slice_sequence.h):
  /// as many as the degrees have of them, one after the other. Empty: they are parts of the batch.
  /// InvalidArgument where they do not follow one another from the begin of the sequence to its
  /// end. Infeasible with context parallelism, and with activations on the host.
  std::vector<SliceRange> slices = {};
  /// The slice that shardings, stages and recomputation are decided on, where `slices` are to be
  /// measured only, and need not follow one another. No rows: one of average length in the middle.
  SliceRange decided_on = {};
  /// Whether weights are updated after each microbatch, as in asynchronous schedules.
  bool updates_each_microbatch = false;
  /// What forward keeps for backward.
  RecomputePolicy recompute = {};
  /// What data-parallel ranks share out. Infeasible with an asynchronous schedule.
  ZeroOptions zero = {};
  /// Whether products of linear layers read 8-bit copies (Fp8Mixed). Costs of shardings are those
  /// of 16 bits.
  bool fp8_mixed = false;
  /// What is kept in the memory of the host. Infeasible of the optimizer with an asynchronous
  /// schedule.
  OffloadPolicy offload = {};
};

/// Spreads a whole training step: Microbatch or SliceSequence, then AutoShard or Shard, then
/// Fp8Mixed, then PartitionStages, Recompute, OffloadActivations, ApplyZero and OffloadOptimizer;
/// of slices, AddSlices. Infeasible where a degree does not divide what it splits; an error for
/// degrees or options that make no sense.
absl::StatusOr<PipelinedStep> ParallelTransform3d(const ir::Function& function,
                                                  const ParallelDegrees& degrees,
                                                  const SpreadOptions& options = {});

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PARALLEL_H_
