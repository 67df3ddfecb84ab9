#ifndef ORRERY_TRANSFORMS_MEMORY_ZERO_PLAN_H_
#define ORRERY_TRANSFORMS_MEMORY_ZERO_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/function.h"
#include "transforms/memory/zero.h"
#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

/// How a parameter is sharded: `axes` split dimension `dim`, inside of what splits it already.
struct Shard {
  ir::AxisList axes;
  size_t dim = 0;
  bool uneven = false;  // the dimension does not divide: the last ranks have less
  int32_t unit = 0;

  ir::TensorType Of(ir::TensorType type) const;
};

/// What is sharded of one stage, by origins.
struct ZeroPlan {
  using Shards = absl::flat_hash_map<ir::ValueId, Shard>;

  Shards parameters;  // whose state is, where it has the dimension
  Shards states;
  /// Of ZeRO's stages 2 and 3: what backward makes, before it is reduced; and, by values of the
  /// update, what it receives of that from other stages.
  Shards gradients, received;
  bool gathers = false;  // ZeRO's stage 3: parameters are, too

  /// The shard of an origin that may be invalid; null where there is none.
  static const Shard* Find(const Shards& shards, ir::ValueId origin) {
    const auto found = shards.find(origin);
    return found == shards.end() ? nullptr : &found->second;
  }
};

/// What an optimizer does to one parameter: values of the update.
struct ParameterUpdate {
  ir::OpId optimizer;
  ir::ValueId parameter, gradient;
  std::vector<ir::ValueId> states;
};
std::vector<ParameterUpdate> UpdatesOf(const ir::Function& update);

/// A plan for each stage.
std::vector<ZeroPlan> PlanZero(const ZeroOptions& options, const PipelinedStep& step);

/// The part of it that is about gradients, once parameters have their shards: those that the update
/// only adds up, exchanges between stages and reduces.
void PlanGradients(const PipelinedStep& step, std::vector<ZeroPlan>& plans);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_ZERO_PLAN_H_
