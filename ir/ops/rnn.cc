#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"
#include "ir/ops/recurrent.h"
#include "support/status.h"

// Plain recurrent nets (Elman 1990): h = tanh(W x + R h' + bias). The backward needs y alone.

namespace orrery::ir {
namespace rnn_cc {
namespace {

using Vector = Recurrence::Vector;

const Cell& RnnCell() {
  static const Cell& cell = *new Cell{.gates = 1,
                                      .given = {"bias", "sequence_lens", "initial_h"},
                                      .activations = {"Tanh"},
                                      .has_cells = false,
                                      .has_gates = false,
                                      .has_reset = false,
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
  r.ForEachStepBack(
      [&](Recurrence::GateGradient& g, const Recurrence::State& last, Recurrence::State& flow) {
        const Vector y = Recurrence::At(*r.Find("y"), g.step, g.direction, g.sample);
        g.at_w = g.at_r = flow.h.cwiseProduct(r.Derivative(g.direction, 0, y));
        flow.h = r.ThroughR(g, last.h);
      });
  return absl::OkStatus();
}

}  // namespace
}  // namespace rnn_cc

extern constinit const OpInfo kRnnOp = RecurrentInfo<rnn_cc::RnnCell>({
    .name = "Rnn",
    .summary = "recurrent net over x [steps,batch,input] by w, r and what is `given`: y "
               "[steps,directions,batch,hidden], y_h",
    .results = 2,
    .evaluate = rnn_cc::EvaluateRnn,
});

extern constinit const OpInfo kRnnGradOp = RecurrentGradInfo<rnn_cc::RnnCell>({
    .name = "RnnGrad",
    .summary = "gradients of x, w, r and what is `given` of Rnn from these, y, and the `gradients` "
               "of its results",
    .results = OpInfo::kVariadic,
    .evaluate = rnn_cc::EvaluateRnnGrad,
});

}  // namespace orrery::ir
