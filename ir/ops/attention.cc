#include "ir/ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"

// Scaled dot-product attention in one kernel and its gradient (Vaswani et al. 2017). With flash=1
// it keeps the logarithm of each row's sum instead of the probabilities, and its gradient computes
// these anew (Dao et al. 2022), and with them what dropout did to them. Grouped queries: several
// heads of q share one of k and v.

namespace orrery::ir {
namespace attention_cc {
namespace {

using namespace attention;  // NOLINT: this is its implementation

absl::Status InferAttention(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckElementTypes(op); !status.ok()) return status;
  const absl::StatusOr<AttentionShape> shape = GlobalShape(op);
  if (!shape.ok()) return shape.status();
  if (op.operands.size() > 3) {
    if (absl::Status status = CheckMaskOf(op, *op.operands[3], *shape); !status.ok()) return status;
  }
  results.push_back(ResultOf(op, *shape));
  results.push_back(StatisticsOf(op, *shape));
  if (!KeepsDropout(op.attributes)) return absl::OkStatus();
  results.push_back(StayedOf(*shape));
  results.push_back(DroppedOf(op, *shape));
  return absl::OkStatus();
}

double AttentionFlops(const OpTypes& op, const TypeList& results) {
  const Products products = ProductsOf(op, results[0]);
  return 2 * (products.of_q + products.of_v);
}

int64_t AttentionBytes(const OpTypes& op, const TypeList& results) {
  int64_t bytes = -UnreadBytes(op, results[1]);
  for (const TensorType* const type : op.operands) bytes += SizeOf(*type).count();
  for (const TensorType& type : results) bytes += SizeOf(type).count();
  return bytes;
}

ShardingRule AttentionSharding(const OpTypes& op, const TypeList& results) {
  const AttentionShape shape = GlobalShape(op).value();
  const Split split = SplitOf(op, shape);
  const ShardingRule::Factors q = split.Of(true), k = split.Of(false);
  ShardingRule rule{.operands = {q, k, k}, .results = {q}, .whole_too = WholeToo(shape, split)};
  for (size_t j = 1; j < results.size(); ++j) {
    rule.results.push_back(split.OfStatistics(results[j].dims.size()));
  }
  if (op.operands.size() > 3) {
    rule.operands.push_back(FactorsOfMask(*op.operands[3], shape, split));
    KeepWindowsTogether(op, *op.operands[3], shape, rule);
  }
  return rule;
}

absl::Status EvaluateAttention(Evaluation& e) {
  const absl::StatusOr<AttentionShape> found = LocalShape(e, e.results[1]);
  if (!found.ok()) return found.status();
  const AttentionShape& shape = *found;
  const Logits logits(e, e.has_operand(3) ? &e.operand(3) : nullptr, shape);
  const DropoutFactors factors(e, shape);
  ForEachQuery(shape, [&](int64_t b, int64_t h, int64_t s) {
    std::vector<double> row = logits.Row(b, h, s);
    double most = kHiddenLogit, sum = 0;
    for (const double logit : row) most = std::max(most, logit);
    for (double& logit : row) sum += logit = std::exp(logit - most);
    const auto [begin, end] = shape.KeysOf(s);
    for (int64_t t = begin; t < end; ++t) {
      const double p = row[static_cast<size_t>(t - begin)] / sum, factor = factors.At(b, h, s, t);
      AddRow(e.results[0], shape.Y(b, h, s), p * factor, e.operand(2), shape.V(b, h, t),
             shape.value_width);
      if (!IsFlash(e.attributes)) e.results[1].SetNumber(shape.Logits(b, h, s) + t, p);
      if (!KeepsDropout(e.attributes)) continue;
      e.results[2].SetNumber(shape.Logits(b, h, s) + t, factor > 0 ? 1 : 0);
      e.results[3].SetNumber(shape.Logits(b, h, s) + t, p * factor);
    }
    if (IsFlash(e.attributes)) {
      e.results[1].SetNumber(shape.Statistic(b, h, s), most + std::log(sum));
    }
  });
  return absl::OkStatus();
}

absl::Status AttentionGradient(GradientContext& c) {
  if (!c.result_gradient().valid()) return absl::OkStatus();
  Builder& b = c.builder();
  std::vector<ValueId> operands = {c.operand(0), c.operand(1), c.operand(2),
                                   c.result(0),  c.result(1),  c.result_gradient()};
  AttributeSet attributes = c.attributes();
  if (KeepsDropout(attributes)) {
    operands.push_back(c.result(2));
    operands.push_back(c.result(3));
  }
  const int count = c.operand_count();
  if (count > 3) operands.push_back(c.operand(3));
  const bool of_mask = count > 3 && c.needs(3) && IsFloat(c.operand_type(3).dtype);
  if (of_mask) attributes.Set("mask_gradient", int64_t{1});
  std::vector<std::string> texts;
  for (int i = 0; i < (of_mask ? 4 : 3); ++i) {
    texts.push_back(c.GradientName(i));
    for (int j = 0; j < i; ++j) {
      if (c.operand(i) == c.operand(j)) texts.back().clear();
    }
  }
  const std::vector<absl::string_view> names(texts.begin(), texts.end());
  const OpId op = b.Ops(OpKind::kAttentionGrad, operands, names, attributes);
  if (!op.valid()) return b.status();
  for (int i = 0; i < (of_mask ? 4 : 3); ++i) {
    c.SetOperandGradient(i, b.function().result(op, i));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace attention_cc

extern const OpInfo kAttentionOp = {
    .name = "Attention",
    .summary =
        "softmax(scale q kᵀ, masked) v, by heads: q [b,s,heads d], k and v [b,t,kv_heads d], "
        "or [b,heads,s,d]; and the probabilities, or with flash=1 the logarithms of their "
        "sums. With dropout=r of the probabilities, which stayed, and what they became, but with "
        "flash=1. With ring_rows=r rows fall into parts of r, and queries see only the part of "
        "keys "
        "in their place; that one has gone round by turn=i parts",
    .operands = 4,
    .optional = 1,
    .results = OpInfo::kVariadic,
    .infer = attention_cc::InferAttention,
    .flops = attention_cc::AttentionFlops,
    .bytes = attention_cc::AttentionBytes,
    .sharding = attention_cc::AttentionSharding,
    .evaluate = attention_cc::EvaluateAttention,
    .gradient = attention_cc::AttentionGradient,
    .matrix_product = true,
};

}  // namespace orrery::ir
