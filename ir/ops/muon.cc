#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/ops/kernels.h"
#include "ir/ops/newton_schulz.h"
#include "ir/ops/optimizer.h"

// Muon (Jordan et al. 2024): momentum, looked ahead as by Nesterov, made orthogonal. Scaled so that
// steps are as large as AdamW's (Liu et al., "Muon is Scalable for LLM Training", 2025, section
// 2.2): 0.2 √max(m, n). Matrices must be whole, which a rank of a sharded step does not have: there
// it stands for the ops that transforms::ExpandMuon makes of it.

namespace orrery::ir {
namespace muon_cc {
namespace {

constexpr double kMomentum = 0.95;
constexpr double kElementFlops = 6;  // momentum and look-ahead two each, rate and step

absl::Status InferMuon(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckNewtonSchulzSteps(op.attributes); !status.ok()) return status;
  if (absl::Status status = InferOptimizer(op, results); !status.ok()) return status;
  for (size_t i = 0; i < ParameterCount(op.attributes); ++i) {
    if (op.operands[i]->dims.size() >= 2) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter ", i, " has shape ", Show(op.operands[i]->dims), "; wanted matrices [..,m,n]"));
  }
  return absl::OkStatus();
}

double Flops(const OpTypes& op, const TypeList& results) {
  double flops = kElementFlops * ElementsUpdated(op, results);
  for (size_t i = 0; i < ParameterCount(op.attributes); ++i) {
    flops += NewtonSchulzFlops(results[i].dims, NewtonSchulzStepsOf(op.attributes));
  }
  return flops;
}

// Whether this rank has all of each matrix of operand `i`.
bool HasMatrices(const Evaluation& e, size_t i) {
  const size_t rank = e.operand(i).dims().size();
  return e.OperandWhole(i, rank - 1) == e.operand(i).dims()[rank - 1] &&
         e.OperandWhole(i, rank - 2) == e.operand(i).dims()[rank - 2];
}

// m = mu m + g, and what of it is made orthogonal.
void LookAhead(double mu, const Tensor& m, const Tensor& g, Tensor& next, Tensor& ahead) {
  for (int64_t at = 0; at < m.size(); ++at) {
    const double momentum = mu * m.Number(at) + g.Number(at);
    next.SetNumber(at, momentum);
    ahead.SetNumber(at, g.Number(at) + mu * momentum);
  }
}

absl::Status EvaluateMuon(Evaluation& e) {
  OptimizerGroups groups;
  if (absl::Status status = FindGroups(e, 1, groups); !status.ok()) return status;
  const double rate = e.attributes.Number("lr", kLearningRate);
  const double mu = e.attributes.Number("mu", kMomentum);
  const int64_t steps = NewtonSchulzStepsOf(e.attributes);
  for (size_t i = 0; i < groups.count; ++i) {
    if (!HasMatrices(e, i)) {
      return absl::UnimplementedError(
          "has parts of matrices; wanted whole ones, which the stage of work `orthogonalize` "
          "gathers");
    }
    const Tensor& w = e.operand(groups.At(groups.weights(), i));
    const int64_t columns = w.dims().back(), rows = w.dims()[w.dims().size() - 2];
    Tensor ahead(DType::kF64, w.dims());
    const size_t moment = groups.At(groups.first_moment, i);
    LookAhead(mu, e.operand(moment), e.operand(groups.Gradient(i)), e.results[moment], ahead);
    const double scale = MuonScale(w.dims());
    for (int64_t from = 0; from < w.size(); from += rows * columns) {
      const std::vector<double> step =
          Orthogonal(ahead.floats().data() + from, rows, columns, steps);
      for (int64_t at = 0; at < rows * columns; ++at) {
        const double updated = w.Number(from + at) - rate * scale * step[static_cast<size_t>(at)];
        for (size_t copy = 0; copy < groups.first_moment; ++copy) {
          e.results[groups.At(copy, i)].SetNumber(from + at, updated);
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status InferMomentum(const OpTypes& op, TypeList& results) {
  const TensorType &m = *op.operands[0], &g = *op.operands[1];
  if (m.dims != g.dims) {
    return absl::InvalidArgumentError(
        absl::StrCat("got shapes ", Show(m.dims), " and ", Show(g.dims), "; wanted one"));
  }
  for (const TensorType* type : op.operands) {
    results.push_back({.dtype = type->dtype, .dims = type->dims, .sharding = {}});
  }
  return absl::OkStatus();
}

absl::Status EvaluateMomentum(Evaluation& e) {
  LookAhead(e.attributes.Number("mu", kMomentum), e.operand(0), e.operand(1), e.results[0],
            e.results[1]);
  return absl::OkStatus();
}

// All four tensors run over the same places.
ShardingRule MomentumRule(const OpTypes& op, const TypeList&) {
  ShardingRule::Factors factors;
  for (size_t d = 0; d < op.operands[0]->dims.size(); ++d) {
    factors.push_back(static_cast<int8_t>(d));
  }
  return {.operands = {factors, factors}, .results = {factors, factors}};
}

constexpr OpInfo Record() {
  OpInfo record = OptimizerRecord(
      "Muon", "m = mu m + g; w - lr s orthogonal(g + mu m), s = 0.2 √max(rows, columns)", Flops,
      EvaluateMuon);
  record.infer = InferMuon;
  record.kernels = 3 * kNewtonSchulzSteps + 3;
  record.matrix_product = true;
  record.of_matrices = true;
  return record;
}

}  // namespace
}  // namespace muon_cc

double MuonScale(const Dims& dims) {
  return 0.2 * std::sqrt(static_cast<double>(std::max(dims[dims.size() - 2], dims.back())));
}

extern const OpInfo kMuonOp = Chosen("muon", "m", muon_cc::Record());

extern const OpInfo kMuonMomentumOp = {
    .name = "MuonMomentum",
    .summary = "of momentum m and gradient g: mu m + g, and g + mu times that",
    .operands = 2,
    .results = 2,
    .infer = muon_cc::InferMomentum,
    .flops =
        [](const OpTypes&, const TypeList& results) {
          return 4.0 * static_cast<double>(ElementCount(results[0].dims));
        },
    .sharding = muon_cc::MomentumRule,
    .evaluate = muon_cc::EvaluateMomentum,
    .in_place_from = 0,
};

}  // namespace orrery::ir
