#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/ops/recurrent.h"
#include "support/status.h"

// Recurrent nets on tensors: what the evaluations of Lstm, Gru and Rnn have in common.

namespace orrery::ir {

absl::StatusOr<Recurrence> Recurrence::Create(const Cell& cell, Evaluation& e) {
  Recurrence r;
  const Dims &x = e.operand(0).dims(), &w = e.operand(2).dims();
  r.shape_ = {.steps = x[0], .batch = x[1], .input = x[2], .directions = w[0], .hidden = w[2]};
  r.reverse_ = e.attributes.String("direction", "forward") == "reverse";
  r.clip_ = e.attributes.Number("clip", 0);
  r.activations_ = cell.activations.size();
  const std::vector<std::string> names = NameList(e.attributes, "activations");
  std::vector<double> alpha, beta;
  if (const Attribute* found = e.attributes.Find("activation_alpha")) {
    if (const auto* list = std::get_if<std::vector<double>>(found)) alpha = *list;
  }
  if (const Attribute* found = e.attributes.Find("activation_beta")) {
    if (const auto* list = std::get_if<std::vector<double>>(found)) beta = *list;
  }
  const size_t count = r.activations_ * static_cast<size_t>(r.shape_.directions);
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view name =
        names.empty() ? cell.activations[i % r.activations_] : absl::string_view(names[i]);
    const ActivationDefaults* defaults = FindActivation(name);
    if (defaults == nullptr) return absl::InvalidArgumentError("an activation is unknown");
    ORRERY_ASSIGN_OR_RETURN(const Activation activation,
                            Activation::Named(name, i < alpha.size() ? alpha[i] : defaults->alpha,
                                              i < beta.size() ? beta[i] : defaults->beta));
    r.activation_.push_back(activation);
  }
  const std::vector<std::string> operands = ForwardNames(e.attributes);
  for (size_t i = 0; i < operands.size(); ++i) r.Bind(operands[i], &e.operand(i));
  const std::vector<std::string> results = ResultNames(cell);
  for (size_t j = 0; j < results.size() && j < e.results.size(); ++j) {
    r.Bind(results[j], &e.results[j]);
  }
  if (Tensor* lengths = r.Find("sequence_lens")) {
    for (const int64_t length : lengths->ints()) {
      if (length >= 0 && length <= r.shape_.steps) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("sequence_lens has ", length, "; wanted 0 to ", r.shape_.steps));
    }
  }
  return r;
}

absl::StatusOr<Recurrence> BackwardRecurrence(const Cell& cell, Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(Recurrence r, Recurrence::Create(cell, e));
  const std::vector<std::string> names = BackwardNames(cell, e.attributes);
  const std::vector<std::string> forward = ForwardNames(e.attributes);
  for (size_t i = forward.size(); i < names.size(); ++i) r.Bind(names[i], &e.operand(i));
  // What is not wanted of x, w and r is added up all the same, and dropped.
  for (size_t i = 0; i < 3; ++i) {
    r.unwanted_.push_back(std::make_unique<Tensor>(e.operand(i).dtype(), e.operand(i).dims()));
    r.Bind(absl::StrCat("d", forward[i]), r.unwanted_.back().get());
  }
  const std::vector<std::string> differentiated = DifferentiatedNames(e.attributes);
  for (size_t j = 0; j < differentiated.size(); ++j) {
    r.Bind(absl::StrCat("d", differentiated[j]), &e.results[j]);
  }
  return r;
}

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

void AddGateGradient(const Recurrence& r, const GateGradient& g) {
  const auto x = Recurrence::At(*r.Find("x"), g.step, g.direction, g.sample);
  const auto w = Recurrence::MatrixAt(*r.Find("w"), g.direction);
  Recurrence::At(*r.Find("dx"), g.step, g.direction, g.sample) += w.transpose() * g.at_w;
  Recurrence::MatrixAt(*r.Find("dw"), g.direction) += g.at_w * x.transpose();
  Tensor* dbias = r.Find("dbias");
  if (dbias == nullptr) return;
  Recurrence::At(*dbias, g.direction).head(g.at_w.size()) += g.at_w;
  Recurrence::At(*dbias, g.direction).tail(g.at_r.size()) += g.at_r;
}

}  // namespace orrery::ir
