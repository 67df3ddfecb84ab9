#include <algorithm>

#include "ir/ops/recurrent.h"

// One application of a recurrent op on tensors, step by step.

namespace orrery::ir {

// A later name hides an earlier one: the results of a gradient op are none of the forward.
void Recurrence::Bind(const std::string& name, const Tensor* tensor) {
  tensors_.insert(tensors_.begin(), {name, const_cast<Tensor*>(tensor)});
}

Tensor* Recurrence::Find(absl::string_view name) const {
  for (const auto& [bound, tensor] : tensors_) {
    if (bound == name) return tensor;
  }
  return nullptr;
}

int64_t Recurrence::Length(int64_t sample) const {
  const Tensor* lengths = Find("sequence_lens");
  return lengths == nullptr ? shape_.steps : lengths->ints()[static_cast<size_t>(sample)];
}

Recurrence::Row Recurrence::At(Tensor& tensor, int64_t direction) {
  const int64_t n = tensor.dims().back();
  return Row(tensor.floats().data() + direction * n, n);
}

Recurrence::Matrix Recurrence::MatrixAt(Tensor& tensor, int64_t direction) {
  const int64_t rows = tensor.dims()[1], columns = tensor.dims()[2];
  return Matrix(tensor.floats().data() + direction * rows * columns, rows, columns);
}

Recurrence::Row Recurrence::At(Tensor& tensor, int64_t direction, int64_t sample) {
  const int64_t n = tensor.dims().back(), batch = tensor.dims()[1];
  return Row(tensor.floats().data() + (direction * batch + sample) * n, n);
}

Recurrence::Row Recurrence::At(Tensor& tensor, int64_t step, int64_t direction, int64_t sample) {
  const Dims& dims = tensor.dims();
  const int64_t n = dims.back(), batch = dims[dims.size() - 2];
  const int64_t at = dims.size() == 3 ? step : step * dims[1] + direction;
  return Row(tensor.floats().data() + (at * batch + sample) * n, n);
}

Recurrence::Vector Recurrence::Initial(absl::string_view name, int64_t direction,
                                       int64_t sample) const {
  Tensor* given = Find(name);
  return given == nullptr ? Vector(Vector::Zero(hidden())) : Vector(At(*given, direction, sample));
}

Recurrence::Vector Recurrence::Bias(int64_t direction, bool of_r) const {
  Tensor* bias = Find("bias");
  const int64_t rows = MatrixAt(*Find("w"), direction).rows();
  if (bias == nullptr) return Vector::Zero(rows);
  return of_r ? At(*bias, direction).tail(rows) : At(*bias, direction).head(rows);
}

Recurrence::Vector Recurrence::Activate(int64_t direction, size_t i, const Vector& x) const {
  const Activation& f = activation_[static_cast<size_t>(direction) * activations_ + i];
  return x.unaryExpr(
      [&](double value) { return f(clip_ > 0 ? std::clamp(value, -clip_, clip_) : value); });
}

// Nothing changes where a number was cut.
Recurrence::Vector Recurrence::Derivative(int64_t direction, size_t i, const Vector& y) const {
  const Activation& f = activation_[static_cast<size_t>(direction) * activations_ + i];
  return y.unaryExpr([&](double value) {
    if (clip_ > 0 && (value <= f(-clip_) || value >= f(clip_))) return 0.0;
    return f.Derivative(value);
  });
}

Recurrence::State Recurrence::StateBefore(int64_t direction, int64_t sample, int64_t turn) const {
  if (turn == 0) {
    return {.h = Initial("initial_h", direction, sample),
            .cell = Initial("initial_c", direction, sample)};
  }
  const int64_t last = StepOf(direction, sample, turn - 1);
  Tensor* cells = Find("cells");
  return {.h = At(*Find("y"), last, direction, sample),
          .cell = cells == nullptr ? Vector(Vector::Zero(hidden()))
                                   : Vector(At(*cells, last, direction, sample))};
}

void Recurrence::AddGateGradient(const GateGradient& g) const {
  const auto x = At(*Find("x"), g.step, g.direction, g.sample);
  const auto w = MatrixAt(*Find("w"), g.direction);
  At(*Find("dx"), g.step, g.direction, g.sample) += w.transpose() * g.at_w;
  MatrixAt(*Find("dw"), g.direction) += g.at_w * x.transpose();
  Tensor* dbias = Find("dbias");
  if (dbias == nullptr) return;
  At(*dbias, g.direction).head(g.at_w.size()) += g.at_w;
  At(*dbias, g.direction).tail(g.at_r.size()) += g.at_r;
}

Recurrence::Vector Recurrence::ThroughR(const GateGradient& g, const Vector& last_h) const {
  MatrixAt(*Find("dr"), g.direction) += g.at_r * last_h.transpose();
  return MatrixAt(*Find("r"), g.direction).transpose() * g.at_r;
}

}  // namespace orrery::ir
