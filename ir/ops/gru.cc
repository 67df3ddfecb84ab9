#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"
#include "ir/ops/recurrent.h"
#include "support/status.h"

// Gated recurrent units (Cho et al. 2014), as ONNX defines them: gates z and r, candidate n;
// h = (1 - z) n + z h'. The gate r scales h' before the product with the recurrent weights, or with
// linear_before_reset=1 what comes out of it, as cuDNN does; that is then saved, too.

namespace orrery::ir {
namespace gru_cc {
namespace {

using Vector = Recurrence::Vector;

const Cell& GruCell() {
  static const Cell& cell = *new Cell{.gates = 3,
                                      .given = {"bias", "sequence_lens", "initial_h"},
                                      .activations = {"Sigmoid", "Tanh"},
                                      .has_cells = false,
                                      .has_gates = true,
                                      .has_reset = true,
                                      .gradient = OpKind::kGruGrad};
  return cell;
}

bool IsLinearFirst(const Evaluation& e) { return e.attributes.Int("linear_before_reset", 0) != 0; }

// z, r, n after their activation [, and the recurrent part of n].
Vector Step(const Recurrence& r, int64_t direction, const Vector& of_x, const Vector& h,
            bool linear_first) {
  const int64_t n = r.hidden();
  const auto u = Recurrence::MatrixAt(*r.Find("r"), direction);
  const Vector bias = r.Bias(direction, true);
  Vector saved(linear_first ? 4 * n : 3 * n);
  const Vector both = of_x.head(2 * n) + u.topRows(2 * n) * h + bias.head(2 * n);
  saved.head(2 * n) = r.Activate(direction, 0, both);
  const auto reset = saved.segment(n, n);
  Vector recurrent;
  if (linear_first) {
    saved.tail(n) = u.bottomRows(n) * h + bias.tail(n);
    recurrent = reset.cwiseProduct(saved.tail(n));
  } else {
    recurrent = u.bottomRows(n) * reset.cwiseProduct(h) + bias.tail(n);
  }
  saved.segment(2 * n, n) = r.Activate(direction, 1, of_x.tail(n) + recurrent);
  return saved;
}

absl::Status EvaluateGru(Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(const Recurrence r, Recurrence::Create(GruCell(), e));
  const int64_t n = r.hidden();
  r.ForEachSequence([&](int64_t d, int64_t b) {
    const auto w = Recurrence::MatrixAt(*r.Find("w"), d);
    Vector h = r.Initial("initial_h", d, b);
    for (int64_t turn = 0; turn < r.Length(b); ++turn) {
      const int64_t t = r.StepOf(d, b, turn);
      const Vector of_x = w * Recurrence::At(*r.Find("x"), t, d, b) + r.Bias(d, false);
      const Vector saved = Step(r, d, of_x, h, IsLinearFirst(e));
      h = saved.segment(2 * n, n) + saved.head(n).cwiseProduct(h - saved.segment(2 * n, n));
      Recurrence::At(*r.Find("y"), t, d, b) = h;
      Recurrence::At(*r.Find("gates"), t, d, b) = saved;
    }
    Recurrence::At(*r.Find("y_h"), d, b) = h;
  });
  return absl::OkStatus();
}

// Gradients of what goes into the activations, from x and through r; `flow` becomes the gradient of
// the state before.
void StepBack(const Recurrence& r, const Vector& last_h, bool linear_first,
              Recurrence::GateGradient& gradient, Vector& flow) {
  const int64_t n = r.hidden(), d = gradient.direction;
  const auto u = Recurrence::MatrixAt(*r.Find("r"), d);
  auto du = Recurrence::MatrixAt(*r.Find("dr"), d);
  const Vector saved = Recurrence::At(*r.Find("gates"), gradient.step, d, gradient.sample);
  const Vector z = saved.head(n), reset = saved.segment(n, n), c = saved.segment(2 * n, n);
  const Vector of_z = flow.cwiseProduct(last_h - c).cwiseProduct(r.Derivative(d, 0, z));
  const Vector of_c = flow.cwiseProduct(Vector::Ones(n) - z).cwiseProduct(r.Derivative(d, 1, c));
  Vector of_reset, through_r;
  Vector last = flow.cwiseProduct(z);
  if (linear_first) {
    of_reset = of_c.cwiseProduct(saved.tail(n));
    through_r = of_c.cwiseProduct(reset);
    last += u.bottomRows(n).transpose() * through_r;
    du.bottomRows(n) += through_r * last_h.transpose();
  } else {
    const Vector of_scaled = u.bottomRows(n).transpose() * of_c;
    of_reset = of_scaled.cwiseProduct(last_h);
    through_r = of_c;
    last += of_scaled.cwiseProduct(reset);
    du.bottomRows(n) += of_c * reset.cwiseProduct(last_h).transpose();
  }
  of_reset = of_reset.cwiseProduct(r.Derivative(d, 0, reset)).eval();
  gradient.at_w.resize(3 * n);
  gradient.at_r.resize(3 * n);
  gradient.at_w << of_z, of_reset, of_c;
  gradient.at_r << of_z, of_reset, through_r;
  last += u.topRows(2 * n).transpose() * gradient.at_w.head(2 * n);
  du.topRows(2 * n) += gradient.at_w.head(2 * n) * last_h.transpose();
  flow = last;
}

absl::Status EvaluateGruGrad(Evaluation& e) {
  ORRERY_ASSIGN_OR_RETURN(const Recurrence r, BackwardRecurrence(GruCell(), e));
  r.ForEachStepBack(
      [&](Recurrence::GateGradient& gradient, const Recurrence::State& last,
          Recurrence::State& flow) { StepBack(r, last.h, IsLinearFirst(e), gradient, flow.h); });
  return absl::OkStatus();
}

}  // namespace
}  // namespace gru_cc

extern constinit const OpInfo kGruOp = RecurrentInfo<gru_cc::GruCell>({
    .name = "Gru",
    .summary = "GRU over x [steps,batch,input] by w, r and what is `given`: y "
               "[steps,directions,batch,hidden], y_h, gates of each step",
    .results = 3,
    .evaluate = gru_cc::EvaluateGru,
});

extern constinit const OpInfo kGruGradOp = RecurrentGradInfo<gru_cc::GruCell>({
    .name = "GruGrad",
    .summary = "gradients of x, w, r and what is `given` of Gru from these, y, gates, and the "
               "`gradients` of its results",
    .results = OpInfo::kVariadic,
    .evaluate = gru_cc::EvaluateGruGrad,
});

}  // namespace orrery::ir
