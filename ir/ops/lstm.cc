#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"
#include "ir/ops/recurrent.h"
#include "support/status.h"

// Long short-term memory (Hochreiter & Schmidhuber 1997), as ONNX defines it: gates i, o, f and the
// candidate c; C = f C' + i c; h = o tanh(C); peepholes let i and f see C', and o see C.

namespace orrery::ir {
namespace lstm_cc {
namespace {

using Vector = Recurrence::Vector;

const Cell& LstmCell() {
  static const Cell& cell =
      *new Cell{.gates = 4,
                .given = {"bias", "sequence_lens", "initial_h", "initial_c", "peepholes"},
                .activations = {"Sigmoid", "Tanh", "Tanh"},
                .has_cells = true,
                .has_gates = true,
                .has_reset = false,
                .gradient = OpKind::kLstmGrad};
  return cell;
}

Vector Peepholes(const Recurrence& r, int64_t direction) {
  Tensor* given = r.Find("peepholes");
  if (given == nullptr) return Vector::Zero(3 * r.hidden());
  return Recurrence::At(*given, direction);
}

// Gates of one step after their activation: i, o, f, c. Updates the cell.
Vector Step(const Recurrence& r, int64_t direction, const Vector& before, Vector& state,
            bool input_forget) {
  const int64_t n = r.hidden();
  const Vector p = Peepholes(r, direction);
  Vector gates(4 * n);
  const auto peep = [&](int64_t i) { return p.segment(i * n, n).cwiseProduct(state); };
  gates.segment(0, n) = r.Activate(direction, 0, before.segment(0, n) + peep(0));
  gates.segment(2 * n, n) = r.Activate(direction, 0, before.segment(2 * n, n) + peep(2));
  if (input_forget) gates.segment(2 * n, n) = Vector::Ones(n) - gates.segment(0, n);
  gates.segment(3 * n, n) = r.Activate(direction, 1, before.segment(3 * n, n));
  state = gates.segment(2 * n, n).cwiseProduct(state) +
          gates.segment(0, n).cwiseProduct(gates.segment(3 * n, n));
  gates.segment(n, n) = r.Activate(direction, 0, before.segment(n, n) + peep(1));
  return gates;
}

absl::Status EvaluateLstm(Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(const Recurrence r, Recurrence::Create(LstmCell(), e));
  const bool input_forget = e.attributes.Int("input_forget", 0) != 0;
  const int64_t n = r.hidden();
  r.ForEachSequence([&](int64_t d, int64_t b) {
    const auto w = Recurrence::MatrixAt(*r.Find("w"), d), u = Recurrence::MatrixAt(*r.Find("r"), d);
    const Vector bias = r.Bias(d, false) + r.Bias(d, true);
    Vector h = r.Initial("initial_h", d, b), state = r.Initial("initial_c", d, b);
    for (int64_t turn = 0; turn < r.Length(b); ++turn) {
      const int64_t t = r.StepOf(d, b, turn);
      const Vector before = w * Recurrence::At(*r.Find("x"), t, d, b) + u * h + bias;
      const Vector gates = Step(r, d, before, state, input_forget);
      h = gates.segment(n, n).cwiseProduct(r.Activate(d, 2, state));
      Recurrence::At(*r.Find("y"), t, d, b) = h;
      Recurrence::At(*r.Find("gates"), t, d, b) = gates;
      Recurrence::At(*r.Find("cells"), t, d, b) = state;
    }
    Recurrence::At(*r.Find("y_h"), d, b) = h;
    Recurrence::At(*r.Find("y_c"), d, b) = state;
  });
  return absl::OkStatus();
}

// Gradients of the gates before their activation; the cell of `flow` becomes that of the step
// before.
Vector StepBack(const Recurrence& r, const Recurrence::GateGradient& at, const Vector& last_cell,
                bool input_forget, Recurrence::State& flow) {
  const int64_t n = r.hidden(), d = at.direction;
  const Vector gates = Recurrence::At(*r.Find("gates"), at.step, d, at.sample);
  const Vector cell = Recurrence::At(*r.Find("cells"), at.step, d, at.sample);
  const Vector p = Peepholes(r, d), out = r.Activate(d, 2, cell);
  const Vector i = gates.segment(0, n), o = gates.segment(n, n), f = gates.segment(2 * n, n),
               c = gates.segment(3 * n, n);
  Vector before(4 * n);
  const Vector at_o = flow.h.cwiseProduct(out).cwiseProduct(r.Derivative(d, 0, o));
  const Vector at_cell = flow.cell + flow.h.cwiseProduct(o).cwiseProduct(r.Derivative(d, 2, out)) +
                         at_o.cwiseProduct(p.segment(n, n));
  Vector of_i = at_cell.cwiseProduct(c), of_f = at_cell.cwiseProduct(last_cell);
  if (input_forget) {
    of_i -= of_f;
    of_f.setZero();
  }
  before << of_i.cwiseProduct(r.Derivative(d, 0, i)), at_o,
      of_f.cwiseProduct(r.Derivative(d, 0, f)),
      at_cell.cwiseProduct(i).cwiseProduct(r.Derivative(d, 1, c));
  flow.cell = at_cell.cwiseProduct(f) + before.segment(0, n).cwiseProduct(p.segment(0, n)) +
              before.segment(2 * n, n).cwiseProduct(p.segment(2 * n, n));
  if (Tensor* dp = r.Find("dpeepholes")) {
    Vector sum(3 * n);
    sum << before.segment(0, n).cwiseProduct(last_cell), at_o.cwiseProduct(cell),
        before.segment(2 * n, n).cwiseProduct(last_cell);
    Recurrence::At(*dp, d) += sum;
  }
  return before;
}

absl::Status EvaluateLstmGrad(Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(const Recurrence r, BackwardRecurrence(LstmCell(), e));
  const bool input_forget = e.attributes.Int("input_forget", 0) != 0;
  r.ForEachStepBack([&](Recurrence::GateGradient& gradient, const Recurrence::State& last,
                        Recurrence::State& flow) {
    gradient.at_w = gradient.at_r = StepBack(r, gradient, last.cell, input_forget, flow);
    flow.h = r.ThroughR(gradient, last.h);
  });
  return absl::OkStatus();
}

}  // namespace
}  // namespace lstm_cc

extern constinit const OpInfo kLstmOp = RecurrentInfo<lstm_cc::LstmCell>({
    .name = "Lstm",
    .summary = "LSTM over x [steps,batch,input] by w, r and what is `given`: y "
               "[steps,directions,batch,hidden], y_h, y_c, gates and cells of each step",
    .results = 5,
    .evaluate = lstm_cc::EvaluateLstm,
});

extern constinit const OpInfo kLstmGradOp = RecurrentGradInfo<lstm_cc::LstmCell>({
    .name = "LstmGrad",
    .summary = "gradients of x, w, r and what is `given` of Lstm from these, y, gates, cells, and "
               "the `gradients` of its results",
    .results = OpInfo::kVariadic,
    .evaluate = lstm_cc::EvaluateLstmGrad,
});

}  // namespace orrery::ir
