#include "cost_models/kernels/attention_kernel.h"

#include <algorithm>
#include <cmath>

#include "cost_models/kernels/matrix_product.h"
#include "ir/op_kind.h"
#include "support/check.h"

namespace orrery::cost_models {
namespace attention_kernel_cc {
namespace {

constexpr int64_t kTile = 128;  // queries
constexpr double kWidth = 128;  // of the heads that kernels are made for

// The share of the scores that a causal mask leaves, of `queries` that are the last of `keys`.
double VisibleShare(int64_t queries, int64_t keys) {
  const int64_t all = std::max(queries, keys);
  return 1 - static_cast<double>(queries) / (2 * static_cast<double>(all));
}

}  // namespace
}  // namespace attention_kernel_cc

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
    attention.visible = attention_kernel_cc::VisibleShare(whole[whole.size() - 2], attention.keys);
  }
  attention.flops = FlopsOf(op);
  attention.bytes = BytesMovedBy(op);
  return attention;
}

Duration PriceAttention(const FusedAttention& attention, const cluster::Device& device,
                        const KernelRates& rates) {
  using attention_kernel_cc::kTile, attention_kernel_cc::kWidth;
  const AttentionRates& rate = rates.attention;
  const double seen = std::max(1.0, attention.visible * static_cast<double>(attention.keys));
  const auto width = static_cast<double>(std::max<int64_t>(attention.width, 1));
  const double width_share = std::min(width, kWidth) / std::max(width, kWidth);
  const double reached = MatrixPeak(ir::DType::kBF16, device).flops_per_second() * rate.efficiency *
                         (attention.backward ? rate.backward : 1) *
                         std::pow(width_share, rate.width_power);
  // A tile without a full number of queries takes as long as one with.
  const int64_t tiles_a_head = (attention.queries + kTile - 1) / kTile;
  const double rows = static_cast<double>(tiles_a_head * kTile) /
                      static_cast<double>(std::max<int64_t>(attention.queries, 1));
  const double all = attention.flops.count() * attention.visible * rows * (seen + rate.fill) / seen;
  // The last tile of a head sees all keys.
  const double tiles = static_cast<double>(attention.batch * attention.heads * tiles_a_head);
  const double longest = all / std::max(tiles, 1.0) / attention.visible;
  const double products = std::max(all, longest * rates.cores) / reached;
  const double memory =
      static_cast<double>(attention.bytes.count()) /
      (static_cast<double>(device.memory_bandwidth.bytes_per_second()) * rates.half.memory);
  return Duration::FromSeconds(std::max(products, memory));
}

}  // namespace orrery::cost_models
