#include "cost_models/fused_attention.h"

#include <algorithm>

#include "ir/op_kind.h"
#include "support/check.h"

namespace orrery::cost_models {

namespace fused_attention_cc {
namespace {

bool IsAttention(const OpView& op) {
  return op.kind == ir::OpKind::kAttention || op.kind == ir::OpKind::kAttentionGrad;
}

// What both kinds of attention have.
struct Sizes {
  bool backward = false;
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, width = 1;
  double visible = 1;
};

Sizes SizesOf(const OpView& op) {
  Sizes sizes = {.backward = op.kind == ir::OpKind::kAttentionGrad};
  const ir::Dims &q = op.operands[0]->dims, &k = op.operands[1]->dims;
  const ir::TensorType& statistics = sizes.backward ? *op.operands[4] : *op.results[1];
  sizes.batch = q[0];
  sizes.heads = std::max<int64_t>(statistics.dims[1], 1);
  const bool packed = q.size() == 3;
  sizes.queries = packed ? q[1] : q[2];
  sizes.width = packed ? std::max<int64_t>(q[2] / sizes.heads, 1) : q[3];
  const int64_t ring_rows = op.attributes.Int("ring_rows", 0);
  sizes.keys = ring_rows > 0 ? ring_rows : k[k.size() - 2];
  if (op.attributes.Int("causal", 0) != 0) {
    const ir::Dims& whole = op.first_operand != nullptr ? op.first_operand->dims : q;
    sizes.visible = VisibleShare(whole[whole.size() - 2], sizes.keys);
  }
  return sizes;
}

}  // namespace
}  // namespace fused_attention_cc

bool IsFusedAttention(const OpView& op) {
  return fused_attention_cc::IsAttention(op) && op.attributes.Int("flash", 0) != 0;
}

bool IsAttentionInParts(const OpView& op) {
  return fused_attention_cc::IsAttention(op) && op.attributes.Int("flash", 0) == 0;
}

FusedAttention FusedAttentionOf(const OpView& op) {
  ORRERY_CHECK(IsFusedAttention(op)) << "no fused attention";
  const fused_attention_cc::Sizes sizes = fused_attention_cc::SizesOf(op);
  return {.batch = sizes.batch,
          .heads = sizes.heads,
          .queries = sizes.queries,
          .keys = sizes.keys,
          .width = sizes.width,
          .visible = sizes.visible,
          .backward = sizes.backward,
          .kernel = op.choice != nullptr ? op.choice->attention : AttentionClass::kCudnn,
          .dtype = op.operands[0]->dtype,
          .flops = FlopsOf(op),
          .bytes = BytesMovedBy(op)};
}

AttentionInParts AttentionInPartsOf(const OpView& op) {
  ORRERY_CHECK(IsAttentionInParts(op)) << "no attention in parts";
  const fused_attention_cc::Sizes sizes = fused_attention_cc::SizesOf(op);
  const ir::TensorType& y = sizes.backward ? *op.operands[3] : *op.results[0];
  const bool packed = y.dims.size() == 3;
  return {.batch = sizes.batch,
          .heads = sizes.heads,
          .queries = sizes.queries,
          .keys = sizes.keys,
          .width = sizes.width,
          .value_width = packed ? std::max<int64_t>(y.dims[2] / sizes.heads, 1) : y.dims.back(),
          .visible = sizes.visible,
          .dropout = op.attributes.Number("dropout", 0) > 0,
          .backward = sizes.backward,
          .dtype = op.operands[0]->dtype};
}

int LaunchesOf(const OpView& op) {
  const ir::OpInfo& info = ir::GetOpInfo(op.kind);
  if (info.op_class == ir::OpClass::kView) return 0;
  return IsAttentionInParts(op) ? KernelsOf(AttentionInPartsOf(op)) : info.kernels;
}

}  // namespace orrery::cost_models
