#include "transforms/redistribution/testing/summands.h"

#include <algorithm>

#include "support/numbers/mix_bits.h"

namespace orrery::transforms::redistribution {
namespace summands_cc {
namespace {

using ir::Reduction;

constexpr Number kPrime = (Number{1} << 61) - 1;

Number Add(Number a, Number b) { return (a + b) % kPrime; }
Number Subtract(Number a, Number b) { return (a + kPrime - b) % kPrime; }
Number Times(Number a, Number b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<Number>(static_cast<Wide>(a) * b % kPrime);
}

// 1 / a, by Fermat: a^(p-2). Requires a != 0.
Number Inverse(Number a) {
  Number power = 1;
  for (Number exponent = kPrime - 2; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = Times(power, a);
    a = Times(a, a);
  }
  return power;
}

// Scattered over all numbers but 0.
Number Scattered(int64_t element, int64_t part) {
  const uint64_t x = static_cast<uint64_t>(element) * kMixStep + static_cast<uint64_t>(part);
  return 1 + MixBits(x) % (kPrime - 1);
}

// What the first part must hold beside the scattered numbers of the others.
Number FirstOf(int64_t element, const Folding& folding) {
  const bool product = folding.reduction == Reduction::kProduct;
  Number others = product ? 1 : 0;
  for (int64_t part = 1; part < folding.parts; ++part) {
    const Number other = Scattered(element, part);
    others = product ? Times(others, other) : Add(others, other);
  }
  if (product) return Times(TruthOf(element), Inverse(others));
  return Subtract(Times(TruthOf(element), static_cast<Number>(folding.divisor)), others);
}

}  // namespace
}  // namespace summands_cc

Number TruthOf(int64_t element) { return summands_cc::Scattered(element, -1); }

Folding FoldingOver(const ir::AxisList& axes, const ir::Sharding& sharding, const ir::Mesh& mesh) {
  Folding folding{.parts = mesh.size(axes)};
  for (const ir::AxisIndex axis : axes.axes()) {
    folding.reduction = sharding.reductions[axis];
    if (folding.reduction == ir::Reduction::kAverage) folding.divisor *= mesh.size(axis);
  }
  return folding;
}

Number SummandOf(int64_t element, int64_t part, const Folding& folding) {
  const Number truth = TruthOf(element), scattered = summands_cc::Scattered(element, part);
  if (folding.parts == 1) return truth;
  switch (folding.reduction) {
    case ir::Reduction::kSum:
    case ir::Reduction::kAverage:
    case ir::Reduction::kProduct:
      return part == 0 ? summands_cc::FirstOf(element, folding) : scattered;
    case ir::Reduction::kMax:
    case ir::Reduction::kMin:
      break;
  }
  if (static_cast<int64_t>(truth % static_cast<Number>(folding.parts)) == part) return truth;
  const bool max = folding.reduction == ir::Reduction::kMax;
  return max ? scattered % (truth + 1) : truth + scattered % (summands_cc::kPrime - truth);
}

Number Fold(std::span<const Number> values, const Folding& folding) {
  switch (folding.reduction) {
    case ir::Reduction::kMax:
      return *std::ranges::max_element(values);
    case ir::Reduction::kMin:
      return *std::ranges::min_element(values);
    case ir::Reduction::kProduct: {
      Number product = 1;
      for (const Number value : values) product = summands_cc::Times(product, value);
      return product;
    }
    case ir::Reduction::kSum:
    case ir::Reduction::kAverage:
      break;
  }
  Number sum = 0;
  for (const Number value : values) sum = summands_cc::Add(sum, value);
  return folding.divisor == 1
             ? sum
             : summands_cc::Times(sum, summands_cc::Inverse(static_cast<Number>(folding.divisor)));
}

Number MadePartial(Number value, ir::Reduction reduction) {
  if (reduction == ir::Reduction::kSum) return 0;
  return reduction == ir::Reduction::kProduct ? 1 : value;
}

}  // namespace orrery::transforms::redistribution
