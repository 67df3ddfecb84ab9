#include "ir/ops/adafactor.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/ops/kernels.h"
#include "ir/ops/optimizer.h"

// Adafactor as one op on whole parameters: what a rank of a sharded step does not have. There it
// stands for the ops of adafactor_parts.cc, which transforms::ExpandAdafactor makes of it.

namespace orrery::ir {
namespace adafactor_cc {
namespace {

constexpr size_t kMatrixStates = 2, kVectorStates = 1;

absl::Status InferMatrices(const OpTypes& op, TypeList& results) {
  const auto parameters = static_cast<size_t>(op.attributes.Int(kParameterCount, 0));
  for (size_t i = 0; i < std::min(parameters, op.operands.size()); ++i) {
    if (op.operands[i]->dims.size() >= 2) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", i, " has shape ", Show(op.operands[i]->dims),
                     "; wanted matrices [..,m,n], or AdafactorVectors"));
  }
  return InferOptimizer(op, kMatrixStates, AdafactorState, results);
}

absl::Status InferVectors(const OpTypes& op, TypeList& results) {
  if (absl::Status status = InferOptimizer(op, results); !status.ok()) return status;
  for (size_t i = 0; i < ParameterCount(op.attributes); ++i) {
    if (op.operands[i]->dims.size() < 2) continue;
    return absl::InvalidArgumentError(absl::StrCat("parameter ", i, " has shape ",
                                                   Show(op.operands[i]->dims),
                                                   "; wanted one dimension at most, or Adafactor"));
  }
  return absl::OkStatus();
}

double Flops(const OpTypes& op, const TypeList& results) {
  double flops = 0;
  for (size_t i = 0; i < ParameterCount(op.attributes); ++i) {
    flops += AdafactorFlops(results[i].dims);
  }
  return flops;
}

template <size_t kStates>
int64_t BytesOf(const OpTypes& op, const TypeList&) {
  const size_t n = ParameterCount(op.attributes), groups = op.operands.size() / n;
  int64_t bytes = 0;
  for (size_t i = 0; i < n; ++i) {
    bytes +=
        AdafactorBytes(*op.operands[i], *op.operands[(groups - 1) * n + i], groups - 1 - kStates);
  }
  return bytes;
}

bool IsWhole(const Evaluation& e, size_t i) {
  const Dims& dims = e.operand(i).dims();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (e.OperandWhole(i, d) != dims[d]) return false;
  }
  return true;
}

// r, c and t of parameter `i`, or its V.
void FindMoments(Evaluation& e, const OptimizerGroups& groups, size_t i, Tensor& total) {
  const AdafactorNumbers numbers = AdafactorNumbersOf(e.attributes);
  const size_t gradient = groups.Gradient(i), states = groups.groups - 1 - groups.first_moment;
  const AdafactorWhole whole = AdafactorWholeOf(e, gradient);
  std::vector<Tensor> means;
  for (size_t j = 0; j < states; ++j) {
    means.emplace_back(DType::kF64, e.operand(groups.At(groups.first_moment + j, i)).dims());
  }
  AdafactorMeans(e.operand(gradient), whole, numbers.epsilon1, means);
  for (size_t j = 0; j < states; ++j) {
    const size_t moment = groups.At(groups.first_moment + j, i);
    AdafactorAverage(e.operand(moment), means[j], numbers.beta, e.results[moment]);
  }
  if (states == 1) return;
  AdafactorMeanOfRows(e.results[groups.At(groups.first_moment, i)], whole.rows, total);
}

template <size_t kStates>
absl::Status Evaluate(Evaluation& e) {
  OptimizerGroups groups;
  if (absl::Status status = FindGroups(e, kStates, groups); !status.ok()) return status;
  const AdafactorNumbers numbers = AdafactorNumbersOf(e.attributes);
  for (size_t i = 0; i < groups.count; ++i) {
    if (!IsWhole(e, i)) {
      return absl::UnimplementedError(
          "has parts of parameters; wanted whole ones, of which the stage of work `average` makes "
          "means of parts");
    }
    const Tensor& weights = e.operand(groups.At(groups.weights(), i));
    const bool matrix = kStates == kMatrixStates;
    Tensor total(DType::kF64, matrix ? AdafactorTotal(weights.dims()) : Dims());
    Tensor norms(DType::kF64, {2});
    FindMoments(e, groups, i, total);
    std::vector<const Tensor*> moments;
    for (size_t j = 0; j < kStates; ++j) {
      moments.push_back(&e.results[groups.At(groups.first_moment + j, i)]);
    }
    if (matrix) moments.push_back(&total);
    const AdafactorStep step(e.operand(groups.Gradient(i)), moments);
    AdafactorNorms(weights, step, static_cast<double>(weights.size()), norms);
    std::vector<Tensor*> copies;
    for (size_t copy = 0; copy < groups.first_moment; ++copy) {
      copies.push_back(&e.results[groups.At(copy, i)]);
    }
    AdafactorUpdate(weights, step, norms, numbers, copies);
  }
  return absl::OkStatus();
}

constexpr OpInfo OfMatrices() {
  OpInfo record = OptimizerRecord(
      "Adafactor",
      "w - lr s u, u = g / √(r c / mean(r)) of rms 1 at most, s = rms of w; r, c: means of g²",
      Flops, Evaluate<kMatrixStates>);
  record.infer = InferMatrices;
  record.bytes = BytesOf<kMatrixStates>;
  record.kernels = 5;
  record.state_dims = AdafactorState;
  record.of_vectors = "AdafactorVectors";
  return record;
}

constexpr OpInfo OfVectors() {
  OpInfo record =
      OptimizerRecord("AdafactorVectors", "Adafactor of vectors: v, a mean of g², is whole", Flops,
                      Evaluate<kVectorStates>);
  record.infer = InferVectors;
  record.bytes = BytesOf<kVectorStates>;
  record.kernels = 4;
  record.states = "v";
  return record;
}

}  // namespace
}  // namespace adafactor_cc

double AdafactorFlops(const Dims& parameter) {
  const auto elements = static_cast<double>(ElementCount(parameter));
  if (parameter.size() < 2) {
    return elements * (kAdafactorSquareFlops + kAdafactorMomentFlops + kAdafactorVectorNormsFlops +
                       kAdafactorVectorUpdateFlops);
  }
  const auto rows = static_cast<double>(ElementCount(AdafactorState(parameter, 0)));
  const auto columns = static_cast<double>(ElementCount(AdafactorState(parameter, 1)));
  return elements * (kAdafactorMeansFlops + kAdafactorNormsFlops + kAdafactorUpdateFlops) +
         (kAdafactorMomentFlops + 1) * rows + kAdafactorMomentFlops * columns;
}

int64_t AdafactorBytes(const TensorType& parameter, const TensorType& gradient, size_t copies) {
  constexpr int64_t kFloat = 4, kNorms = 2 * kFloat;
  const int64_t elements = ElementCount(parameter.dims), g = SizeOf(gradient).count();
  const int64_t own = SizeOf(parameter).count(), masters = kFloat * elements;
  const int64_t updated = own + static_cast<int64_t>(copies - 1) * masters;
  int64_t moments = masters;  // a pass over them
  int64_t total = 0;
  if (parameter.dims.size() >= 2) {
    moments = kFloat * (ElementCount(AdafactorState(parameter.dims, 0)) +
                        ElementCount(AdafactorState(parameter.dims, 1)));
    total = kFloat * ElementCount(AdafactorTotal(parameter.dims));
  }
  const int64_t means = g + moments, averages = 3 * moments + total;
  const int64_t norms = (copies > 1 ? masters : own) + g + moments + total + kNorms;
  return means + averages + norms + 2 * updated + g + moments + total + kNorms;
}

extern const OpInfo kAdafactorOp = Chosen("adafactor", "r,c", adafactor_cc::OfMatrices());
extern const OpInfo kAdafactorVectorsOp = adafactor_cc::OfVectors();

}  // namespace orrery::ir
