#ifndef ORRERY_TRANSFORMS_SHARDING_RING_STRATEGY_H_
#define ORRERY_TRANSFORMS_SHARDING_RING_STRATEGY_H_

#include <optional>
#include <vector>

#include "ir/function.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/op_strategies.h"

namespace orrery::transforms {

/// The strategy of Attention or AttentionGrad that splits all rows along the axis and sends keys
/// and values round (see ring_attention.h). A turn takes as long as its work or as what travels
/// meanwhile, whichever is longer. Nothing for other ops, and where the ring does not fit: masks,
/// probabilities that are kept, rows that do not divide or that another axis splits.
std::optional<OpStrategy> RingStrategy(const AxisProblem& problem, ir::OpId op);

/// Leaves of the strategies of an attention with those dims of q the ones of that kind. False, and
/// all of them, where there are none.
bool KeepContextAttention(ContextAttention wanted, const ir::Dims& q,
                          std::vector<OpStrategy>& strategies);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_RING_STRATEGY_H_
