#ifndef ORRERY_SUPPORT_NUMBERS_MEDIAN_H_
#define ORRERY_SUPPORT_NUMBERS_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace orrery {

/// The middle one of the values, or the mean of the two in the middle; 0 of none.
inline double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace orrery

#endif  // ORRERY_SUPPORT_NUMBERS_MEDIAN_H_
