#ifndef ORRERY_TRANSFORMS_SHARDING_EMIT_SHARDED_H_
#define ORRERY_TRANSFORMS_SHARDING_EMIT_SHARDED_H_

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/sharding/sharding_graph.h"

namespace orrery::transforms {

/// `function` on `mesh`, where `axis` has its size, as the choice of `graph` has it: each change of
/// a layout is an op of its own, made once for each value and layout, before its first use.
absl::StatusOr<ir::Function> EmitSharded(const ir::Function& function, const ir::Mesh& mesh,
                                         ir::AxisIndex axis, const ShardingGraph& graph,
                                         LayoutWays& ways);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_EMIT_SHARDED_H_
