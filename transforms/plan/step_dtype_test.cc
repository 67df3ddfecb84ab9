#include "transforms/plan/step_dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transforms/plan/plan_text.h"

namespace orrery::transforms {
namespace step_dtype_test_cc {
namespace {

TEST(TensorDType, IsThatOfMixedPrecisionToo) {
  EXPECT_EQ(TensorDType(StepDType::kModel), std::nullopt);
  EXPECT_EQ(TensorDType(StepDType::kF32), ir::DType::kF32);
  EXPECT_EQ(TensorDType(StepDType::kF16), ir::DType::kF16);
  EXPECT_EQ(TensorDType(StepDType::kBF16), ir::DType::kBF16);
  EXPECT_EQ(TensorDType(StepDType::kF8Mixed), ir::DType::kBF16);
  EXPECT_EQ(TensorDType(StepDType::kF8Blocks), ir::DType::kBF16);
  EXPECT_EQ(TensorDType(StepDType::kF4Mixed), ir::DType::kBF16);
  EXPECT_EQ(TensorDType(StepDType::kF8), ir::DType::kF8);
}

TEST(CopyDType, IsThatOfMixedPrecisionAlone) {
  EXPECT_EQ(CopyDType(StepDType::kF8Mixed), ir::DType::kF8);
  EXPECT_EQ(CopyDType(StepDType::kF8Blocks), ir::DType::kF8Block);
  EXPECT_EQ(CopyDType(StepDType::kF4Mixed), ir::DType::kF4);
  EXPECT_EQ(CopyDType(StepDType::kBF16), std::nullopt);
  EXPECT_EQ(CopyDType(StepDType::kF8), std::nullopt);
}

// The name of each type of tensors is that of the flag, but for what is mixed.
TEST(StepKey, NamesTheTypeAlone) {
  EXPECT_EQ(StepKey({}), "--dtype model");
  EXPECT_EQ(StepKey({.dp = 4, .zero = 3, .dtype = StepDType::kF8Mixed}), "--dtype fp8-mixed");
  EXPECT_EQ(StepKey({.dtype = StepDType::kF4Mixed}), "--dtype nvfp4-mixed");
}

}  // namespace
}  // namespace step_dtype_test_cc
}  // namespace orrery::transforms
