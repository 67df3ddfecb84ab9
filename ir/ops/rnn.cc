#include "ir/ops/kernels.h"
#include "ir/ops/recurrent.h"
#include "support/status.h"

// Plain recurrent nets (Elman 1990): h = tanh(W x + R h' + bias). The backward needs y alone.

namespace orrery::ir {
namespace {

using Vector = Recurrence::Vector;

const Cell& RnnCell() {
  static const Cell& cell = *new Cell{.gates = 1,
                                      .given = {"bias", "sequence_lens", "initial_h"},
                                      .activations = {"Tanh"},
                                      .has_cells = false,
                                      .has_gates = false,
                                      .gradient = OpKind::kRnnGrad};
  return cell;
}

absl::Status EvaluateRnn(Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(const Recurrence r, Recurrence::Create(RnnCell(), e));
  r.ForEachSequence([&](int64_t d, int64_t b) {
    const auto w = Recurrence::MatrixAt(*r.Find("w"), d), u = Recurrence::MatrixAt(*r.Find("r"), d);
    const Vector bias = r.Bias(d, false) + r.Bias(d, true);
    Vector h = r.Initial("initial_h", d, b);
    for (int64_t turn = 0; turn < r.Length(b); ++turn) {
      const int64_t t = r.StepOf(d, b, turn);
      h = r.Activate(d, 0, w * Recurrence::At(*r.Find("x"), t, d, b) + u * h + bias);
      Recurrence::At(*r.Find("y"), t, d, b) = h;
    }
    Recurrence::At(*r.Find("y_h"), d, b) = h;
  });
  return absl::OkStatus();
}

absl::Status EvaluateRnnGrad(Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(const Recurrence r, BackwardRecurrence(RnnCell(), e));
  r.ForEachSequence([&](int64_t d, int64_t b) {
    const auto u = Recurrence::MatrixAt(*r.Find("r"), d);
    Vector flow = r.Initial("dy_h", d, b);
    for (int64_t turn = r.Length(b); turn-- > 0;) {
      const int64_t t = r.StepOf(d, b, turn), last = r.StepOf(d, b, turn - 1);
      const Vector last_h = turn == 0 ? r.Initial("initial_h", d, b)
                                      : Vector(Recurrence::At(*r.Find("y"), last, d, b));
      if (Tensor* dy = r.Find("dy")) flow += Recurrence::At(*dy, t, d, b);
      const Vector y = Recurrence::At(*r.Find("y"), t, d, b);
      const Vector before = flow.cwiseProduct(r.Derivative(d, 0, y));
      AddGateGradient(r, {.step = t, .direction = d, .sample = b, .at_w = before, .at_r = before});
      Recurrence::MatrixAt(*r.Find("dr"), d) += before * last_h.transpose();
      flow = u.transpose() * before;
    }
    if (Tensor* dh = r.Find("dinitial_h")) Recurrence::At(*dh, d, b) = flow;
  });
  return absl::OkStatus();
}

}  // namespace

extern const OpInfo kRnnOp = {
    .name = "Rnn",
    .summary =
        "recurrent net over x [steps,batch,input] by w, r and what is `given`: y "
        "[steps,directions,batch,hidden], y_h",
    .operands = OpInfo::kVariadic,
    .results = 2,
    .infer = [](const OpTypes& op,
                TypeList& results) { return InferRecurrent(RnnCell(), op, results); },
    .flops = [](const OpTypes& op, const TypeList&) { return RecurrentFlops(RnnCell(), op); },
    .sharding =
        [](const OpTypes& op, const TypeList& results) {
          return RecurrentSharding(RnnCell(), op, results, false);
        },
    .evaluate = EvaluateRnn,
    .gradient = [](GradientContext& c) { return RecurrentGradient(RnnCell(), c); },
    .matrix_product = true,
};

extern const OpInfo kRnnGradOp = {
    .name = "RnnGrad",
    .summary =
        "gradients of x, w, r and what is `given` of Rnn from these, y, and the `gradients` "
        "of its results",
    .operands = OpInfo::kVariadic,
    .results = OpInfo::kVariadic,
    .infer = [](const OpTypes& op,
                TypeList& results) { return InferRecurrentGrad(RnnCell(), op, results); },
    .flops = [](const OpTypes& op, const TypeList&) { return RecurrentGradFlops(RnnCell(), op); },
    .sharding =
        [](const OpTypes& op, const TypeList& results) {
          return RecurrentSharding(RnnCell(), op, results, true);
        },
    .evaluate = EvaluateRnnGrad,
    .matrix_product = true,
};

}  // namespace orrery::ir
