#ifndef ORRERY_TRANSFORMS_PASS_REWRITER_H_
#define ORRERY_TRANSFORMS_PASS_REWRITER_H_

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/builder.h"
#include "ir/function.h"
#include "ir/tensor.h"

// How the passes that simplify rewrite a function: in one walk over its ops, in their order. A rule
// looks at an op and what it is made from, appends better ops, and replaces the op's results by
// theirs. What nothing uses any more goes at once, so that "used once" is always true.

namespace orrery::transforms {

class Rewriter {
 public:
  /// A rule is called for each op after those that it is made from have been rewritten.
  using Rule = std::function<void(Rewriter&, ir::OpId)>;

  // What is there.

  const ir::Function& function() const { return builder_.function(); }
  ir::OpKind kind(ir::OpId op) const { return function().kind(op); }
  ir::ValueId operand(ir::OpId op, size_t i) const { return function().operands(op)[i]; }
  size_t operand_count(ir::OpId op) const { return function().operands(op).size(); }
  ir::ValueId result(ir::OpId op, int32_t i = 0) const { return function().result(op, i); }
  const ir::TensorType& type(ir::ValueId value) const { return function().type(value); }
  const ir::Dims& dims(ir::ValueId value) const { return function().type(value).dims; }
  size_t rank(ir::ValueId value) const { return dims(value).size(); }
  const ir::AttributeSet& attributes(ir::OpId op) const { return function().attributes(op); }
  /// How many ops and outputs use the value.
  int32_t uses(ir::ValueId value) const { return uses_[value]; }
  bool is_returned(ir::ValueId value) const { return returned_[value] != 0; }
  bool is_alive(ir::OpId op) const { return dead_[op] == 0; }
  /// Whether the value is there before the op in hand.
  bool is_defined(ir::ValueId value) const {
    return !producer(value).valid() || placed_[producer(value)] != 0;
  }
  /// The op that makes the value; invalid for an input.
  ir::OpId producer(ir::ValueId value) const { return function().producer(value); }
  /// The op of that kind whose first result `value` is; invalid when another makes it.
  ir::OpId MadeBy(ir::ValueId value, ir::OpKind kind) const;
  /// The same where nothing but the op in hand uses the value: `times` times.
  ir::OpId MadeOnlyFor(ir::ValueId value, ir::OpKind kind, int32_t times = 1) const;
  /// The one number that all elements of a constant are.
  std::optional<double> Number(ir::ValueId value) const;
  /// The tensor that a value is known to be: a constant that kept its elements, of which there are
  /// at most `limit`.
  std::optional<ir::Tensor> Known(ir::ValueId value, int64_t limit) const;

  // What is to be.

  ir::Builder& builder() { return builder_; }
  /// Appends an op at the position of the one in hand.
  ir::ValueId Op(ir::OpKind kind, std::initializer_list<ir::ValueId> operands,
                 const ir::AttributeSet& attributes = {}) {
    return Op(kind, std::span(operands.begin(), operands.size()), attributes);
  }
  ir::ValueId Op(ir::OpKind kind, std::span<const ir::ValueId> operands,
                 const ir::AttributeSet& attributes = {});
  /// The same for an op of several results; invalid after an error.
  ir::OpId Ops(ir::OpKind kind, std::span<const ir::ValueId> operands,
               const ir::AttributeSet& attributes = {});
  ir::ValueId Constant(const ir::Tensor& tensor);
  /// A constant whose elements are all `value`.
  ir::ValueId Filled(const ir::TensorType& type, double value);
  /// Whether Replace may put `value`, which was there before, instead of `old`: two outputs
  /// must not become one.
  bool MayReplace(ir::ValueId old, ir::ValueId value) const;
  /// From here on `value` stands wherever `old` did, and takes its name unless it has one. They
  /// must have one type.
  void Replace(ir::ValueId old, ir::ValueId value);

 private:
  friend absl::StatusOr<bool> Rewrite(ir::Function& function, const Rule& rule);
  explicit Rewriter(ir::Function function);
  absl::Status Walk(const Rule& rule);
  void TakeNewOps();
  void ResolveOperands(ir::OpId op);
  ir::ValueId Resolve(ir::ValueId value);
  void Place(ir::OpId op);
  void DropIfUnused(ir::OpId op);
  void Finish();

  ir::Builder builder_;
  IdTable<ir::ValueId, int32_t> uses_;
  IdTable<ir::ValueId, char> returned_;
  IdTable<ir::ValueId, ir::ValueId> replaced_;  // by what; invalid: it stands
  IdTable<ir::OpId, char> dead_;
  IdTable<ir::OpId, char> placed_;  // stands in order_
  std::vector<ir::OpId> order_;
  int32_t taken_ = 0;  // ops before this one are in the order, or were
  bool changed_ = false;
};

/// Rewrites a function of one device by `rule`; true when that changed it. A function that is
/// sharded over a mesh stays as it is: it was simplified before.
absl::StatusOr<bool> Rewrite(ir::Function& function, const Rewriter::Rule& rule);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PASS_REWRITER_H_
