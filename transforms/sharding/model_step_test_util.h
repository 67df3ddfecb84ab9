#ifndef ORRERY_TRANSFORMS_SHARDING_MODEL_STEP_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_SHARDING_MODEL_STEP_TEST_UTIL_H_

#include "ir/models/model_test_util.h"
#include "transforms/training/training_step.h"

// For tests only.

namespace orrery::transforms {

/// The training step of a built-in model in f32, with Adam.
inline ir::Function ModelStep(absl::string_view family, absl::string_view keys, int64_t batch) {
  ir::Function function = ir::BuildModel(family, keys, batch);
  const absl::Status status = MakeTrainingStep(function, {.optimizer = "adam"});
  EXPECT_TRUE(status.ok()) << status;
  return function;
}

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_MODEL_STEP_TEST_UTIL_H_
