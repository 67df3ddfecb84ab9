#ifndef ORRERY_TRANSFORMS_AUTO_SHARD_H_
#define ORRERY_TRANSFORMS_AUTO_SHARD_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "support/units.h"
#include "transforms/redistribution/step.h"
#include "transforms/strategies/strategy_graph.h"

// The sharding of a whole training step by cost: each op takes the strategy that makes op times and
// redistributions the least.

namespace orrery::transforms {

/// One op as one rank carries it out: all types are of the part that the fullest rank holds.
struct LocalOp {
  ir::OpKind kind;
  const ir::AttributeSet& attributes;
  std::span<const ir::TensorType* const> operands;
  std::span<const ir::TensorType* const> results;
};

/// How long things take. Pure: the same question has the same answer.
class ShardingPrices {
 public:
  virtual ~ShardingPrices() = default;

  /// Of the kernels of an op that is neither a view nor a collective.
  virtual double OpSeconds(const LocalOp& op) const = 0;
  /// Of a collective of all groups along `axes`, ascending. `size` is what a rank brings; of an
  /// all-gather what it ends up with.
  virtual double StepSeconds(redistribution::StepKind kind, const ir::AxisList& axes,
                             Bytes size) const = 0;
};

/// What a user wants axis "hp" to do to all values whose names match.
struct ShardingPin {
  static constexpr int kWhole = -1;

  std::string pattern;  // RE2; matches anywhere in a name
  int dim = kWhole;     // that is split
};

struct AutoShardOptions {
  /// Of a value that several match, the first one counts. Consumers get the value as it is pinned,
  /// or redistributed from there.
  std::vector<ShardingPin> pins = {};
  SolveOptions solve = {};
};

/// What the choice was.
struct AutoShardReport {
  int64_t nodes = 0;      // ops, and groups of inputs that are spread alike
  int64_t edges = 0;      // between them
  int64_t labels = 0;     // as in StrategyChoice
  double seconds = 0;     // of the choice, one op after another
  bool optimal = true;    // no choice of strategies is cheaper
  double build_time = 0;  // seconds to set the problem up, and to solve it
  double solve_time = 0;
};

/// Spreads a training step over `mesh`: by axis "dp" as `Shard` does, data inputs along their
/// batch; by axis "hp" as costs the least by `prices`. Inputs are spread as is best; the state and
/// the gradients of a parameter as the parameter is; results and losses are
/// not partial. A value that
/// changes its layout does so once for each layout that its consumers want. The costs count that
/// exactly where they want one more layout than there is; of further ones each consumer pays for
/// its own, which is never too little.
///
/// The result computes the same on the same global shapes. Infeasible (kDivisibility) where the
/// batch does not divide over dp; what does not divide over hp is not split. Errors: a pin that is
/// no regular expression, that matches nothing, or that cannot be kept.
absl::StatusOr<ir::Function> AutoShard(const ir::Function& step, const ir::Mesh& mesh,
                                       const std::vector<bool>& batched,
                                       const ShardingPrices& prices,
                                       const AutoShardOptions& options = {},
                                       AutoShardReport* report = nullptr);

/// How long a rank takes for all ops of `function`, which is spread over its mesh, one after
/// another.
double SerialSeconds(const ir::Function& function, const ShardingPrices& prices);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_AUTO_SHARD_H_
