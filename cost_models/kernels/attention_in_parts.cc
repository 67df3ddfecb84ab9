#include "cost_models/kernels/attention_in_parts.h"

#include "absl/container/inlined_vector.h"
#include "cost_models/kernels/matrix_product.h"
#include "ir/op_info.h"

namespace orrery::cost_models {
namespace attention_in_parts_cc {
namespace {

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

// That the kernels over the scores move, a score: of `size` bytes each, and a byte of what dropout
// has left.
double BytesAScore(const AttentionInParts& a, double size) {
  const double fused = a.backward ? 2 * a.visible * size + size : a.visible * size + size;
  return (FusesSoftmax(a) ? fused : UnfusedBytesAScore(a.backward, size)) +
         (a.dropout ? 2 * size + 1 : 0);
}

}  // namespace
}  // namespace attention_in_parts_cc

Duration PriceAttentionInParts(const AttentionInParts& attention, const cluster::Device& device,
                               const KernelRates& rates) {
  const ProductRates& products = ProductRatesOf(rates, attention.dtype);
  const double scores = static_cast<double>(attention.batch * attention.heads) *
                        static_cast<double>(attention.queries) *
                        static_cast<double>(attention.keys);
  const auto size = static_cast<double>(ir::SizeOf(attention.dtype));
  const double bandwidth =
      static_cast<double>(device.memory_bandwidth.bytes_per_second()) * products.memory;
  Duration sum = Duration::FromSeconds(
      scores * attention_in_parts_cc::BytesAScore(attention, size) / bandwidth);
  if (scores < 1) return sum;
  for (const auto& [shape, along_k] : attention_in_parts_cc::ProductsOf(attention)) {
    if (shape.n < 1 || shape.k < 1) continue;
    const ProductTypes types = {.in = attention.dtype, .out = attention.dtype, .along_k = along_k};
    sum += PriceProduct(shape, types, device, rates.sustained).time;
  }
  return sum;
}

int KernelsOf(const AttentionInParts& attention) {
  const int softmax = attention_in_parts_cc::FusesSoftmax(attention) ? 1 : 5;
  return (attention.backward ? 4 : 2) + softmax + (attention.dropout ? 1 : 0);
}

}  // namespace orrery::cost_models
