#ifndef ORRERY_TRANSFORMS_SHARDING_AUTO_SHARD_H_
#define ORRERY_TRANSFORMS_SHARDING_AUTO_SHARD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "support/units.h"
#include "transforms/sharding/facts/kept_bytes.h"
#include "transforms/sharding/sharding_pin.h"
#include "transforms/sharding/sharding_prices.h"
#include "transforms/strategies/strategy_graph.h"

// The sharding of a whole training step by cost: each op takes the strategy that makes op times and
// redistributions the least.

namespace orrery::transforms {

class AxisFrames;

/// How attention gets by with sequences that are split along "cp": heads swap with rows
/// and back; keys and values are gathered; or they go round (transforms/sharding/ring_attention.h).
enum class ContextAttention : uint8_t { kAuto, kAllToAll, kAllGather, kRing };

/// Whether Megatron's pattern splits its residual stream along the sequence (Korthikanti et al.
/// 2022): never; always, and what is gathered of it is kept in parts; or where that sends as many
/// bytes and takes no longer, so that it only saves memory.
enum class SequenceParallel : uint8_t { kAuto, kOff, kOn };

/// What becomes along "hp" of a dimension that it does not divide: it is not split; it is split all
/// the same, into parts of ceil(n/p) elements, as torch.chunk does, of which the last are short or
/// empty; it is padded before anything is sharded (transforms/training/pad_dimensions.h), or so
/// that parts of widths are multiples of 8; or a plan is impossible that leaves a parameter without
/// a dimension to split.
enum class UnevenShards : uint8_t { kWhole, kSplit, kPad, kPad8, kError };

/// Whether there is padding.
inline bool Pads(UnevenShards uneven) {
  return uneven == UnevenShards::kPad || uneven == UnevenShards::kPad8;
}

/// What the choice is bound to, and what it weighs besides time. So many fields: each is asked for
/// by itself.
struct AutoShardOptions {
  /// Of a value that several of one axis match, the first one counts. Consumers get the value as it
  /// is pinned, or redistributed from there.
  std::vector<ShardingPin> pins = {};
  /// Megatron's pattern, with its sequence parallelism or without: along "hp" column and row
  /// products, tables by their rows and the loss by its classes; "ep" has whole experts, to which
  /// tokens travel; "ep" and "cp" have all other weights whole. Prices decide what that leaves
  /// open. None: they decide all.
  std::optional<SequenceParallel> pattern = std::nullopt;
  /// Whether what is returned for people, losses and results, is on each rank of "hp" as a whole:
  /// parts of the sequence are put together of slices, and could not be of parts of slices.
  bool whole_results = false;
  /// Of attentions that can.
  ContextAttention context_attention = ContextAttention::kAuto;
  /// With kSplit the choice may split what does not divide, and counts what the fullest rank does
  /// and holds. To pad, and kError, is for callers: here they are kWhole.
  UnevenShards uneven = UnevenShards::kWhole;
  /// How often a step runs what is sharded here before its update: what the update does counts that
  /// much less.
  int64_t microbatches = 1;
  /// Bytes that a rank has, of all pipeline stages together, for parameters, their gradients and
  /// state, and for what the forward phases of `in_flight` microbatches keep for backward; 0: no
  /// limit. The choice keeps to it where one was found that does, and needs little where none does;
  /// the report tells.
  Bytes memory_limit = Bytes(0);
  int64_t in_flight = 1;
  /// Whether what is gathered of activations will be kept in parts, and gathered again
  /// (KeepRule::gathers): memory counts it so.
  bool gathers = false;
  /// The memory limit counts so much of each.
  HeldParts held = {};
  /// Seconds that a byte counts, as the limit counts bytes: prices know nothing of what a device
  /// has left, and choices by several are worth playing.
  double memory_price = 0;
  /// Times what `prices` say of collectives, also in the report. The sum of all ops is not the
  /// step: a pipeline waits for its slowest stage, and what links cost decides between choices that
  /// are otherwise alike.
  double link_price = 1;
  /// Where to keep what questions have in common that are about one step, mesh and prices, and
  /// differ in the pattern, in the attention, in what is in flight and in prices of memory and
  /// links (transforms/sharding/axis_frame.h). Null: nowhere.
  AxisFrames* frames = nullptr;
  /// The search gives up far earlier than it would have to: a step is chosen for each candidate of
  /// a search.
  strategies::SolveOptions solve = {.repeats = {}, .label_limit = 50'000};
};

/// What the choice was. So many fields: what it is, what it costs, and how it was found.
struct AutoShardReport {
  int64_t nodes = 0;     // ops, and groups of inputs that are sharded alike
  int64_t edges = 0;     // between them
  int64_t labels = 0;    // as in StrategyChoice
  int64_t composed = 0;  // equal layers that were solved as one, as in StrategyChoice
  int64_t solved = 0;    // nodes, each as often as it was solved for
  double seconds = 0;    // of the choice, one op after another
  bool optimal = true;   // no choice of strategies is cheaper, within the limit of memory
  double memory = 0;     // bytes that it needs, as the limit counts them without `gathers`
  double in_parts = 0;   // and with it
  /// What `memory` and `in_parts` are the sums of, for other AutoShardOptions::held and in_flight
  /// under which the choice is the same, as where memory has no price and no limit.
  std::shared_ptr<const KeptMemory> kept = {};
  uint64_t choice = 0;    // equal for equal answers, within a run of the program
  double build_time = 0;  // seconds to set the problem up, and to solve it
  double solve_time = 0;
};

/// Shards a training step over `mesh`: by axis "dp" as `Shard` does, data inputs along their
/// batch; then by the axes "ep", "cp" and "hp", one after another, as costs the least by `prices`.
/// Inputs are sharded as is best, but data are split by "ep" along their batch, and by "cp" along
/// dimension 1, the positions in a sequence, and nothing along the batch; the weights of experts by
/// "ep", along the experts where their number divides; the state and the
/// gradients of a parameter are sharded as the parameter is; results and losses are not partial. A
/// value that changes its layout does so once for each layout that its consumers want. The costs
/// count that exactly where they want one more layout than there is; of further ones each consumer
/// pays for its own, which is never too little.
///
/// The result computes the same on the same global shapes. Infeasible (kDivisibility) where data do
/// not divide over dp, ep or cp, or a pinned value over its axis, and (kUnsupported) as CheckPins
/// has it, or where no attention can do what is wanted; what else does not divide is not
/// split, unless `uneven` says so. Errors: a pin that is no regular expression, that matches
/// nothing, or that cannot be kept. In the report, `seconds`, `memory` and `in_parts` are those
/// with all axes sharded; the rest adds up over them. `seconds` are without what memory costs.
absl::StatusOr<ir::Function> AutoShard(const ir::Function& step, const ir::Mesh& mesh,
                                       const std::vector<bool>& batched,
                                       const ShardingPrices& prices,
                                       const AutoShardOptions& options = {},
                                       AutoShardReport* report = nullptr);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_AUTO_SHARD_H_
