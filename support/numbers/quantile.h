#ifndef ORRERY_SUPPORT_NUMBERS_QUANTILE_H_
#define ORRERY_SUPPORT_NUMBERS_QUANTILE_H_

#include <span>

namespace orrery {

/// What the share of the values, 0 to 1, is below; between two of them in proportion, as numpy's
/// percentiles. Requires at least one value, and ascending ones.
double QuantileOf(std::span<const double> ascending, double share);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_NUMBERS_QUANTILE_H_
