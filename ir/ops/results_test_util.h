#ifndef ORRERY_IR_OPS_RESULTS_TEST_UTIL_H_
#define ORRERY_IR_OPS_RESULTS_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <vector>

#include "ir/op_info.h"
#include "ir/tensor.h"

// For tests only.

namespace orrery::ir {

/// What an op makes of whole tensors; nothing, and a failure, where it cannot be applied.
inline std::vector<Tensor> Results(OpKind kind, const std::vector<Tensor>& operands,
                                   const AttributeSet& attributes = {}) {
  std::vector<TensorType> types;
  std::vector<const Tensor*> tensors;
  for (const Tensor& operand : operands) {
    types.push_back(operand.type());
    tensors.push_back(&operand);
  }
  std::vector<const TensorType*> positions;
  for (const TensorType& type : types) positions.push_back(&type);
  const Mesh none;
  TypeList results;
  const absl::Status status = InferTypes(kind, {attributes, positions, none}, results);
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return {};
  const auto values = Evaluate(kind, attributes, tensors, results);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<Tensor>();
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_RESULTS_TEST_UTIL_H_
