#ifndef ORRERY_TRANSFORMS_ZERO_PLAN_H_
#define ORRERY_TRANSFORMS_ZERO_PLAN_H_

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "ir/function.h"
#include "transforms/pipeline.h"
#include "transforms/zero.h"

namespace orrery::transforms {

/// How a parameter is shared out: `axes` split dimension `dim`, inside of what splits it already.
struct Shard {
  ir::AxisList axes;
  size_t dim = 0;
  int32_t unit = 0;

  ir::TensorType Of(ir::TensorType type) const;
};

/// What is shared out of one stage, by origins.
struct ZeroPlan {
  using Shards = absl::flat_hash_map<ir::ValueId, Shard>;

  Shards parameters;  // whose state is
  Shards states;
  Shards gradients;  // of ZeRO's stage 2 and 3: what backward makes, before it is reduced
  bool gathers = false;  // ZeRO's stage 3: parameters are, too

  /// The shard of an origin that may be invalid; null where there is none.
  static const Shard* Find(const Shards& shards, ir::ValueId origin) {
    const auto found = shards.find(origin);
    return found == shards.end() ? nullptr : &found->second;
  }
};

/// Plans one stage of a step.
ZeroPlan PlanZero(const ZeroOptions& options, const PipelineStage& stage);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_ZERO_PLAN_H_
