#ifndef ORRERY_TRANSFORMS_SHARDING_RING_ATTENTION_H_
#define ORRERY_TRANSFORMS_SHARDING_RING_ATTENTION_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "ir/builder.h"

// Attention of long sequences, whose rows are split over ranks (Liu et al., "Ring attention with
// blockwise transformers for near-infinite context", 2023). Each rank keeps its rows of q; the rows
// of k and v go round. In n turns each rank meets all of them, and while it works on what it has,
// the next part arrives. A rank holds three parts of k and v at most: its own, the one that it
// works on, and the next; in backward the sums of their gradients beside them.
//
// By causality a rank sees nothing of a part that comes later than its own; these turns are taken
// all the same, as they are by the slowest rank. What a turn computes does not depend on the mesh.

namespace orrery::transforms {

/// One attention, and the ring that it goes round.
struct AttentionRing {
  ir::AttributeSet attributes;  // of the attention, with flash=1; without a ring
  std::string axes;             // mesh axes that split the rows of q, k and v: "cp"
};

/// Operands of an attention of as many rows of q as of k, without a mask; or their gradients.
struct AttentionOperands {
  ir::ValueId q, k, v;
};

/// What an attention made: y, and the logarithms of the sums of its rows.
struct AttentionResults {
  ir::ValueId y, logarithms;
};

/// What AttentionGrad starts from.
struct AttentionGradOperands {
  AttentionOperands operands;
  AttentionResults results;
  ir::ValueId dy;
};

/// Adds what equals Attention(q, k, v): an Attention a turn, before it the rotations of k and v to
/// the next turn, after it MergeAttention with the turns before. `names` are those of y and the
/// logarithms, or none. On one rank it is one Attention. The error of the builder says where
/// the ring does not fit.
AttentionResults EmitRing(const AttentionRing& ring, const AttentionOperands& operands,
                          std::span<const absl::string_view> names, ir::Builder& builder);

/// Adds what equals AttentionGrad: of the gradient of y it makes those of q, k and v, whose names
/// are `names`, or none. k and v go round as before, and with them the sums of their gradients,
/// which go one turn further and so come home.
AttentionOperands EmitRingGrad(const AttentionRing& ring, const AttentionGradOperands& operands,
                               std::span<const absl::string_view> names, ir::Builder& builder);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_RING_ATTENTION_H_
