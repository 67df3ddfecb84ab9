#include "cost_models/fused_attention.h"

#include <algorithm>

#include "ir/op_kind.h"
#include "support/check.h"

namespace orrery::cost_models {

bool IsFusedAttention(const OpView& op) {
  const bool attention = op.kind == ir::OpKind::kAttention || op.kind == ir::OpKind::kAttentionGrad;
  return attention && op.attributes.Int("flash", 0) != 0;
}

FusedAttention FusedAttentionOf(const OpView& op) {
  ORRERY_CHECK(IsFusedAttention(op)) << "no fused attention";
  FusedAttention attention;
  attention.backward = op.kind == ir::OpKind::kAttentionGrad;
  const ir::Dims &q = op.operands[0]->dims, &k = op.operands[1]->dims;
  const ir::TensorType& statistics = attention.backward ? *op.operands[4] : *op.results[1];
  attention.batch = q[0];
  attention.heads = std::max<int64_t>(statistics.dims[1], 1);
  const bool packed = q.size() == 3;
  attention.queries = packed ? q[1] : q[2];
  attention.width = packed ? std::max<int64_t>(q[2] / attention.heads, 1) : q[3];
  const int64_t ring_rows = op.attributes.Int("ring_rows", 0);
  attention.keys = ring_rows > 0 ? ring_rows : k[k.size() - 2];
  if (op.attributes.Int("causal", 0) != 0) {
    const ir::Dims& whole = op.first_operand != nullptr ? op.first_operand->dims : q;
    attention.visible = VisibleShare(whole[whole.size() - 2], attention.keys);
  }
  attention.dtype = op.operands[0]->dtype;
  attention.flops = FlopsOf(op);
  attention.bytes = BytesMovedBy(op);
  return attention;
}

}  // namespace orrery::cost_models
