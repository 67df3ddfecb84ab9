#ifndef ORRERY_TESTS_MODELS_SMALL_SIZES_H_
#define ORRERY_TESTS_MODELS_SMALL_SIZES_H_

#include <cstdint>
#include <map>

#include "ir/function.h"

namespace orrery {

/// Dimensions of a model, and what they become: its graph at a size that an interpreter can run.
struct SmallSizes {
  std::map<int64_t, int64_t> dims;
  std::map<int64_t, int64_t> kernels;     // of pools as wide as their images
  std::map<int64_t, int64_t> heads = {};  // of attention
};

/// `function`, op by op, with those dimensions in its inputs, constants and shapes. Aborts when it
/// does not fit together.
ir::Function WithSmallSizes(const ir::Function& function, const SmallSizes& sizes);

}  // namespace orrery

#endif  // ORRERY_TESTS_MODELS_SMALL_SIZES_H_
