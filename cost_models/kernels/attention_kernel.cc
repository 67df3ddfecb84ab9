#include "cost_models/kernels/attention_kernel.h"

#include <algorithm>
#include <cmath>

#include "cost_models/kernels/matrix_product.h"

namespace orrery::cost_models {
namespace attention_kernel_cc {
namespace {

constexpr int64_t kTile = 128;  // queries
constexpr double kWidth = 128;  // of the heads that kernels are made for

// In flops, as if cores had them one after another.
struct Work {
  double all = 0;      // of all tiles
  double longest = 0;  // of one of those that see all keys
  double tiles = 0;
  double flops_per_second = 0;
};

Work WorkOf(const FusedAttention& attention, const cluster::Device& device,
            const KernelRates& rates) {
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
  const double tiles = static_cast<double>(attention.batch * attention.heads * tiles_a_head);
  // The last tile of a head sees all keys.
  return {.all = flops_a_key * (std::min(seen + cut, keys) + fill),
          .longest = flops_a_key * (keys + fill) / std::max(tiles, 1.0),
          .tiles = tiles,
          .flops_per_second = reached};
}

double MemorySeconds(const FusedAttention& attention, const cluster::Device& device,
                     const KernelRates& rates) {
  return static_cast<double>(attention.bytes.count()) /
         (static_cast<double>(device.memory_bandwidth.bytes_per_second()) * rates.half.memory);
}

}  // namespace
}  // namespace attention_kernel_cc

double VisibleShare(int64_t queries, int64_t keys) {
  const int64_t all = std::max(queries, keys);
  return 1 - static_cast<double>(queries) / (2 * static_cast<double>(all));
}

Duration PriceAttention(const FusedAttention& attention, const cluster::Device& device,
                        const KernelRates& rates) {
  const attention_kernel_cc::Work of = attention_kernel_cc::WorkOf(attention, device, rates);
  // Cores with several tiles end at any time within their last one.
  const double tail = of.tiles > rates.cores ? of.longest / 2 * rates.cores : 0;
  double work = std::max(of.all + tail, of.longest * rates.cores);
  if (AttentionRatesOf(rates, attention.kernel).whole_heads) {
    const auto heads = static_cast<double>(std::max<int64_t>(attention.batch * attention.heads, 1));
    work = of.all / heads * std::ceil(heads / rates.cores) * rates.cores;
  }
  return std::max(Duration::FromSeconds(work / of.flops_per_second),
                  AttentionMemoryTime(attention, device, rates));
}

LeastKernel LeastAttention(const FusedAttention& attention, const cluster::Device& device,
                           const KernelRates& rates) {
  const attention_kernel_cc::Work of = attention_kernel_cc::WorkOf(attention, device, rates);
  return {.arithmetic_s = of.all / of.flops_per_second,
          .memory_s = attention_kernel_cc::MemorySeconds(attention, device, rates)};
}

Duration AttentionMemoryTime(const FusedAttention& attention, const cluster::Device& device,
                             const KernelRates& rates) {
  return Duration::FromSeconds(attention_kernel_cc::MemorySeconds(attention, device, rates));
}

}  // namespace orrery::cost_models
