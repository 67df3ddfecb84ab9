#ifndef ORRERY_IR_BUILDER_H_
#define ORRERY_IR_BUILDER_H_

#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "ir/last_of_kind.h"
#include "ir/op_info.h"

namespace orrery::ir {

/// Builds a function op by op; types are inferred. The first error sticks: later calls return an
/// invalid value and do nothing, and Finalize reports it. So a model reads as one straight text.
///
///   Builder b("layer");
///   const ValueId x = b.Data("x", {DType::kF32, {64, 16}});
///   const ValueId w = b.Parameter("w", {DType::kF32, {16, 16}});
///   b.Return(b.Relu(b.MatMul(x, w, "y"), "a"));
///   absl::StatusOr<Function> layer = std::move(b).Finalize();
class Builder {
 public:
  explicit Builder(absl::string_view name, Mesh mesh = Mesh()) : function_(name, std::move(mesh)) {}
  Builder(Builder&&) = default;
  Builder& operator=(Builder&&) = default;
  /// Continues a function that stands already.
  explicit Builder(Function function) : function_(std::move(function)) {}

  /// Adds a data input, a batch of samples or labels, and returns it; dimension 0 is the batch.
  ValueId Data(absl::string_view name, const TensorType& type) {
    return AddInput(name, type, InputRole::kData);
  }
  /// Adds a parameter, which training updates, and returns it.
  ValueId Parameter(absl::string_view name, const TensorType& type) {
    return AddInput(name, type, InputRole::kParameter);
  }
  /// Adds an input of any role and returns it; invalid after an error, as where the type has a
  /// dimension of 0 or is beyond IsWithinLimits.
  ValueId AddInput(absl::string_view name, const TensorType& type, InputRole role);

  /// Appends an op of any kind with one result.
  ValueId Op(OpKind kind, std::span<const ValueId> operands, absl::string_view name = "",
             const AttributeSet& attributes = {});
  ValueId Op(OpKind kind, std::initializer_list<ValueId> operands, absl::string_view name = "",
             const AttributeSet& attributes = {}) {
    return Op(kind, std::span(operands.begin(), operands.size()), name, attributes);
  }
  /// Appends an op of any kind; `names` is empty or has one name a result. Returns the op; invalid
  /// after an error.
  OpId Ops(OpKind kind, std::span<const ValueId> operands,
           std::span<const absl::string_view> names = {}, const AttributeSet& attributes = {});

  // The ops that models are written with.
  /// Appends the product of x and w, x·w, and returns it.
  ValueId MatMul(ValueId x, ValueId w, absl::string_view name = "");
  /// Appends the sum of x and y and returns it.
  ValueId Add(ValueId x, ValueId y, absl::string_view name = "");
  /// Appends the larger of x and 0, element by element, and returns it.
  ValueId Relu(ValueId x, absl::string_view name = "");
  /// Appends the gradient of Relu(x) in x, where `dy` is that of its result, and returns it.
  ValueId ReluGrad(ValueId x, ValueId dy, absl::string_view name = "");
  /// Gradients of MatMul(x, w): of x and of w.
  std::pair<ValueId, ValueId> MatMulGrad(ValueId x, ValueId w, ValueId dy,
                                         absl::string_view dx_name = "",
                                         absl::string_view dw_name = "");
  /// Squared error of each element over `batch`, and its gradient.
  ValueId Loss(ValueId prediction, ValueId target, int64_t batch, absl::string_view name = "");
  /// Appends the gradient of Loss in `prediction` and returns it.
  ValueId LossGrad(ValueId prediction, ValueId target, int64_t batch, absl::string_view name = "");

  /// Appends an op whose results have the types that are given: for kinds that infer none.
  OpId TypedOp(OpKind kind, std::span<const ValueId> operands, const TensorType& type,
               absl::string_view name, const AttributeSet& attributes);

  /// Whether a value of the function has that name. The first call looks at all of them.
  bool IsTaken(absl::string_view name);
  /// `name`, with as many primes as it takes to be new.
  std::string FreeName(std::string name);

  /// Makes `value` the next output; `of` is the input that a gradient, an update or an accumulation
  /// belongs to. Does nothing after an error.
  void Return(ValueId value, OutputRole role = OutputRole::kResult, ValueId of = ValueId());
  /// The same for the gradient of input `of`.
  void ReturnGradient(ValueId gradient, ValueId of) { Return(gradient, OutputRole::kGradient, of); }

  /// Makes the error stick, for callers that find one themselves.
  void Fail(const absl::Status& status);
  const absl::Status& status() const { return status_; }
  /// The function so far; what a pass that continues it reads.
  const Function& function() const { return function_; }
  Function& function() { return function_; }
  /// The type of a value; the default type of an invalid one, such as errors leave.
  TensorType type(ValueId value) const;

  /// The function, or the first error: "mlp: MatMul 'y0': inner dimensions differ; got 64 and 96".
  absl::StatusOr<Function> Finalize() &&;

 private:
  using TypeIds = absl::InlinedVector<TypeId, 4>;
  // The types of the results; null after an error.
  const TypeIds* Infer(OpKind kind, std::span<const ValueId> operands, AttributesId attributes,
                       std::span<const absl::string_view> names);

  Function function_;
  absl::Status status_;
  TypeList scratch_;
  LastOfKind<TypeIds> inferred_;
  absl::flat_hash_set<absl::string_view> taken_;  // of the first named_ values
  int32_t named_ = 0;
};

/// What a gradient rule works with: one op of the function that is being continued, and the
/// gradients of its results.
/// So many parameters: it is all that a gradient rule sees, made at one place.
class GradientContext {
 public:
  /// Where values have the batch: of BatchDims and LastBatchDims.
  struct BatchPlaces {
    IdTable<ValueId, int8_t> first, last;
  };

  /// `batch_places`: null when the batch stays.
  GradientContext(Builder& builder, OpId op, std::span<const ValueId> result_gradients,
                  const IdTable<ValueId, char>& needed, const BatchPlaces* batch_places = nullptr);

  /// Where the rule appends its ops: the function that has the op.
  Builder& builder() { return builder_; }
  const AttributeSet& attributes() const { return builder_.function().attributes(op_); }
  /// Operand i of the op, from 0.
  ValueId operand(int i) const { return builder_.function().operands(op_)[static_cast<size_t>(i)]; }
  /// Result i of the op, from 0.
  ValueId result(int i = 0) const { return builder_.function().result(op_, i); }
  /// The type of operand i: a copy, good whatever is appended.
  TensorType operand_type(int i) const { return builder_.type(operand(i)); }
  /// The gradient of result i; invalid when nothing depends on that result.
  ValueId result_gradient(int i = 0) const { return result_gradients_[static_cast<size_t>(i)]; }
  /// Whether anyone wants the gradient of operand i.
  bool needs(int i) const {
    const uint32_t never = builder_.function().info(op_).no_gradient;
    return needed_[operand(i)] != 0 && (i >= 32 || (never >> i & 1) == 0);
  }
  /// The dimension of operand i that grows with the batch; -1 when none does.
  int batch_dim(int i) const { return places_ == nullptr ? -1 : places_->first[operand(i)]; }
  /// The last that does; another one where samples meet each other.
  int last_batch_dim(int i) const { return places_ == nullptr ? -1 : places_->last[operand(i)]; }
  int operand_count() const { return static_cast<int>(operand_gradients_.size()); }
  /// "dw": the name for the gradient of operand i.
  std::string GradientName(int i) const;
  /// Says what the gradient of operand i is: what the rule is for.
  void SetOperandGradient(int i, ValueId gradient) {
    operand_gradients_[static_cast<size_t>(i)] = gradient;
  }
  const std::vector<ValueId>& operand_gradients() const { return operand_gradients_; }

 private:
  Builder& builder_;
  OpId op_;
  std::span<const ValueId> result_gradients_;
  const IdTable<ValueId, char>& needed_;
  const BatchPlaces* places_;
  std::vector<ValueId> operand_gradients_;
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_BUILDER_H_
