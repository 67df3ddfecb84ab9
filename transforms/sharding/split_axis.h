#ifndef ORRERY_TRANSFORMS_SHARDING_SPLIT_AXIS_H_
#define ORRERY_TRANSFORMS_SHARDING_SPLIT_AXIS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/sharding/sharding_prices.h"

namespace orrery::transforms {

/// An axis of a mesh, and one that is to be made of its fastest part.
struct AxisSplit {
  absl::string_view axis;   // "dp", which keeps its name
  absl::string_view inner;  // "zero", of neighbouring ranks
  int64_t size = 1;         // of the inner axis; divides that of the axis
};

/// The same function on the same ranks, over a mesh in which one axis is two: what the axis did,
/// both do together. mesh(pp=2, dp=8) becomes mesh(pp=2, dp=2, zero=4), f32[64@dp] becomes
/// f32[64@dp.zero], and an all-reduce along dp one along dp.zero. `split.axis` must be on the mesh,
/// and `split.inner` must not.
ir::Function SplitAxis(const ir::Function& function, const AxisSplit& split);

/// Prices of what SplitAxis leaves, by those of the mesh before: what goes along both parts of the
/// axis went along the axis. Nothing goes along one part alone.
class SplitAxisPrices final : public ShardingPrices {
 public:
  /// `inner`: on the mesh after, behind the axis that was split. `before` must outlive this.
  SplitAxisPrices(const ShardingPrices& before, ir::AxisIndex inner)
      : before_(before), inner_(inner) {}

  double OpSeconds(const LocalOp& op) const override { return before_.OpSeconds(op); }
  double StepSeconds(redistribution::MoveKind kind, const ir::AxisList& axes,
                     Bytes size) const override;

 private:
  const ShardingPrices& before_;
  const ir::AxisIndex inner_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SPLIT_AXIS_H_
