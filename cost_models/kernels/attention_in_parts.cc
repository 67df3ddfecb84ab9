#include "cost_models/kernels/attention_in_parts.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "cost_models/kernels/matrix_product.h"
#include "ir/op_info.h"

namespace orrery::cost_models {
namespace attention_in_parts_cc {
namespace {

// Kernels of a softmax with its scale and mask.
constexpr int kFusedSoftmax = 1, kUnfusedSoftmax = 5;

struct Product {
  ir::ProductShape shape;
  bool along_k = true;
};
using Products = absl::InlinedVector<Product, 4>;

Products ProductsOf(const AttentionInParts& a) {
  const int64_t batch = a.batch * a.heads, q = a.queries, k = a.keys;
  if (!a.backward) {
    return {{{.batch = batch, .m = q, .n = k, .k = a.width}},
            {{.batch = batch, .m = q, .n = a.value_width, .k = k}}};
  }
  return {{{.batch = batch, .m = k, .n = a.value_width, .k = q}, /*along_k=*/false},
          {{.batch = batch, .m = q, .n = k, .k = a.value_width}},
          {{.batch = batch, .m = q, .n = a.width, .k = k}},
          {{.batch = batch, .m = k, .n = a.width, .k = q}, /*along_k=*/false}};
}

// Megatron's fused softmax takes four rows of scores a block, of one position in four heads
// (fused_softmax.py, is_kernel_available). Of other numbers PyTorch's kernels work in fp32.
bool FusesSoftmax(const AttentionInParts& a) {
  return (a.batch * a.heads) % 4 == 0 && a.queries % 4 == 0;
}

// Forward: to fp32, scale, mask, softmax, to 16 bits; backward the same the other way round, where
// softmax reads its result besides. The mask has a byte.
double UnfusedBytesAScore(bool backward, double size) {
  const double casts = size < 4 ? 2 * (size + 4) : 0, scale = 8, mask = 9,
               softmax = backward ? 12 : 8;
  return casts + scale + mask + softmax;
}

double FusedBytesAScore(const AttentionInParts& a, double size) {
  return a.backward ? 2 * a.visible * size + size : a.visible * size + size;
}

// That the kernels over the scores move, a score: of `size` bytes each, and a byte of what dropout
// has left.
double BytesAScore(const AttentionInParts& a, double size, bool fuses) {
  return (fuses ? FusedBytesAScore(a, size) : UnfusedBytesAScore(a.backward, size)) +
         (a.dropout ? 2 * size + 1 : 0);
}

int KernelsWith(const AttentionInParts& a, int softmax) {
  return (a.backward ? 4 : 2) + softmax + (a.dropout ? 1 : 0);
}

double ScoresOf(const AttentionInParts& a) {
  return static_cast<double>(a.batch * a.heads) * static_cast<double>(a.queries) *
         static_cast<double>(a.keys);
}

double BandwidthOf(const AttentionInParts& a, const cluster::Device& device,
                   const KernelRates& rates) {
  return static_cast<double>(device.memory_bandwidth.bytes_per_second()) *
         ProductRatesOf(rates, a.dtype).memory;
}

}  // namespace
}  // namespace attention_in_parts_cc

Duration PriceAttentionInParts(const AttentionInParts& attention, const cluster::Device& device,
                               const KernelRates& rates) {
  const double scores = attention_in_parts_cc::ScoresOf(attention);
  const auto size = static_cast<double>(ir::SizeOf(attention.dtype));
  const bool fuses = attention_in_parts_cc::FusesSoftmax(attention);
  Duration sum =
      Duration::FromSeconds(scores * attention_in_parts_cc::BytesAScore(attention, size, fuses) /
                            attention_in_parts_cc::BandwidthOf(attention, device, rates));
  if (scores < 1) return sum;
  for (const auto& [shape, along_k] : attention_in_parts_cc::ProductsOf(attention)) {
    if (shape.n < 1 || shape.k < 1) continue;
    const ProductTypes types = {.in = attention.dtype, .out = attention.dtype, .along_k = along_k};
    sum += PriceProduct(shape, types, device, rates.sustained).time;
  }
  return sum;
}

LeastTime LeastAttentionInParts(const AttentionInParts& attention, const cluster::Device& device,
                                const KernelRates& rates) {
  const double scores = attention_in_parts_cc::ScoresOf(attention);
  const auto size = static_cast<double>(ir::SizeOf(attention.dtype));
  const double bytes =
      scores * std::min(attention_in_parts_cc::BytesAScore(attention, size, true),
                        attention_in_parts_cc::BytesAScore(attention, size, false));
  LeastTime least;
  least.kernels.push_back(
      {.memory_s = bytes / attention_in_parts_cc::BandwidthOf(attention, device, rates)});
  if (scores < 1) return least;
  for (const auto& [shape, along_k] : attention_in_parts_cc::ProductsOf(attention)) {
    if (shape.n < 1 || shape.k < 1) continue;
    const ProductTypes types = {.in = attention.dtype, .out = attention.dtype, .along_k = along_k};
    least.kernels.push_back(LeastProduct(shape, types, device, rates.sustained));
  }
  return least;
}

int LeastKernelsOf(const AttentionInParts& attention) {
  return attention_in_parts_cc::KernelsWith(attention, attention_in_parts_cc::kFusedSoftmax);
}

int KernelsOf(const AttentionInParts& attention) {
  return attention_in_parts_cc::KernelsWith(attention,
                                            attention_in_parts_cc::FusesSoftmax(attention)
                                                ? attention_in_parts_cc::kFusedSoftmax
                                                : attention_in_parts_cc::kUnfusedSoftmax);
}

}  // namespace orrery::cost_models
