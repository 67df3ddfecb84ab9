#include "ir/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Losses of classification, one value a row. CrossEntropy is a loss of its own: softmax, logarithm
// and choice of the label in one kernel, over `batch`, the global number of rows.
// NegativeLikelihood only chooses, from what a model computed before.

namespace orrery::ir {

absl::Status CheckLogitsAndLabels(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, 0, 1, "[..,classes]"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  ORRERY_RETURN_IF_ERROR(CheckInteger(op, 1));
  const Dims& logits = op.operands[0]->dims;
  return CheckDims(op, 1, Dims(logits.begin(), logits.end() - 1), "(a label a row)");
}

absl::Status CheckLossBatch(const OpTypes& op) {
  if (op.attributes.Int("batch", 0) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the attribute batch is missing; wanted the global number of rows");
}

double CrossEntropyFlops(const OpTypes& op, const TypeList&) {
  return kFlopsALogit * static_cast<double>(ElementCount(op.operands[0]->dims));
}

ShardingRule::Factors RowFactors(size_t rank, size_t classes) {
  ShardingRule::Factors factors;
  int8_t next = 0;
  for (size_t d = 0; d < rank; ++d) factors.push_back(d == classes ? kNoFactor : next++);
  return factors;
}

bool IsIgnored(const AttributeSet& attributes, int64_t label) {
  return attributes.Find("ignore_index") != nullptr && label == attributes.Int("ignore_index", -1);
}

absl::StatusOr<int64_t> LabelOf(const Evaluation& e, const Tensor& labels, int64_t row,
                                int64_t classes) {
  const int64_t label = labels.ints()[static_cast<size_t>(row)];
  if (IsIgnored(e.attributes, label)) return -1;
  if (label >= 0 && label < classes) return label;
  return absl::InvalidArgumentError(
      absl::StrCat("label ", label, " is none of the ", classes, " classes"));
}

namespace cross_entropy_cc {
namespace {

absl::Status CheckCrossEntropy(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckLogitsAndLabels(op));
  return CheckLossBatch(op);
}

absl::Status InferCrossEntropy(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckCrossEntropy(op));
  AddResult(results, op.operands[0]->dtype, op.operands[1]->dims);
  return absl::OkStatus();
}

absl::Status InferCrossEntropyGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckCrossEntropy(op));
  return InferUnary(op, results);
}

ShardingRule CrossEntropySharding(const OpTypes& op, const TypeList& results) {
  const size_t rank = op.operands[0]->dims.size();
  const auto logits = RowFactors(rank, rank - 1), labels = RowFactors(rank - 1, rank);
  return {.operands = {logits, labels},
          .results = {results[0].dims.size() == rank ? logits : labels}};
}

struct Row {
  double maximum, sum;  // of exponentials, relative to the maximum
};

Row RowOf(const Tensor& logits, int64_t start, int64_t classes) {
  Row row = {.maximum = logits.Number(start), .sum = 0};
  for (int64_t i = 1; i < classes; ++i)
    row.maximum = std::max(row.maximum, logits.Number(start + i));
  for (int64_t i = 0; i < classes; ++i) row.sum += std::exp(logits.Number(start + i) - row.maximum);
  return row;
}

absl::Status EvaluateCrossEntropy(Evaluation& e) {
  const Tensor& logits = e.operand(0);
  const int64_t classes = logits.dims().back();
  const double batch = e.attributes.Number("batch", 1);
  for (int64_t i = 0; i < e.operand(1).size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t label, LabelOf(e, e.operand(1), i, classes));
    if (label < 0) continue;
    const Row row = RowOf(logits, i * classes, classes);
    const double chosen = logits.Number(i * classes + label) - row.maximum;
    e.results[0].SetNumber(i, (std::log(row.sum) - chosen) / batch);
  }
  return absl::OkStatus();
}

absl::Status EvaluateCrossEntropyGrad(Evaluation& e) {
  const Tensor& logits = e.operand(0);
  const int64_t classes = logits.dims().back();
  const double batch = e.attributes.Number("batch", 1);
  for (int64_t i = 0; i < e.operand(1).size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t label, LabelOf(e, e.operand(1), i, classes));
    if (label < 0) continue;
    const Row row = RowOf(logits, i * classes, classes);
    for (int64_t j = 0; j < classes; ++j) {
      const double probability = std::exp(logits.Number(i * classes + j) - row.maximum) / row.sum;
      e.results[0].SetNumber(i * classes + j, (probability - (j == label ? 1 : 0)) / batch);
    }
  }
  return absl::OkStatus();
}

// The seed of the backward phase: the gradient of the summed loss is 1, so nothing comes in.
absl::Status CrossEntropyGradient(GradientContext& c) {
  c.SetOperandGradient(0, c.builder().Op(OpKind::kCrossEntropyGrad, {c.operand(0), c.operand(1)},
                                         c.GradientName(0), c.attributes()));
  return c.builder().status();
}

// NegativeLikelihood.

absl::Status CheckLikelihoods(const OpTypes& op, size_t labels, const Dims& likelihoods) {
  ORRERY_RETURN_IF_ERROR(CheckInteger(op, labels));
  Dims rows = likelihoods;
  rows.erase(rows.begin() + 1);
  ORRERY_RETURN_IF_ERROR(CheckDims(op, labels, rows, "(a label a row)"));
  if (op.operands.size() <= labels + 1) return absl::OkStatus();
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, labels + 1));
  return CheckDims(op, labels + 1, {likelihoods[1]}, "(a weight a class)");
}

absl::Status InferNegativeLikelihood(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, 0, 2, "[batch,classes,..]"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  ORRERY_RETURN_IF_ERROR(CheckLikelihoods(op, 1, op.operands[0]->dims));
  for (int i = 0; i < 2; ++i) AddResult(results, op.operands[0]->dtype, op.operands[1]->dims);
  return absl::OkStatus();
}

absl::Status InferNegativeLikelihoodGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, 0, 1, "[batch,..]"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  Dims dims = op.operands[0]->dims;
  const bool samples = op.attributes.Int("batch_classes", 0) != 0;
  const int64_t classes = samples ? dims[0] : op.attributes.Int("classes", 0);
  if (classes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("classes=", classes, "; wanted at least 0"));
  }
  dims.insert(dims.begin() + 1, classes);
  ORRERY_RETURN_IF_ERROR(CheckLikelihoods(op, 1, dims));
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

ShardingRule NegativeLikelihoodSharding(const OpTypes& op, const TypeList& results) {
  const auto factors = [&op](const TensorType& type) {
    const size_t rows = op.operands[1]->dims.size(), rank = type.dims.size();
    return RowFactors(rank, rank == rows ? rank : 1);
  };
  ShardingRule rule;
  for (size_t i = 0; i < 2; ++i) rule.operands.push_back(factors(*op.operands[i]));
  if (op.operands.size() > 2) rule.operands.push_back({kNoFactor});
  for (const TensorType& result : results) rule.results.push_back(factors(result));
  return rule;
}

// Calls f(row, position in `dims` of the row's label, weight) for each row that is not ignored.
template <typename F>
absl::Status ForEachLabel(const Evaluation& e, const Dims& dims, F f) {
  const Tensor& labels = e.operand(1);
  const AroundDim around = SplitAround(dims, 1);
  for (int64_t row = 0; row < labels.size(); ++row) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t label, LabelOf(e, labels, row, around.size));
    if (label < 0) continue;
    const int64_t outer = row / around.inner, inner = row % around.inner;
    f(row, (outer * around.size + label) * around.inner + inner,
      e.has_operand(2) ? e.operand(2).Number(label) : 1.0);
  }
  return absl::OkStatus();
}

absl::Status EvaluateNegativeLikelihood(Evaluation& e) {
  return ForEachLabel(e, e.operand(0).dims(), [&e](int64_t row, int64_t at, double weight) {
    e.results[0].SetNumber(row, -weight * e.operand(0).Number(at));
    e.results[1].SetNumber(row, weight);
  });
}

absl::Status EvaluateNegativeLikelihoodGrad(Evaluation& e) {
  return ForEachLabel(e, e.results[0].dims(), [&e](int64_t row, int64_t at, double weight) {
    e.results[0].SetNumber(at, -weight * e.operand(0).Number(row));
  });
}

absl::Status NegativeLikelihoodGradient(GradientContext& c) {
  if (!c.result_gradient(0).valid()) return absl::OkStatus();
  std::vector<ValueId> operands = {c.result_gradient(0)};
  for (int i = 1; i < c.operand_count(); ++i) operands.push_back(c.operand(i));
  AttributeSet attributes = c.attributes();
  if (c.last_batch_dim(0) == 1) {
    attributes.Set("batch_classes", int64_t{1});  // each sample is one
  } else {
    attributes.Set("classes", c.operand_type(0).dims[1]);
  }
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kNegativeLikelihoodGrad, operands, c.GradientName(0), attributes));
  return c.builder().status();
}

}  // namespace
}  // namespace cross_entropy_cc

extern const OpInfo kCrossEntropyOp = {
    .name = "CrossEntropy",
    .summary = "-log softmax(logits [..,classes]) of each row's label, over the global `batch`",
    .operands = 2,
    .infer = cross_entropy_cc::InferCrossEntropy,
    .flops = CrossEntropyFlops,
    .sharding = cross_entropy_cc::CrossEntropySharding,
    .evaluate = cross_entropy_cc::EvaluateCrossEntropy,
    .gradient = cross_entropy_cc::CrossEntropyGradient,
    .no_gradient = 0b10,
    .is_loss = true,
};

extern const OpInfo kCrossEntropyGradOp = {
    .name = "CrossEntropyGrad",
    .summary = "gradient of CrossEntropy(logits, labels): (softmax - one at the label) / batch",
    .operands = 2,
    .infer = cross_entropy_cc::InferCrossEntropyGrad,
    .flops = CrossEntropyFlops,
    .sharding = cross_entropy_cc::CrossEntropySharding,
    .evaluate = cross_entropy_cc::EvaluateCrossEntropyGrad,
    .seeds_backward = true,
};

extern const OpInfo kNegativeLikelihoodOp = {
    .name = "NegativeLikelihood",
    .summary =
        "-weight · x [batch,classes,..] at each row's label, and that weight: of the class, "
        "or 1; 0 where the label is `ignore_index`",
    .operands = 3,
    .optional = 1,
    .results = 2,
    .infer = cross_entropy_cc::InferNegativeLikelihood,
    .flops = OneFlopAnElement,
    .sharding = cross_entropy_cc::NegativeLikelihoodSharding,
    .evaluate = cross_entropy_cc::EvaluateNegativeLikelihood,
    .gradient = cross_entropy_cc::NegativeLikelihoodGradient,
    .no_gradient = 0b110,
};

extern const OpInfo kNegativeLikelihoodGradOp = {
    .name = "NegativeLikelihoodGrad",
    .summary =
        "gradient of NegativeLikelihood(x, labels[, weights]) from dy, labels and weights; "
        "with batch_classes as many classes as samples",
    .operands = 3,
    .optional = 1,
    .infer = cross_entropy_cc::InferNegativeLikelihoodGrad,
    .sharding = cross_entropy_cc::NegativeLikelihoodSharding,
    .evaluate = cross_entropy_cc::EvaluateNegativeLikelihoodGrad,
    .no_gradient = 0b110,
};

}  // namespace orrery::ir
