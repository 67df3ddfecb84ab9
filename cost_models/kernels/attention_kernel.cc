#include "cost_models/kernels/attention_kernel.h"

#include <algorithm>
#include <cmath>

#include "cost_models/kernels/matrix_product.h"

namespace orrery::cost_models {
namespace attention_kernel_cc {
namespace {

constexpr int64_t kTile = 128;  // queries
constexpr double kWidth = 128;  // of the heads that kernels are made for

}  // namespace
}  // namespace attention_kernel_cc

double VisibleShare(int64_t queries, int64_t keys) {
  const int64_t all = std::max(queries, keys);
  return 1 - static_cast<double>(queries) / (2 * static_cast<double>(all));
}

Duration PriceAttention(const FusedAttention& attention, const cluster::Device& device,
                        const KernelRates& rates) {
  using attention_kernel_cc::kTile, attention_kernel_cc::kWidth;
  const AttentionRates& rate = AttentionRatesOf(rates, attention.kernel);
  const double seen = std::max(1.0, attention.visible * static_cast<double>(attention.keys));
  const auto width = static_cast<double>(std::max<int64_t>(attention.width, 1));
  const double width_share = std::min(width, kWidth) / std::max(width, kWidth);
  const ir::DType dtype = ir::SizeOf(attention.dtype) < 2 ? ir::DType::kBF16 : attention.dtype;
  const double reached = MatrixPeak(dtype, device).flops_per_second() * rate.efficiency *
                         (attention.backward ? rate.backward : 1) *
                         std::pow(width_share, rate.width_power);
  // A tile without a full number of queries takes as long as one with.
  const int64_t tiles_a_head = (attention.queries + kTile - 1) / kTile;
  const double rows = static_cast<double>(tiles_a_head * kTile) /
                      static_cast<double>(std::max<int64_t>(attention.queries, 1));
  const double fill = attention.backward ? rate.backward_fill : rate.fill;
  const auto keys = static_cast<double>(std::max<int64_t>(attention.keys, 1));
  const double flops_a_key = attention.flops.count() * rows / keys;
  // Keys come in tiles, too: the one that a causal mask cuts is whole.
  const double cut = attention.visible < 1 ? kTile / 2.0 : 0;
  const double all = flops_a_key * (std::min(seen + cut, keys) + fill);
  // The last tile of a head sees all keys.
  const double tiles = static_cast<double>(attention.batch * attention.heads * tiles_a_head);
  const double longest = flops_a_key * (keys + fill) / std::max(tiles, 1.0);
  // Cores with several tiles end at any time within their last one.
  const double tail = tiles > rates.cores ? longest / 2 * rates.cores : 0;
  double work = std::max(all + tail, longest * rates.cores);
  if (rate.whole_heads) {
    const auto heads = static_cast<double>(std::max<int64_t>(attention.batch * attention.heads, 1));
    work = all / heads * std::ceil(heads / rates.cores) * rates.cores;
  }
  const double products = work / reached;
  return std::max(Duration::FromSeconds(products), AttentionMemoryTime(attention, device, rates));
}

Duration AttentionMemoryTime(const FusedAttention& attention, const cluster::Device& device,
                             const KernelRates& rates) {
  return Duration::FromSeconds(
      static_cast<double>(attention.bytes.count()) /
      (static_cast<double>(device.memory_bandwidth.bytes_per_second()) * rates.half.memory));
}

}  // namespace orrery::cost_models
