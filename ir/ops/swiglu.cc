#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"
#include "ir/ops/pointwise.h"

// The gated activation of Llama: silu(gate) up (Shazeer 2020), and its gradient in one kernel.

namespace orrery::ir {
namespace swiglu_cc {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

absl::Status SwiGluGradient(GradientContext& c) {
  if (!c.result_gradient().valid()) return absl::OkStatus();
  Builder& b = c.builder();
  const std::string dgate = c.GradientName(0), dup = c.GradientName(1);
  const absl::string_view names[] = {dgate, dgate == dup ? "" : absl::string_view(dup)};
  const ValueId operands[] = {c.operand(0), c.operand(1), c.result_gradient()};
  const OpId op = b.Ops(OpKind::kSwiGluGrad, operands, names);
  if (!op.valid()) return b.status();
  c.SetOperandGradient(0, b.function().result(op, 0));
  c.SetOperandGradient(1, b.function().result(op, 1));
  return absl::OkStatus();
}

absl::Status InferSwiGluGrad(const OpTypes& op, TypeList& results) {
  for (size_t i = 1; i < 3; ++i) {
    const TensorType* pair[] = {op.operands[0], op.operands[i]};
    results.clear();
    if (absl::Status status = InferSameShapes({op.attributes, pair, op.mesh}, results);
        !status.ok()) {
      return status;
    }
  }
  results.push_back(results[0]);
  return absl::OkStatus();
}

absl::Status EvaluateSwiGluGrad(Evaluation& e) {
  for (int64_t i = 0; i < e.results[0].size(); ++i) {
    const double gate = e.operand(0).Number(i), up = e.operand(1).Number(i);
    const double dy = e.operand(2).Number(i), s = Sigmoid(gate);
    e.results[0].SetNumber(i, dy * up * s * (1 + gate * (1 - s)));
    e.results[1].SetNumber(i, dy * gate * s);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace swiglu_cc

extern const OpInfo kSwiGluOp = {
    .name = "SwiGlu",
    .summary = "silu(gate) times up",
    .operands = 2,
    .infer = InferSameShapes,
    .flops = FlopsAnElement<kExpFlops + 4>,
    .sharding = ElementwiseRule,
    .evaluate =
        [](Evaluation& e) {
          return EvaluateBinary(
              e, [](double gate, double up) { return gate * swiglu_cc::Sigmoid(gate) * up; });
        },
    .gradient = swiglu_cc::SwiGluGradient,
};

extern const OpInfo kSwiGluGradOp = {
    .name = "SwiGluGrad",
    .summary = "gradients of SwiGlu(gate, up) from that of its result: of gate, of up",
    .operands = 3,
    .results = 2,
    .infer = swiglu_cc::InferSwiGluGrad,
    .flops = FlopsAnElement<kExpFlops + 6>,
    .sharding = ElementwiseRule,
    .evaluate = swiglu_cc::EvaluateSwiGluGrad,
};

}  // namespace orrery::ir
