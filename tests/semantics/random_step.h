#ifndef ORRERY_TESTS_SEMANTICS_RANDOM_STEP_H_
#define ORRERY_TESTS_SEMANTICS_RANDOM_STEP_H_

#include <cstdint>
#include <string>

#include "ir/function.h"
#include "tests/semantics/shard.h"

namespace orrery::semantics {

/// What a random forward function is made from.
struct RandomShape {
  uint32_t seed = 0;
  int layers = 2;  // matrix products with a weight of their own
  int64_t batch = 4;
  int64_t width_unit = 2;  // widths are one to three times this
  bool tied = false;       // a weight may be used by several products
};

/// A forward function with one result: layers of products with weights that are plain, stored
/// transposed or scaled first; biases, gains, masks, ReLUs and scales; additions of earlier
/// activations; of rank 2 or 3. Every value has a name.
ir::Function RandomForward(const RandomShape& shape);

/// The whole training step of RandomForward(shape). Every output has a name.
ir::Function RandomStep(const RandomShape& shape, const std::string& optimizer);

/// A random tensor for every input of `function`; what belongs to an optimizer is positive, and
/// whole numbers
/// are positions in what they index.
Named RandomInputs(const ir::Function& function, uint32_t seed);

}  // namespace orrery::semantics

#endif  // ORRERY_TESTS_SEMANTICS_RANDOM_STEP_H_
