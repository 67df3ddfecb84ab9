#include "importer/onnx/known_values.h"

#include <gtest/gtest.h>

#include "ir/op_kind.h"
#include "ir/tensor.h"

namespace orrery::importer {
namespace known_values_test_cc {
namespace {

onnx::TensorProto Scales() {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.add_float_data(1);
  tensor.add_float_data(2);
  return tensor;
}

// An initializer that may be trained is no constant; yet a node that needs its values can have
// them.
TEST(KnownValues, InitializersAreComputedWithOnlyWhenAsked) {
  ir::Function function;
  const ir::TensorType type{ir::DType::kF32, {2}, {}};
  const ir::ValueId data = function.AddInput("x", type, ir::InputRole::kData);
  const ir::ValueId scales = function.AddInput("s", type, ir::InputRole::kParameter);
  const ir::ValueId operands[] = {scales, scales}, mixed[] = {scales, data};
  const ir::ValueId sum = function.result(
      function.AddOp(ir::OpKind::kAdd, operands, ir::AttributesId(0), std::span(&type, 1)));
  const ir::ValueId unknown = function.result(
      function.AddOp(ir::OpKind::kAdd, mixed, ir::AttributesId(0), std::span(&type, 1)));
  const onnx::TensorProto tensor = Scales();
  KnownValues known;
  known.AddSource(scales, tensor);
  EXPECT_EQ(known.Find(function, scales), nullptr);
  EXPECT_EQ(known.Find(function, sum), nullptr);
  ASSERT_NE(known.Compute(function, sum), nullptr);
  EXPECT_EQ(known.Compute(function, sum)->floats(), (std::vector<double>{2, 4}));
  EXPECT_EQ(known.Compute(function, unknown), nullptr);
  EXPECT_EQ(known.Compute(function, data), nullptr);
}

}  // namespace
}  // namespace known_values_test_cc
}  // namespace orrery::importer
