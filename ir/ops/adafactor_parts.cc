#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/ops/adafactor.h"
#include "ir/ops/kernels.h"
#include "ir/ops/optimizer.h"
#include "support/status.h"

// The passes of Adafactor as ops, each on the part of one parameter that a rank has. What is split
// leaves means partial.

namespace orrery::ir {
namespace adafactor_parts_cc {
namespace {

// A tensor [.., rows, columns] as it is here.
struct Matrices {
  explicit Matrices(const Dims& dims) : rows(dims[dims.size() - 2]), columns(dims.back()) {}
  // Where r, c and t have what an element needs.
  int64_t Row(int64_t element) const { return element / columns; }
  int64_t Matrix(int64_t element) const { return element / (rows * columns); }
  int64_t Column(int64_t element) const { return Matrix(element) * columns + element % columns; }
  int64_t rows, columns;
};

TensorType Float(Dims dims) {
  return {.dtype = DType::kF32, .dims = std::move(dims), .sharding = {}};
}

double Elements(const TensorType& type) { return static_cast<double>(ElementCount(type.dims)); }

absl::Status CheckShape(const OpTypes& op, size_t i, const Dims& wanted) {
  if (op.operands[i]->dims == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "operand ", i, " has shape ", Show(op.operands[i]->dims), "; wanted ", Show(wanted)));
}

// How many moments there are of a parameter of those dims: r, c and t, or V.
size_t MomentCount(const Dims& parameter) { return parameter.size() < 2 ? 1 : 3; }

// The moments of `parameter` from operand `first` on.
absl::Status CheckMoments(const OpTypes& op, const Dims& parameter, size_t first) {
  if (MomentCount(parameter) == 1) return CheckShape(op, first, parameter);
  for (size_t state = 0; state < 2; ++state) {
    absl::Status status = CheckShape(op, first + state, AdafactorState(parameter, state));
    if (!status.ok()) return status;
  }
  return CheckShape(op, first + 2, AdafactorTotal(parameter));
}

absl::Status CheckCount(const OpTypes& op, size_t wanted, absl::string_view what) {
  if (op.operands.size() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got ", op.operands.size(), " operands; wanted ", wanted, ": ", what));
}

// The factors of a tensor beside a parameter: one a dimension that it has of that.
ShardingRule::Factors FactorsBeside(const Dims& parameter, const Dims& dims) {
  ShardingRule::Factors factors(dims.size(), kNoFactor);
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool mean = dims.size() != parameter.size() || (dims[d] == 1 && parameter[d] != 1);
    if (!mean) factors[d] = static_cast<int8_t>(d);
  }
  return factors;
}

// The rule of an op whose tensors all stand beside a parameter of those dims, but for the two
// norms, which nothing splits.
constexpr size_t kNoNorms = 99;
ShardingRule RuleBeside(const Dims& parameter, const OpTypes& op, const TypeList& results,
                        size_t norms = kNoNorms) {
  ShardingRule rule;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    rule.operands.push_back(i == norms ? ShardingRule::Factors(1, kNoFactor)
                                       : FactorsBeside(parameter, op.operands[i]->dims));
  }
  for (const TensorType& result : results) {
    rule.results.push_back(FactorsBeside(parameter, result.dims));
  }
  return rule;
}

// Means: r̂ and ĉ of a matrix, and of a vector its squares and ε1 themselves.

absl::Status InferMeans(const OpTypes& op, TypeList& results) {
  const TensorType& g = *op.operands[0];
  if (!IsFloat(g.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", ToString(g.dtype), "; wanted a gradient of floating point"));
  }
  if (g.dims.size() < 2) {
    results.push_back(Float(g.dims));
    return absl::OkStatus();
  }
  for (const size_t state : {size_t{0}, size_t{1}})
    results.push_back(Float(AdafactorState(g.dims, state)));
  return absl::OkStatus();
}

double MeansFlops(const OpTypes& op, const TypeList&) {
  const TensorType& g = *op.operands[0];
  return Elements(g) * (g.dims.size() < 2 ? kAdafactorSquareFlops : kAdafactorMeansFlops);
}

ShardingRule MeansRule(const OpTypes& op, const TypeList& results) {
  return RuleBeside(op.operands[0]->dims, op, results);
}

absl::Status EvaluateMeans(Evaluation& e) {
  AdafactorMeans(e.operand(0), AdafactorWholeOf(e, 0), AdafactorNumbersOf(e.attributes).epsilon1,
                 e.results);
  return absl::OkStatus();
}

// Moments: of r and r̂ also t; of c and ĉ, V and squares.

absl::Status InferMoment(const OpTypes& op, TypeList& results) {
  results.push_back({.dtype = op.operands[0]->dtype, .dims = op.operands[0]->dims, .sharding = {}});
  return CheckShape(op, 1, op.operands[0]->dims);
}

absl::Status InferRows(const OpTypes& op, TypeList& results) {
  const Dims& r = op.operands[0]->dims;
  if (r.size() < 2 || r.back() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", Show(r), "; wanted means of rows [..,m,1]"));
  }
  if (absl::Status status = InferMoment(op, results); !status.ok()) return status;
  results.push_back(Float(AdafactorTotal(r)));
  return absl::OkStatus();
}

double MomentFlops(const OpTypes& op, const TypeList& results) {
  const double sums = results.size() > 1 ? 1 : 0;
  return (kAdafactorMomentFlops + sums) * Elements(*op.operands[0]);
}

ShardingRule MomentRule(const OpTypes& op, const TypeList& results) {
  return RuleBeside(op.operands[0]->dims, op, results);
}

absl::Status EvaluateMoment(Evaluation& e) {
  const double beta = AdafactorNumbersOf(e.attributes).beta;
  AdafactorAverage(e.operand(0), e.operand(1), beta, e.results[0]);
  if (e.results.size() > 1) {
    AdafactorMeanOfRows(e.results[0], AdafactorWholeOf(e, 0).rows, e.results[1]);
  }
  return absl::OkStatus();
}

// Norms, of w, g and moments.

absl::Status InferNorms(const OpTypes& op, TypeList& results) {
  const Dims& parameter = op.operands[0]->dims;
  ORRERY_RETURN_IF_ERROR(CheckCount(op, 2 + MomentCount(parameter), "w, g and its moments"));
  ORRERY_RETURN_IF_ERROR(CheckShape(op, 1, parameter));
  results.push_back(Float({2}));
  return CheckMoments(op, parameter, 2);
}

double NormsFlops(const OpTypes& op, const TypeList&) {
  const TensorType& w = *op.operands[0];
  return Elements(w) * (w.dims.size() < 2 ? kAdafactorVectorNormsFlops : kAdafactorNormsFlops);
}

ShardingRule NormsRule(const OpTypes& op, const TypeList& results) {
  ShardingRule rule = RuleBeside(op.operands[0]->dims, op, results);
  rule.results[0] = {kNoFactor};
  return rule;
}

absl::Status EvaluateNorms(Evaluation& e) {
  const AdafactorStep step(e.operand(1), e.operands.subspan(2));
  AdafactorNorms(e.operand(0), step, AdafactorWholeOf(e, 0).elements, e.results[0]);
  return absl::OkStatus();
}

// Update, of w, its master copy where there is one, moments, norms and g.

// How many copies of the parameter there are.
size_t CopyCount(const OpTypes& op) {
  return op.operands.size() - 2 - MomentCount(op.operands[0]->dims);
}

absl::Status InferUpdate(const OpTypes& op, TypeList& results) {
  if (op.operands.empty() || ParameterCount(op.attributes) != 1) {
    return absl::InvalidArgumentError("wanted one parameter");
  }
  const Dims& parameter = op.operands[0]->dims;
  const size_t moments = MomentCount(parameter), count = op.operands.size();
  if (count != moments + 3 && count != moments + 4) {
    return absl::InvalidArgumentError(absl::StrCat("got ", count, " operands; wanted ", moments + 3,
                                                   " or, with a master copy, ", moments + 4,
                                                   ": w, ", moments, " moments, norms, g"));
  }
  for (size_t i = 0; i < CopyCount(op); ++i) {
    ORRERY_RETURN_IF_ERROR(CheckShape(op, i, parameter));
    results.push_back({.dtype = op.operands[i]->dtype, .dims = parameter, .sharding = {}});
  }
  ORRERY_RETURN_IF_ERROR(CheckMoments(op, parameter, CopyCount(op)));
  ORRERY_RETURN_IF_ERROR(CheckShape(op, count - 2, {2}));
  return CheckShape(op, count - 1, parameter);
}

double UpdateFlops(const OpTypes& op, const TypeList&) {
  const TensorType& w = *op.operands[0];
  return Elements(w) * (w.dims.size() < 2 ? kAdafactorVectorUpdateFlops : kAdafactorUpdateFlops);
}

ShardingRule UpdateRule(const OpTypes& op, const TypeList& results) {
  return RuleBeside(op.operands[0]->dims, op, results, op.operands.size() - 2);
}

absl::Status EvaluateUpdate(Evaluation& e) {
  const size_t copies = e.results.size(), count = e.operands.size();
  const AdafactorStep step(e.operand(count - 1), e.operands.subspan(copies, count - 2 - copies));
  std::vector<Tensor*> updated;
  for (Tensor& result : e.results) updated.push_back(&result);
  AdafactorUpdate(e.operand(copies - 1), step, e.operand(count - 2),
                  AdafactorNumbersOf(e.attributes), updated);
  return absl::OkStatus();
}

}  // namespace
}  // namespace adafactor_parts_cc

AdafactorNumbers AdafactorNumbersOf(const AttributeSet& attributes) {
  return {.rate = attributes.Number("lr", kLearningRate),
          .beta = attributes.Number("beta2", 0.999),
          .epsilon1 = attributes.Number("epsilon1", 1e-30),
          .epsilon2 = attributes.Number("epsilon2", 1e-3),
          .clip = attributes.Number("clip", 1)};
}

Dims AdafactorState(const Dims& parameter, size_t state) {
  Dims dims = parameter;
  dims[dims.size() - (state == 0 ? 1 : 2)] = 1;
  return dims;
}

Dims AdafactorTotal(const Dims& parameter) {
  return AdafactorState(AdafactorState(parameter, 0), 1);
}

AdafactorWhole AdafactorWholeOf(const Evaluation& e, size_t i) {
  const size_t rank = e.operand(i).dims().size();
  AdafactorWhole whole;
  for (size_t d = 0; d < rank; ++d) whole.elements *= static_cast<double>(e.OperandWhole(i, d));
  if (rank >= 2) {
    whole.rows = e.OperandWhole(i, rank - 2);
    whole.columns = e.OperandWhole(i, rank - 1);
  }
  return whole;
}

void AdafactorMeans(const Tensor& gradient, const AdafactorWhole& whole, double epsilon1,
                    std::span<Tensor> means) {
  const bool vector = gradient.dims().size() < 2;
  for (int64_t at = 0; at < gradient.size(); ++at) {
    const double g = gradient.Number(at), square = g * g + epsilon1;
    if (vector) {
      means[0].SetNumber(at, square);
      continue;
    }
    const adafactor_parts_cc::Matrices of(gradient.dims());
    means[0].floats()[static_cast<size_t>(of.Row(at))] +=
        square / static_cast<double>(whole.columns);
    means[1].floats()[static_cast<size_t>(of.Column(at))] +=
        square / static_cast<double>(whole.rows);
  }
}

void AdafactorAverage(const Tensor& moment, const Tensor& mean, double beta, Tensor& next) {
  for (int64_t at = 0; at < moment.size(); ++at) {
    next.SetNumber(at, beta * moment.Number(at) + (1 - beta) * mean.Number(at));
  }
}

void AdafactorMeanOfRows(const Tensor& r, int64_t whole_rows, Tensor& total) {
  const adafactor_parts_cc::Matrices of(r.dims());
  for (int64_t at = 0; at < r.size(); ++at) {
    total.floats()[static_cast<size_t>(of.Matrix(at))] +=
        r.Number(at) / static_cast<double>(whole_rows);
  }
}

double AdafactorStep::At(int64_t element) const {
  const double g = gradient_.Number(element);
  if (moments_.size() == 1) return g / std::sqrt(moments_[0]->Number(element));
  const adafactor_parts_cc::Matrices of(gradient_.dims());
  const double r = moments_[0]->Number(of.Row(element)),
               t = moments_[2]->Number(of.Matrix(element));
  return g / std::sqrt(r * moments_[1]->Number(of.Column(element)) / t);
}

void AdafactorNorms(const Tensor& weights, const AdafactorStep& step, double whole_elements,
                    Tensor& norms) {
  for (int64_t at = 0; at < weights.size(); ++at) {
    const double u = step.At(at), w = weights.Number(at);
    norms.floats()[0] += u * u / whole_elements;
    norms.floats()[1] += w * w / whole_elements;
  }
}

void AdafactorUpdate(const Tensor& weights, const AdafactorStep& step, const Tensor& norms,
                     const AdafactorNumbers& numbers, std::span<Tensor* const> copies) {
  const double rms = std::sqrt(norms.Number(0)), size = std::sqrt(norms.Number(1));
  const double rate =
      numbers.rate * std::max(numbers.epsilon2, size) / std::max(1.0, rms / numbers.clip);
  for (int64_t at = 0; at < weights.size(); ++at) {
    const double updated = weights.Number(at) - rate * step.At(at);
    for (Tensor* const copy : copies) copy->SetNumber(at, updated);
  }
}

extern const OpInfo kAdafactorMeansOp = {
    .name = "AdafactorMeans",
    .summary = "of g [..,m,n] the means of g² + epsilon1 [..,m,1] and [..,1,n]; of a vector itself",
    .results = OpInfo::kVariadic,
    .infer = adafactor_parts_cc::InferMeans,
    .flops = adafactor_parts_cc::MeansFlops,
    .sharding = adafactor_parts_cc::MeansRule,
    .evaluate = adafactor_parts_cc::EvaluateMeans,
};

extern const OpInfo kAdafactorRowsOp = {
    .name = "AdafactorRows",
    .summary = "of r and means [..,m,1]: their average, and the mean of that [..,1,1]",
    .operands = 2,
    .results = 2,
    .infer = adafactor_parts_cc::InferRows,
    .flops = adafactor_parts_cc::MomentFlops,
    .sharding = adafactor_parts_cc::MomentRule,
    .evaluate = adafactor_parts_cc::EvaluateMoment,
    .in_place_from = 0,
};

extern const OpInfo kAdafactorMomentOp = {
    .name = "AdafactorMoment",
    .summary = "of a moment and means: beta2 times the one and 1 - beta2 times the other",
    .operands = 2,
    .infer = adafactor_parts_cc::InferMoment,
    .flops = adafactor_parts_cc::MomentFlops,
    .sharding = adafactor_parts_cc::MomentRule,
    .evaluate = adafactor_parts_cc::EvaluateMoment,
    .in_place_from = 0,
};

extern const OpInfo kAdafactorNormsOp = {
    .name = "AdafactorNorms",
    .summary = "of w, g and r, c, mean(r), or of vectors w, g, v: the mean squares of g / √v and w",
    .operands = 5,
    .optional = 2,
    .infer = adafactor_parts_cc::InferNorms,
    .flops = adafactor_parts_cc::NormsFlops,
    .sharding = adafactor_parts_cc::NormsRule,
    .evaluate = adafactor_parts_cc::EvaluateNorms,
};

extern const OpInfo kAdafactorUpdateOp = {
    .name = "AdafactorUpdate",
    .summary = "of w, a master copy, moments, norms and g: w - lr s g / √v, s as Adafactor has it",
    .op_class = OpClass::kOptimizer,
    .operands = OpInfo::kVariadic,
    .results = OpInfo::kVariadic,
    .infer = adafactor_parts_cc::InferUpdate,
    .flops = adafactor_parts_cc::UpdateFlops,
    .sharding = adafactor_parts_cc::UpdateRule,
    .evaluate = adafactor_parts_cc::EvaluateUpdate,
    .in_place_from = 0,
};

}  // namespace orrery::ir
