#ifndef ORRERY_TRANSFORMS_MEMORY_ZERO_H_
#define ORRERY_TRANSFORMS_MEMORY_ZERO_H_

#include <cstdint>

#include "absl/status/status.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/stages/pipeline.h"

// ZeRO: data-parallel ranks shard what they would otherwise all keep (Rajbhandari et al.,
// "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020). With Adam in
// mixed precision a rank of p keeps 16, 4 + 12/p, 2 + 14/p and 16/p bytes a parameter in stages 0
// to 3.

namespace orrery::transforms {

/// What is sharded, and among how many ranks.
struct ZeroOptions {
  /// The highest stage that there is.
  static constexpr int64_t kLastStage = 3;

  /// 0: nothing. 1: the optimizer's state: gradients are reduce-scattered once a step, each rank
  /// updates its shard, and the updated parameters are all-gathered. 2: gradients, too: they are
  /// reduce-scattered in each microbatch, as backward makes them, and added up in shards. 3:
  /// parameters, too: forward and backward all-gather them before they use them, and drop them
  /// afterwards.
  int64_t stage = 0;
  /// Neighbouring dp ranks that share one copy; other groups hold the same, and gradients are
  /// all-reduced between them once a step. 0: one copy for all of the axes dp, ep and cp over which
  /// a parameter is not split anyway.
  int64_t group = 0;
  /// Of stage 3: how many units (layers; see units.h) are gathered ahead of the one that computes.
  /// So the gathered weights of at most prefetch + 1 units are there at a time.
  int64_t prefetch = 1;
};

/// The parts that a rank of `ranks` that share keeps.
HeldParts PartsHeld(const ZeroOptions& options, int64_t ranks);

/// The axis that SplitAxis makes of dp where shards are not shared by all of it.
inline constexpr char kZeroAxis[] = "zero";

/// An error unless `options` make sense.
absl::Status CheckZero(const ZeroOptions& options);

/// Shards state, gradients and parameters of each stage of `step`, whose mesh has the axis
/// kZeroAxis where `options.group` asks for one. Types tell who holds what. Gathers and scatters of
/// a microbatch have the attribute "unit": lowering makes one collective of those of one unit.
/// Where no dimension of a parameter divides, the last ranks get less, or nothing; a parameter of
/// one element stays whole, with all that belongs to it.
///
/// To come after everything else that changes the functions of the step.
absl::Status ApplyZero(const ZeroOptions& options, PipelinedStep& step);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_ZERO_H_
