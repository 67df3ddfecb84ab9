#include <cmath>

#include "ir/op_info.h"
#include "ir/ops/attention.h"
#include "ir/ops/checks.h"
#include "support/status.h"

// The gradient of Attention, in one kernel: AttentionGrad(q, k, v, y, statistics, dy[, stayed,
// dropped][, mask]), these two where Attention keeps what dropout has done. In a ring, y and
// statistics are of all turns together, and the gradients are those of one turn: what all turns
// give adds up.

namespace orrery::ir {
namespace attention_grad_cc {
namespace {

using namespace attention;  // NOLINT: this is its implementation

// Where the mask stands, if there is one.
size_t PositionOfMask(const AttributeSet& attributes) { return KeepsDropout(attributes) ? 8 : 6; }

absl::Status CheckDropped(const OpTypes& op, const AttentionShape& shape) {
  if (!KeepsDropout(op.attributes)) return absl::OkStatus();
  const TensorType &stayed = *op.operands[6], &dropped = *op.operands[7];
  const Dims logits = shape.logits();
  if (stayed.dtype == DType::kBool && IsFloat(dropped.dtype) && stayed.dims == logits &&
      dropped.dims == logits) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "what dropout left is ", ToString(stayed, op.mesh), " and ", ToString(dropped, op.mesh),
      "; wanted bools and floats of shape ", Show(logits)));
}

absl::Status InferAttentionGrad(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckElementTypes(op); !status.ok()) return status;
  const absl::StatusOr<AttentionShape> shape = GlobalShape(op);
  if (!shape.ok()) return shape.status();
  const Dims y = ResultOf(op, *shape).dims, statistics = StatisticsOf(op, *shape).dims;
  if (op.operands[3]->dims != y || op.operands[5]->dims != y ||
      op.operands[4]->dims != statistics) {
    return absl::InvalidArgumentError(
        absl::StrCat("y, statistics and dy have shapes ", Show(op.operands[3]->dims), ", ",
                     Show(op.operands[4]->dims), " and ", Show(op.operands[5]->dims), "; wanted ",
                     Show(y), ", ", Show(statistics), " and ", Show(y)));
  }
  for (size_t i = 3; i < 6; ++i) ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
  const size_t mask = PositionOfMask(op.attributes), count = op.operands.size();
  if (count < mask || count > mask + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", count, " operands; wanted ", mask, ", and a mask or none"));
  }
  if (absl::Status status = CheckDropped(op, *shape); !status.ok()) return status;
  const bool masked = count > mask;
  if (masked) {
    const absl::Status status = CheckMaskOf(op, *op.operands[mask], *shape);
    if (!status.ok()) return status;
  }
  for (size_t i = 0; i < 3; ++i) {
    results.push_back(
        {.dtype = op.operands[i]->dtype, .dims = op.operands[i]->dims, .sharding = {}});
  }
  if (masked && op.attributes.Int("mask_gradient", 0) != 0) {
    if (absl::Status status = CheckFloat(op, mask); !status.ok()) return status;
    results.push_back(
        {.dtype = op.operands[mask]->dtype, .dims = op.operands[mask]->dims, .sharding = {}});
  }
  return absl::OkStatus();
}

// The gradients of both operands of both products; flash computes the first product again.
double AttentionGradFlops(const OpTypes& op, const TypeList&) {
  const Products products = ProductsOf(op, *op.operands[3]);
  return (IsFlash(op.attributes) ? 6 : 4) * products.of_q + 4 * products.of_v;
}

double RecomputedFlops(const OpTypes& op, const TypeList&) {
  return IsFlash(op.attributes) ? 2 * ProductsOf(op, *op.operands[3]).of_q : 0;
}

int64_t AttentionGradBytes(const OpTypes& op, const TypeList& results) {
  int64_t bytes = -UnreadBytes(op, *op.operands[4]);
  for (const TensorType* const type : op.operands) bytes += SizeOf(*type).count();
  for (const TensorType& type : results) bytes += SizeOf(type).count();
  return bytes;
}

ShardingRule AttentionGradSharding(const OpTypes& op, const TypeList& results) {
  const AttentionShape shape = GlobalShape(op).value();
  const Split split = SplitOf(op, shape);
  const ShardingRule::Factors q = split.Of(true), k = split.Of(false);
  ShardingRule rule{.operands = {q, k, k, q, split.OfStatistics(op.operands[4]->dims.size()), q},
                    .results = {q, k, k},
                    .whole_too = WholeToo(shape, split)};
  const size_t mask = PositionOfMask(op.attributes);
  for (size_t i = 6; i < mask; ++i) rule.operands.push_back(split.OfStatistics(4));
  if (op.operands.size() == mask) return rule;
  rule.operands.push_back(FactorsOfMask(*op.operands[mask], shape, split));
  if (results.size() > 3) rule.results.push_back(rule.operands.back());
  KeepWindowsTogether(op, *op.operands[mask], shape, rule);
  return rule;
}

// The probabilities of one row of logits.
std::vector<double> Probabilities(const Evaluation& e, std::vector<double> row, int64_t statistic,
                                  int64_t logits) {
  const double number = static_cast<double>(row.size());
  const bool flash = IsFlash(e.attributes);
  for (size_t i = 0; i < row.size(); ++i) {
    if (!flash) {
      row[i] = e.operand(4).Number(logits + static_cast<int64_t>(i));
      continue;
    }
    // The logarithm of a sum of hidden logits is as low as they are: it does not tell their number.
    const double sum = e.operand(4).Number(statistic);
    row[i] = sum <= kHiddenLogit ? 1 / number : std::exp(row[i] - sum);
  }
  return row;
}

// With p the probabilities of a row, f the factors of its dropout, and dp = f dy v:
// dlogits = p (dp - dy y), as y is the sum of f p v.
absl::Status EvaluateAttentionGrad(Evaluation& e) {
  const absl::StatusOr<AttentionShape> found = LocalShape(e, e.operand(4));
  if (!found.ok()) return found.status();
  const AttentionShape& shape = *found;
  const Tensor &q = e.operand(0), &k = e.operand(1), &v = e.operand(2), &dy = e.operand(5);
  const size_t mask = PositionOfMask(e.attributes);
  const Logits logits(e, e.has_operand(mask) ? &e.operand(mask) : nullptr, shape);
  const DropoutFactors factors(e, shape);
  const double scale = e.attributes.Number("scale", 1);
  ForEachQuery(shape, [&](int64_t b, int64_t h, int64_t s) {
    const int64_t y_at = shape.Y(b, h, s), q_at = shape.Q(b, h, s);
    const double mean = Dot(dy, y_at, e.operand(3), y_at, shape.value_width);
    const std::vector<double> row = logits.Row(b, h, s);
    const std::vector<double> probabilities =
        Probabilities(e, row, shape.Statistic(b, h, s), shape.Logits(b, h, s));
    const auto [begin, end] = shape.KeysOf(s);
    for (int64_t t = begin; t < end; ++t) {
      const auto position = static_cast<size_t>(t - begin);
      const double p = probabilities[position], factor = factors.At(b, h, s, t);
      const int64_t k_at = shape.K(b, h, t), v_at = shape.V(b, h, t);
      const bool hidden = row[position] == kHiddenLogit;
      const double dp = factor * Dot(dy, y_at, v, v_at, shape.value_width);
      const double dlogit = hidden ? 0 : p * (dp - mean);
      AddRow(e.results[0], q_at, scale * dlogit, k, k_at, shape.width);
      AddRow(e.results[1], k_at, scale * dlogit, q, q_at, shape.width);
      AddRow(e.results[2], v_at, p * factor, dy, y_at, shape.value_width);
      if (e.results.size() > 3) {
        e.results[3].floats()[static_cast<size_t>(logits.positions().At(b, h, s, t))] += dlogit;
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace
}  // namespace attention_grad_cc

extern const OpInfo kAttentionGradOp = {
    .name = "AttentionGrad",
    .summary =
        "gradients of Attention from q, k, v, y, statistics, dy, what its dropout left, and the "
        "mask: of q, k, v, and of the mask with mask_gradient=1. With ring_rows and turn those of "
        "one turn, from y and "
        "statistics of all turns",
    .operands = 9,
    .optional = 3,
    .results = OpInfo::kVariadic,
    .infer = attention_grad_cc::InferAttentionGrad,
    .flops = attention_grad_cc::AttentionGradFlops,
    .recomputed_flops = attention_grad_cc::RecomputedFlops,
    .bytes = attention_grad_cc::AttentionGradBytes,
    .sharding = attention_grad_cc::AttentionGradSharding,
    .evaluate = attention_grad_cc::EvaluateAttentionGrad,
    .matrix_product = true,
};

}  // namespace orrery::ir
