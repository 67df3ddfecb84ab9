#ifndef ORRERY_IR_OPS_RECURRENT_H_
#define ORRERY_IR_OPS_RECURRENT_H_

#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/ops/recurrent_activation.h"
#include "ir/tensor.h"

// What Lstm, Gru and Rnn have in common. Operands are x [steps,batch,input], w [directions,
// gates·hidden,input], r [directions,gates·hidden,hidden] and those that the attribute `given`
// names, in its order: "bias" [directions,2·gates·hidden] (of w, then of r), "sequence_lens"
// [batch], "initial_h" and "initial_c" [directions,batch,hidden], "peepholes"
// [directions,3·hidden]. `direction` is "forward", "reverse" or "bidirectional". Names and layouts
// are those of ONNX.

namespace orrery::ir {

/// What tells one kind from another.
struct Cell {
  int64_t gates;                         // of the weights
  std::vector<absl::string_view> given;  // that it may have
  std::vector<absl::string_view> activations;
  bool has_cells;  // whether there is a y_c, and cells besides gates are saved
  bool has_gates;  // whether gates are saved
  bool has_reset;  // whether there is a linear_before_reset, which saves a product besides gates
  OpKind gradient;
};

struct RecurrentShape {
  int64_t steps, batch, input, directions, hidden;

  Dims Output() const { return {steps, directions, batch, hidden}; }
  Dims Last() const { return {directions, batch, hidden}; }
};

/// Names of the operands behind the third, of the attribute `name`.
std::vector<std::string> NameList(const AttributeSet& attributes, absl::string_view name);

// Names of operands and results, in their order.

/// Of all operands of the forward.
std::vector<std::string> ForwardNames(const AttributeSet& attributes);
/// Of the results of the forward.
std::vector<std::string> ResultNames(const Cell& cell);
/// Of the results that the backward needs.
std::vector<std::string> SavedNames(const Cell& cell);
/// Of the operands of the gradient op.
std::vector<std::string> BackwardNames(const Cell& cell, const AttributeSet& attributes);
/// Of the operands of the forward whose gradients are its results.
std::vector<std::string> DifferentiatedNames(const AttributeSet& attributes);

/// How many numbers an element of the state saves among the gates.
int64_t SavedGates(const Cell& cell, const AttributeSet& attributes);

/// Results y [steps,directions,batch,hidden], y_h [, y_c], and what the backward needs: gates and
/// cells.
absl::Status InferRecurrent(const Cell& cell, const OpTypes& op, TypeList& results);
/// Of the gradient op: operands of the forward; y [, gates] [, cells]; the gradients that the
/// attribute `gradients` names, of "y", "y_h" and "y_c". Results: gradients of x, w, r, and of what
/// is given, but for sequence_lens and what the attribute `without` names.
absl::Status InferRecurrentGrad(const Cell& cell, const OpTypes& op, TypeList& results);
/// Of the forward: two for each weight, sample and step, in w and r alike. What is done a gate is
/// left out, as published figures of recurrent nets do.
double RecurrentFlops(const Cell& cell, const OpTypes& op);
/// Of the gradient op: the products that make what it returns, and those back through the steps.
double RecurrentGradFlops(const Cell& cell, const OpTypes& op);
/// The batch may be split.
ShardingRule RecurrentSharding(const Cell& cell, const OpTypes& op, const TypeList& results,
                               bool backward);
/// One gradient op for all operands; gradients of y, y_h and y_c may be there or not.
absl::Status RecurrentGradient(const Cell& cell, GradientContext& c);

/// One application on tensors, of one direction and one sample after the other.
class Recurrence {
 public:
  using Vector = Eigen::VectorXd;
  using Row = Eigen::Map<Vector>;
  using Matrix = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

  /// Binds operands and results under their names. An error for lengths that are none.
  static absl::StatusOr<Recurrence> Create(const Cell& cell, Evaluation& e);

  const RecurrentShape& shape() const { return shape_; }
  int64_t hidden() const { return shape_.hidden; }
  /// Calls f(direction, sample).
  template <typename F>
  void ForEachSequence(F f) const {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      for (int64_t b = 0; b < shape_.batch; ++b) f(d, b);
    }
  }
  /// How many steps a sample has.
  int64_t Length(int64_t sample) const;
  /// The step that is computed as the `turn`-th.
  int64_t StepOf(int64_t direction, int64_t sample, int64_t turn) const {
    return IsReverse(direction) ? Length(sample) - 1 - turn : turn;
  }
  bool IsReverse(int64_t direction) const { return direction == 1 || reverse_; }

  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
  /// An operand, a result or a gradient; null when it is absent.
  Tensor* Find(absl::string_view name) const;
  /// The row of a direction in [directions,n].
  static Row At(Tensor& tensor, int64_t direction);
  /// The matrix of a direction in [directions,rows,columns].
  static Matrix MatrixAt(Tensor& tensor, int64_t direction);
  /// The vector of a sample in [directions,batch,n].
  static Row At(Tensor& tensor, int64_t direction, int64_t sample);
  /// The vector of a sample at a step in [steps,directions,batch,n] or [steps,batch,n].
  static Row At(Tensor& tensor, int64_t step, int64_t direction, int64_t sample);

  /// The state before the first step.
  Vector Initial(absl::string_view name, int64_t direction, int64_t sample) const;
  /// What goes from step to step, or gradients of it. Without cells `cell` is zero.
  struct State {
    Vector h, cell;
  };
  /// The gradient of all gates before their activation, of one step of one sample; `at_r` is the
  /// part that goes through r.
  struct GateGradient {
    int64_t step, direction, sample;
    Vector at_w, at_r;
  };
  /// Goes back through all sequences, last step first. f(gradient, last, flow) sets `at_w` and
  /// `at_r` from the state before the step and from `flow`, the gradient of the state after it, and
  /// makes `flow` that of the state before it. The gradients of x, w and bias follow from it here,
  /// and that of the initial state from the last flow; that of r is left to f.
  template <typename F>
  void ForEachStepBack(F f) const {
    ForEachSequence([&](int64_t d, int64_t b) {
      State flow = {.h = Initial("dy_h", d, b), .cell = Initial("dy_c", d, b)};
      for (int64_t turn = Length(b); turn-- > 0;) {
        GateGradient gradient = {
            .step = StepOf(d, b, turn), .direction = d, .sample = b, .at_w = {}, .at_r = {}};
        if (Tensor* dy = Find("dy")) flow.h += At(*dy, gradient.step, d, b);
        f(gradient, StateBefore(d, b, turn), flow);
        AddGateGradient(gradient);
      }
      if (Tensor* dh = Find("dinitial_h")) At(*dh, d, b) = flow.h;
      if (Tensor* dc = Find("dinitial_c")) At(*dc, d, b) = flow.cell;
    });
  }
  /// Where gates see the state by r alone: adds to the gradient of r, and returns that of the h
  /// before.
  Vector ThroughR(const GateGradient& gradient, const Vector& last_h) const;

  /// The half of the bias that belongs to w, or to r; zero without one.
  Vector Bias(int64_t direction, bool of_r) const;

  /// Activation number `i` of a direction, on numbers cut to the attribute `clip`.
  Vector Activate(int64_t direction, size_t i, const Vector& x) const;
  /// Its derivative where the results are y; none where numbers were cut.
  Vector Derivative(int64_t direction, size_t i, const Vector& y) const;

  /// Makes `tensor` be found under the name; it may be written to only if it is a result.
  void Bind(const std::string& name, const Tensor* tensor);

 private:
  // What the `turn`-th step of a sample started from.
  State StateBefore(int64_t direction, int64_t sample, int64_t turn) const;
  void AddGateGradient(const GateGradient& gradient) const;

  RecurrentShape shape_;
  bool reverse_ = false;
  double clip_ = 0;
  size_t activations_ = 0;  // a direction
  std::vector<Activation> activation_;
  std::vector<std::pair<std::string, Tensor*>> tensors_;
  std::vector<std::unique_ptr<Tensor>> unwanted_;

  friend absl::StatusOr<Recurrence> BackwardRecurrence(const Cell& cell, Evaluation& e);
};

/// Binds what a gradient op has: "y", "gates", "cells", "dy", "dy_h", "dy_c" and for each result
/// "d" and the name of the operand.
absl::StatusOr<Recurrence> BackwardRecurrence(const Cell& cell, Evaluation& e);

/// What the records of one kind do not have in common with those of the others.
struct RecurrentWords {
  absl::string_view name, summary;
  int results;
  absl::Status (*evaluate)(Evaluation& e);
};

/// The record of the kind with that cell.
template <const Cell& (*cell)()>
constexpr OpInfo RecurrentInfo(const RecurrentWords& words) {
  OpInfo info;
  info.name = words.name;
  info.summary = words.summary;
  info.operands = OpInfo::kVariadic;
  info.results = words.results;
  info.infer = [](const OpTypes& op, TypeList& results) {
    return InferRecurrent(cell(), op, results);
  };
  info.flops = [](const OpTypes& op, const TypeList&) { return RecurrentFlops(cell(), op); };
  info.sharding = [](const OpTypes& op, const TypeList& results) {
    return RecurrentSharding(cell(), op, results, false);
  };
  info.evaluate = words.evaluate;
  info.gradient = [](GradientContext& c) { return RecurrentGradient(cell(), c); };
  info.matrix_product = true;
  return info;
}

/// The record of its gradient op.
template <const Cell& (*cell)()>
constexpr OpInfo RecurrentGradInfo(const RecurrentWords& words) {
  OpInfo info = RecurrentInfo<cell>(words);
  info.infer = [](const OpTypes& op, TypeList& results) {
    return InferRecurrentGrad(cell(), op, results);
  };
  info.flops = [](const OpTypes& op, const TypeList&) { return RecurrentGradFlops(cell(), op); };
  info.sharding = [](const OpTypes& op, const TypeList& results) {
    return RecurrentSharding(cell(), op, results, true);
  };
  info.gradient = nullptr;
  return info;
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_RECURRENT_H_
