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
    const ActivationDefaults& defaults = *FindActivation(name);  // inference has found it, too
    r.activation_.push_back(Activation::Named(name, i < alpha.size() ? alpha[i] : defaults.alpha,
                                              i < beta.size() ? beta[i] : defaults.beta)
                                .value());
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

}  // namespace orrery::ir
