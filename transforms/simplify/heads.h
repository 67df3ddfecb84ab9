#ifndef ORRERY_TRANSFORMS_SIMPLIFY_HEADS_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_HEADS_H_

#include <cstdint>

#include "transforms/pass/rewriter.h"

// Batch and heads in one dimension or in two: matrices [batch heads,s,t] are a view of
// [batch,heads,s,t].

namespace orrery::transforms {

/// The heads of `view`, which sees [batch heads,s,t] as [batch,heads,s,t] or back; 0 when it does
/// neither.
int64_t HeadsOfView(const Rewriter& r, ir::OpId view);

/// [batch,heads,s,t] that `matrices` are a view of; invalid when they are of none.
ir::ValueId WithHeads(const Rewriter& r, ir::ValueId matrices);

/// `matrices` [batch heads,s,t] or [batch heads,1,s,t] as [batch,heads,s,t]: what they are a view
/// of, where that has as many heads; else a view of them.
ir::ValueId PartHeads(Rewriter& r, ir::ValueId matrices, int64_t heads);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_HEADS_H_
