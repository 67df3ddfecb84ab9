#include "cost_models/kernels/expert_products.h"

#include <algorithm>

namespace orrery::cost_models {
namespace expert_products_cc {
namespace {

constexpr int64_t kStreams = 4;  // num_streams of TransformerEngine

}  // namespace
}  // namespace expert_products_cc

Duration PriceExpertProducts(const ir::ProductShape& shape, ProductTypes types,
                             const ExpertProducts& experts, const cluster::Device& device,
                             double clock) {
  if (!experts.kernel_each) return PriceProduct(shape, types, device, clock).time;
  const ir::ProductShape one = {.batch = 1, .m = shape.m, .n = shape.n, .k = shape.k};
  const Duration start = device.rates.start;
  const ProductTime alone = PriceProduct(one, types, device, clock);
  const Duration beside(std::max(alone.shared.picoseconds(),
                                 alone.time.picoseconds() / expert_products_cc::kStreams));
  const Duration each = beside + start;
  return std::max(each, experts.call) * shape.batch - start;
}

Duration PriceExpertProducts(const ir::ProductShape& shape, ProductTypes types,
                             const ExpertProducts& experts, const cluster::Device& device) {
  return PriceExpertProducts(shape, types, experts, device, ClockOf(device.rates, types.in));
}

}  // namespace orrery::cost_models
