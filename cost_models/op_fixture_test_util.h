#ifndef ORRERY_COST_MODELS_OP_FIXTURE_TEST_UTIL_H_
#define ORRERY_COST_MODELS_OP_FIXTURE_TEST_UTIL_H_

#include <initializer_list>
#include <utility>
#include <vector>

#include "cost_models/cost_model.h"
#include "ir/op_info.h"

// For tests only.

namespace orrery::cost_models {

/// An OpView needs somebody who owns what it points to: one op with the types of its operands, and
/// of its results as its record infers them.
class OpFixture {
 public:
  OpFixture(ir::OpKind kind, std::vector<ir::TensorType> operands, ir::AttributeSet attributes = {})
      : kind_(kind), operand_types_(std::move(operands)), attributes_(std::move(attributes)) {
    for (const ir::TensorType& type : operand_types_) operands_.push_back(&type);
    if (ir::GetOpInfo(kind).infer == nullptr) return;
    status_ = ir::InferTypes(kind, {attributes_, operands_, no_mesh_}, result_types_);
    if (!status_.ok()) return;
    for (const ir::TensorType& type : result_types_) results_.push_back(&type);
  }
  OpFixture(const OpFixture&) = delete;
  OpFixture& operator=(const OpFixture&) = delete;

  /// Whether the record takes these operands.
  const absl::Status& status() const { return status_; }
  OpView view() const { return {kind_, attributes_, operands_, results_}; }

 private:
  ir::OpKind kind_;
  std::vector<ir::TensorType> operand_types_;
  ir::AttributeSet attributes_;
  ir::Mesh no_mesh_;
  ir::TypeList result_types_;
  std::vector<const ir::TensorType*> operands_, results_;
  absl::Status status_;
};

/// A local tensor.
inline ir::TensorType Tensor(std::initializer_list<int64_t> dims,
                             ir::DType dtype = ir::DType::kF32) {
  return {.dtype = dtype, .dims = dims, .sharding = {}};
}

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_OP_FIXTURE_TEST_UTIL_H_
