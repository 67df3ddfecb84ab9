#ifndef ORRERY_COST_MODELS_KERNELS_LEAST_KERNEL_H_
#define ORRERY_COST_MODELS_KERNELS_LEAST_KERNEL_H_

#include <algorithm>
#include <cmath>

#include "absl/container/inlined_vector.h"

// What kernels take at least, however they are parted.

namespace orrery::cost_models {

/// From below, seconds of a kernel. Each share of it has its share of both.
struct LeastKernel {
  double arithmetic_s = 0;  // at the fastest rate that there is
  double memory_s = 0;      // likewise
  /// How sharply the longer of both decides: time is no less than the norm of this order of the
  /// two. 0: than the longer.
  double overlap = 0;

  /// Seconds of such a kernel.
  double seconds() const {
    const double longer = std::max(arithmetic_s, memory_s);
    if (overlap <= 0 || longer <= 0) return longer;
    const double other = std::min(arithmetic_s, memory_s) / longer;
    return longer * std::pow(1 + std::pow(other, overlap), 1 / overlap);
  }
};

/// From below, what an op takes.
struct LeastTime {
  absl::InlinedVector<LeastKernel, 4> kernels;
  double starts_s = 0;  // of the kernels; each share has all of them

  /// Of the op as a whole.
  double seconds() const {
    double sum = starts_s;
    for (const LeastKernel& kernel : kernels) sum += kernel.seconds();
    return sum;
  }
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_LEAST_KERNEL_H_
