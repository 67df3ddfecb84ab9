#ifndef ORRERY_TRANSFORMS_PLAN_DIVISORS_H_
#define ORRERY_TRANSFORMS_PLAN_DIVISORS_H_

#include <cstdint>
#include <vector>

namespace orrery::transforms {

/// The divisors of `n` >= 1, ascending.
std::vector<int64_t> Divisors(int64_t n);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_DIVISORS_H_
