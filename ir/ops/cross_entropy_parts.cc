#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/op_info.h"
#include "ir/ops/checks.h"
#include "ir/ops/cross_entropy.h"
#include "support/status.h"

// CrossEntropy in three steps, so that the classes can be split: what each part of the classes has
// to say of a row, two numbers; the loss, from those of all parts; and its gradient, again part by
// part. Ranks exchange the two numbers instead of the logits (Shoeybi et al. 2019, section 3). Made
// after differentiation, where CrossEntropy and CrossEntropyGrad stood: they have no gradients.

namespace orrery::ir {
namespace cross_entropy_parts_cc {
namespace {

absl::Status InferParts(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckLogitsAndLabels(op));
  const int64_t classes = op.operands[0]->dims.back(), parts = op.attributes.Int("parts", 0);
  if (parts < 1 || classes < parts || classes % parts != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got parts=", parts, " of ", classes, " classes; wanted parts of equally many classes"));
  }
  Dims dims = op.operands[1]->dims;
  dims.push_back(parts);
  dims.push_back(2);
  AddResult(results, StatisticsType(op.operands[0]->dtype), dims);
  return absl::OkStatus();
}

// Ok when operand i has two numbers a part, for each label.
absl::Status CheckParts(const OpTypes& op, size_t i) {
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, i, 2, "[..,parts,2]"));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
  const Dims& parts = op.operands[i]->dims;
  Dims wanted = op.operands[1]->dims;
  wanted.push_back(std::max<int64_t>(parts[parts.size() - 2], 1));
  wanted.push_back(2);
  return CheckDims(op, i, wanted, "(a logarithm and a logit for each label and part)");
}

absl::Status InferOfParts(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckInteger(op, 1));
  ORRERY_RETURN_IF_ERROR(CheckParts(op, 0));
  ORRERY_RETURN_IF_ERROR(CheckLossBatch(op));
  const std::string to = op.attributes.String("to", ToString(op.operands[0]->dtype));
  const std::optional<DType> dtype = ParseDType(to);
  if (!dtype.has_value() || !IsFloat(*dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("to=\"", to, "\"; wanted a type of floating point such as \"f16\""));
  }
  AddResult(results, *dtype, op.operands[1]->dims);
  return absl::OkStatus();
}

absl::Status InferPartsGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckLogitsAndLabels(op));
  ORRERY_RETURN_IF_ERROR(CheckParts(op, 2));
  ORRERY_RETURN_IF_ERROR(CheckLossBatch(op));
  return InferUnary(op, results);
}

double OfPartsFlops(const OpTypes& op, const TypeList&) {
  return kFlopsALogit * static_cast<double>(ElementCount(op.operands[0]->dims)) / 2;
}

// What comes with `rank` dimensions of rows, parts and two numbers; `parts` is their factor.
ShardingRule::Factors PartFactors(size_t rank, int8_t parts) {
  ShardingRule::Factors factors = RowFactors(rank - 2, rank);
  factors.push_back(parts);
  factors.push_back(kNoFactor);
  return factors;
}

// Factors of the rows, and then one of the classes, which the parts share: a rank computes the
// parts whose classes it has.
ShardingRule PartsSharding(const OpTypes& op, const TypeList& results) {
  const size_t rank = op.operands[0]->dims.size();
  return {.operands = {RowFactors(rank, rank), RowFactors(rank - 1, rank)},
          .results = {PartFactors(results[0].dims.size(), static_cast<int8_t>(rank - 1))}};
}

ShardingRule OfPartsSharding(const OpTypes& op, const TypeList& results) {
  const size_t rank = results[0].dims.size();
  const auto rows = RowFactors(rank, rank);
  return {.operands = {PartFactors(op.operands[0]->dims.size(), kNoFactor), rows},
          .results = {rows}};
}

ShardingRule PartsGradSharding(const OpTypes& op, const TypeList&) {
  const size_t rank = op.operands[0]->dims.size();
  const auto logits = RowFactors(rank, rank);
  const auto parts = PartFactors(op.operands[2]->dims.size(), kNoFactor);
  return {.operands = {logits, RowFactors(rank - 1, rank), parts}, .results = {logits}};
}

// The logarithm of the sum of the exponentials of `count` elements, `step` apart. Of a part, all of
// them may be minus infinity: classes that are masked.
double LogSumExp(const Tensor& x, int64_t start, int64_t count, int64_t step = 1) {
  double maximum = x.Number(start), sum = 0;
  for (int64_t i = 1; i < count; ++i) maximum = std::max(maximum, x.Number(start + i * step));
  if (maximum == -std::numeric_limits<double>::infinity()) return maximum;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(x.Number(start + i * step) - maximum);
  return maximum + std::log(sum);
}

absl::Status EvaluateParts(Evaluation& e) {
  const Tensor& logits = e.operand(0);
  const size_t classes_dim = logits.dims().size() - 1;
  const int64_t parts = e.results[0].dims()[classes_dim], held = logits.dims().back();
  const int64_t size = held / parts, first = e.OperandFirst(0, classes_dim);
  for (int64_t i = 0; i < e.operand(1).size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t label,
                            LabelOf(e, e.operand(1), i, e.OperandWhole(0, classes_dim)));
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t start = i * held + part * size, position = label - first - part * size;
      const bool chosen = label >= 0 && position >= 0 && position < size;
      const int64_t to = 2 * (i * parts + part);
      e.results[0].SetNumber(to, LogSumExp(logits, start, size));
      e.results[0].SetNumber(to + 1, chosen ? logits.Number(start + position) : 0);
    }
  }
  return absl::OkStatus();
}

absl::Status EvaluateOfParts(Evaluation& e) {
  const Tensor &parts = e.operand(0), &labels = e.operand(1);
  const int64_t count = parts.dims()[parts.dims().size() - 2];
  const double batch = e.attributes.Number("batch", 1);
  for (int64_t i = 0; i < labels.size(); ++i) {
    if (IsIgnored(e.attributes, labels.ints()[static_cast<size_t>(i)])) continue;
    double chosen = 0;
    for (int64_t p = 0; p < count; ++p) chosen += parts.Number(2 * (i * count + p) + 1);
    const double all = LogSumExp(parts, 2 * i * count, count, 2);
    e.results[0].SetNumber(i, (all - chosen) / batch);
  }
  return absl::OkStatus();
}

absl::Status EvaluatePartsGrad(Evaluation& e) {
  const Tensor &logits = e.operand(0), &parts = e.operand(2);
  const size_t classes_dim = logits.dims().size() - 1;
  const int64_t count = parts.dims()[classes_dim], held = logits.dims().back();
  const int64_t first = e.OperandFirst(0, classes_dim);
  const double batch = e.attributes.Number("batch", 1);
  for (int64_t i = 0; i < e.operand(1).size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t label,
                            LabelOf(e, e.operand(1), i, e.OperandWhole(0, classes_dim)));
    if (label < 0) continue;
    const double all = LogSumExp(parts, 2 * i * count, count, 2);
    for (int64_t j = 0; j < held; ++j) {
      const double probability = std::exp(logits.Number(i * held + j) - all);
      const double one = first + j == label ? 1 : 0;
      e.results[0].SetNumber(i * held + j, (probability - one) / batch);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cross_entropy_parts_cc

extern const OpInfo kCrossEntropyPartsOp = {
    .name = "CrossEntropyParts",
    .summary =
        "for each of `parts` equal parts of the classes of logits [..,classes] the log of the sum "
        "of the exponentials, and the label's logit or 0: [..,parts,2]",
    .operands = 2,
    .infer = cross_entropy_parts_cc::InferParts,
    .flops = CrossEntropyFlops,
    .sharding = cross_entropy_parts_cc::PartsSharding,
    .evaluate = cross_entropy_parts_cc::EvaluateParts,
};

extern const OpInfo kCrossEntropyOfPartsOp = {
    .name = "CrossEntropyOfParts",
    .summary = "CrossEntropy from CrossEntropyParts and labels, over `batch`, of the type `to`",
    .operands = 2,
    .infer = cross_entropy_parts_cc::InferOfParts,
    .flops = cross_entropy_parts_cc::OfPartsFlops,
    .sharding = cross_entropy_parts_cc::OfPartsSharding,
    .evaluate = cross_entropy_parts_cc::EvaluateOfParts,
    .is_loss = true,
};

extern const OpInfo kCrossEntropyPartsGradOp = {
    .name = "CrossEntropyPartsGrad",
    .summary = "CrossEntropyGrad from logits, labels and CrossEntropyParts",
    .operands = 3,
    .infer = cross_entropy_parts_cc::InferPartsGrad,
    .flops = CrossEntropyFlops,
    .sharding = cross_entropy_parts_cc::PartsGradSharding,
    .evaluate = cross_entropy_parts_cc::EvaluatePartsGrad,
    .seeds_backward = true,
};

}  // namespace orrery::ir
