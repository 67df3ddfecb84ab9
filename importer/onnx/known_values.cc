#include "importer/onnx/known_values.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "importer/onnx/external_data.h"
#include "importer/onnx/tensor_values.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::importer {
namespace known_values_cc {
namespace {

// What a node must know is a few ops away from constants.
constexpr int kMaxDepth = 16;
constexpr int64_t kMaxFilled = int64_t{1} << 16;

}  // namespace
}  // namespace known_values_cc

const ir::Tensor* KnownValues::Keep(ir::ValueId value, ir::Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return found_[value.index()] = &tensors_.back();
}

const ir::Tensor* KnownValues::Find(const ir::Function& function, ir::ValueId value) {
  const ir::OpId op = function.producer(value);
  if (!op.valid() || function.kind(op) != ir::OpKind::kConstant) return nullptr;
  const auto [row, is_new] = found_.try_emplace(value.index(), nullptr);
  if (!is_new) return row->second;
  if (ir::ElementCount(function.type(value).dims) > known_values_cc::kMaxFilled) return nullptr;
  std::optional<ir::Tensor> tensor =
      ir::ConstantTensor(function.attributes(op), function.type(value));
  return tensor.has_value() ? Keep(value, *std::move(tensor)) : FromSource(function, value);
}

const ir::Tensor* KnownValues::FromSource(const ir::Function& function, ir::ValueId value) {
  const auto source = sources_.find(value.index());
  if (source == sources_.end()) return nullptr;
  absl::StatusOr<std::optional<ir::Tensor>> tensor =
      source->second->data_location() == onnx::TensorProto::EXTERNAL
          ? ExternalTensorOf(*source->second, function.type(value), folder_)
          : TensorOf(*source->second, function.type(value));
  if (!tensor.ok()) troubles_[value.index()] = tensor.status();
  if (!tensor.ok() || !tensor->has_value()) return nullptr;
  return Keep(value, **std::move(tensor));
}

const ir::Tensor* KnownValues::Compute(const ir::Function& function, ir::ValueId value, int depth) {
  if (const ir::Tensor* constant = Find(function, value); constant != nullptr) return constant;
  const auto [row, is_new] = computed_.try_emplace(value.index(), nullptr);
  if (!is_new || depth > known_values_cc::kMaxDepth) return row->second;
  const ir::Tensor* tensor = function.producer(value).valid() ? FromOperands(function, value, depth)
                                                              : FromSource(function, value);
  return computed_[value.index()] = tensor;
}

const ir::Tensor* KnownValues::FromOperands(const ir::Function& function, ir::ValueId value,
                                            int depth) {
  const ir::OpId op = function.producer(value);
  if (function.operands(op).empty() || function.info(op).random) return nullptr;
  std::vector<ir::TensorType> types;
  for (int32_t i = 0; i < function.result_count(op); ++i) {
    types.push_back(function.type(function.result(op, i)));
    if (ir::ElementCount(types.back().dims) > kMaxValues) return nullptr;
  }
  absl::InlinedVector<const ir::Tensor*, 4> operands;
  for (const ir::ValueId operand : function.operands(op)) {
    operands.push_back(Compute(function, operand, depth + 1));
    if (operands.back() == nullptr) return nullptr;
  }
  absl::StatusOr<std::vector<ir::Tensor>> results =
      ir::Evaluate(function.kind(op), function.attributes(op), operands, types);
  if (!results.ok()) return nullptr;
  const auto i = static_cast<size_t>(value.index() - function.result(op).index());
  return Keep(value, std::move((*results)[i]));
}

}  // namespace orrery::importer
