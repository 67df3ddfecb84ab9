#include "support/numbers/quantile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace orrery {

double QuantileOf(std::span<const double> ascending, double share) {
  const double place = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  return std::lerp(ascending[below], ascending[above], place - static_cast<double>(below));
}

}  // namespace orrery
