#include "ir/ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

// Scaled dot-product attention in one kernel and its gradient (Vaswani et al. 2017). With flash=1
// it keeps the logarithm of each row's sum in place of the probabilities, and its gradient computes
// these anew (Dao et al. 2022). Grouped queries: several heads of q share one of k and v.

namespace orrery::ir {

absl::Status CheckMask(const OpTypes& op, const TensorType& mask, DType dtype, const Dims& logits) {
  if (mask.dtype != DType::kBool && mask.dtype != dtype) {
    return absl::InvalidArgumentError(absl::StrCat("got a mask of ", ToString(mask, op.mesh),
                                                   "; wanted bool or ", ToString(dtype)));
  }
  const std::optional<Dims> dims = BroadcastDims(mask.dims, logits);
  if (dims.has_value() && *dims == logits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a mask of shape ", Show(mask.dims), " does not broadcast to ", Show(logits)));
}

absl::StatusOr<AttentionShape> ShapeOfAttention(const Dims& q, const Dims& k, const Dims& v,
                                                int64_t heads) {
  const auto trouble = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "q, k and v have shapes ", Show(q), ", ", Show(k), " and ", Show(v), " with heads=", heads,
        "; wanted [batch,rows,heads width] or [batch,heads,rows,width], one batch, one width of q "
        "and k, and as many heads of k and v as go into those of q"));
  };
  const size_t rank = q.size();
  if ((rank != 3 && rank != 4) || k.size() != rank || v.size() != rank || heads < 1)
    return trouble();
  const bool packed = rank == 3;
  const size_t rows = packed ? 1 : 2;
  if (packed ? q[2] % heads != 0 : q[1] != heads) return trouble();
  AttentionShape shape{
      .packed = packed, .batch = q[0], .queries = q[rows], .keys = k[rows], .heads = heads};
  shape.width = packed ? q[2] / heads : q[3];
  if (shape.width < 1 || (packed && k[2] % shape.width != 0)) return trouble();
  shape.kv_heads = packed ? k[2] / shape.width : k[1];
  if (shape.kv_heads < 1 || heads % shape.kv_heads != 0) return trouble();
  if (packed && v[2] % shape.kv_heads != 0) return trouble();
  shape.value_width = packed ? v[2] / shape.kv_heads : v[3];
  const bool fits = k[0] == q[0] && v[0] == q[0] && v[rows] == k[rows] &&
                    (packed || (k[3] == shape.width && v[1] == shape.kv_heads));
  if (!fits) return trouble();
  return shape;
}

MaskPlaces::MaskPlaces(const Tensor* mask, const AttentionShape& shape) : strides_(4, 0) {
  if (mask == nullptr) return;
  Dims dims = shape.logits();
  if (mask->dims().size() == 4) {
    batch_ = std::max<int64_t>(mask->dims()[0], 1);
    dims[0] = batch_;
  }
  strides_ = BroadcastStrides(mask->dims(), dims);
}

namespace {

// Factors. The rows of q may be split, unless a causal mask counts them.
constexpr int8_t kFactorBatch = 0;
constexpr int8_t kFactorHeads = 1;
constexpr int8_t kFactorQueries = 2;

bool IsCausal(const AttributeSet& attributes) { return attributes.Int("causal", 0) != 0; }
bool IsFlash(const AttributeSet& attributes) { return attributes.Int("flash", 0) != 0; }

absl::StatusOr<AttentionShape> GlobalShape(const OpTypes& op) {
  const absl::StatusOr<AttentionShape> shape =
      ShapeOfAttention(op.operands[0]->dims, op.operands[1]->dims, op.operands[2]->dims,
                       op.attributes.Int("heads", 0));
  if (!shape.ok()) return shape;
  const int64_t kv_heads = op.attributes.Int("kv_heads", shape->heads);
  if (kv_heads == shape->kv_heads) return shape;
  return absl::InvalidArgumentError(absl::StrCat("k has ", shape->kv_heads, " heads of width ",
                                                 shape->width, "; wanted kv_heads=", kv_heads));
}

absl::Status CheckMaskOf(const OpTypes& op, const TensorType& mask, const AttentionShape& shape) {
  Dims logits = shape.logits();
  if (mask.dims.size() == 4 && mask.dims[0] > 0 && shape.batch % mask.dims[0] == 0) {
    logits[0] = mask.dims[0];
  }
  return CheckMask(op, mask, op.operands[0]->dtype, logits);
}

// The types of the statistics: probabilities, or a logarithm a row in at least f32.
TensorType StatisticsOf(const OpTypes& op, const AttentionShape& shape) {
  const DType dtype = op.operands[0]->dtype;
  if (!IsFlash(op.attributes)) return {.dtype = dtype, .dims = shape.logits(), .sharding = {}};
  return {.dtype = SizeOf(dtype) < 4 ? DType::kF32 : dtype,
          .dims = {shape.batch, shape.heads, shape.queries},
          .sharding = {}};
}

TensorType ResultOf(const OpTypes& op, const AttentionShape& shape) {
  Dims dims = op.operands[0]->dims;
  dims.back() = shape.packed ? shape.heads * shape.value_width : shape.value_width;
  return {.dtype = op.operands[0]->dtype, .dims = std::move(dims), .sharding = {}};
}

absl::Status CheckElementTypes(const OpTypes& op) {
  const DType q = op.operands[0]->dtype, k = op.operands[1]->dtype, v = op.operands[2]->dtype;
  if (q == k && q == v && IsFloat(q)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("q, k and v are of ", ToString(q), ", ",
                                                 ToString(k), " and ", ToString(v),
                                                 "; wanted one type of floats"));
}

absl::Status InferAttention(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckElementTypes(op); !status.ok()) return status;
  const absl::StatusOr<AttentionShape> shape = GlobalShape(op);
  if (!shape.ok()) return shape.status();
  if (op.operands.size() > 3) {
    if (absl::Status status = CheckMaskOf(op, *op.operands[3], *shape); !status.ok()) return status;
  }
  results.push_back(ResultOf(op, *shape));
  results.push_back(StatisticsOf(op, *shape));
  return absl::OkStatus();
}

// Queries times keys times the widths of q and of v: half the flops of the two products.
struct Products {
  double of_q, of_v;
};

Products ProductsOf(const OpTypes& op, const TensorType& y) {
  const Dims& k = op.operands[1]->dims;
  const auto keys = static_cast<double>(k[k.size() - 2]);
  return {.of_q = static_cast<double>(ElementCount(op.operands[0]->dims)) * keys,
          .of_v = static_cast<double>(ElementCount(y.dims)) * keys};
}

double AttentionFlops(const OpTypes& op, const TypeList& results) {
  const Products products = ProductsOf(op, results[0]);
  return 2 * (products.of_q + products.of_v);
}

// Sharding of q, k, v or y; heads only where whole heads of q and of k fall to each rank.
struct Split {
  bool packed, heads, queries;

  ShardingRule::Factors Of(bool of_queries) const {
    const int8_t h = heads ? kFactorHeads : kNoFactor;
    const int8_t rows = of_queries && queries ? kFactorQueries : kNoFactor;
    if (packed) return {kFactorBatch, rows, h};
    return {kFactorBatch, h, rows, kNoFactor};
  }
  ShardingRule::Factors OfStatistics(size_t rank) const {
    ShardingRule::Factors factors(rank, kNoFactor);
    const ShardingRule::Factors first = {kFactorBatch, heads ? kFactorHeads : kNoFactor,
                                         queries ? kFactorQueries : kNoFactor};
    std::copy_n(first.begin(), std::min<size_t>(rank, 3), factors.begin());
    return factors;
  }
};

Split SplitOf(const OpTypes& op, const AttentionShape& shape) {
  bool whole = true;
  for (size_t i = 0; i < 3; ++i) {
    const TensorType& type = *op.operands[i];
    const int64_t parts = op.mesh.size(type.sharding.at(shape.packed ? 2 : 1));
    whole = whole && shape.kv_heads % parts == 0;
  }
  return {.packed = shape.packed, .heads = whole, .queries = !IsCausal(op.attributes)};
}

// A mask of a few windows is whole, and fits only where whole sets of windows fall to each rank.
ShardingRule::Factors FactorsOfMask(const TensorType& mask, const AttentionShape& shape,
                                    const Split& split) {
  const ShardingRule::Factors all = split.OfStatistics(4);
  const Dims logits = shape.logits();
  ShardingRule::Factors factors(mask.dims.size(), kNoFactor);
  for (size_t d = 0; d < mask.dims.size(); ++d) {
    const size_t aligned = 4 - mask.dims.size() + d;
    if (mask.dims[d] == logits[aligned]) factors[d] = all[aligned];
  }
  return factors;
}

void KeepWindowsTogether(const OpTypes& op, const TensorType& mask, const AttentionShape& shape,
                         ShardingRule& rule) {
  const bool shared = mask.dims.size() == 4 && mask.dims[0] > 1 && mask.dims[0] != shape.batch;
  const int64_t parts = op.mesh.size(op.operands[0]->sharding.at(0));
  if (!shared || (shape.batch / mask.dims[0]) % parts == 0) return;
  const auto make_whole = [](ShardingRule::Factors& factors) {
    std::replace(factors.begin(), factors.end(), kFactorBatch, kNoFactor);
  };
  for (ShardingRule::Factors& factors : rule.operands) make_whole(factors);
  for (ShardingRule::Factors& factors : rule.results) make_whole(factors);
}

ShardingRule AttentionSharding(const OpTypes& op, const TypeList& results) {
  const AttentionShape shape = GlobalShape(op).value();
  const Split split = SplitOf(op, shape);
  const ShardingRule::Factors q = split.Of(true), k = split.Of(false);
  ShardingRule rule{.operands = {q, k, k},
                    .results = {q, split.OfStatistics(results[1].dims.size())}};
  if (op.operands.size() > 3) {
    rule.operands.push_back(FactorsOfMask(*op.operands[3], shape, split));
    KeepWindowsTogether(op, *op.operands[3], shape, rule);
  }
  return rule;
}

// The statistics have one row a local head.
absl::StatusOr<AttentionShape> LocalShape(const Evaluation& e, const Tensor& statistics) {
  return ShapeOfAttention(e.operand(0).dims(), e.operand(1).dims(), e.operand(2).dims(),
                          statistics.dims()[1]);
}

double Dot(const Tensor& x, int64_t i, const Tensor& y, int64_t j, int64_t width) {
  double sum = 0;
  for (int64_t p = 0; p < width; ++p) sum += x.Number(i + p) * y.Number(j + p);
  return sum;
}

// y[to..] += factor x[from..]
void AddRow(Tensor& y, int64_t to, double factor, const Tensor& x, int64_t from, int64_t width) {
  std::vector<double>& values = y.floats();
  for (int64_t p = 0; p < width; ++p) {
    values[static_cast<size_t>(to + p)] += factor * x.Number(from + p);
  }
}

template <typename F>
void ForEachQuery(const AttentionShape& shape, F f) {
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      for (int64_t s = 0; s < shape.queries; ++s) f(b, h, s);
    }
  }
}

// Computes rows of logits.
class Logits {
 public:
  Logits(const Evaluation& e, const Tensor* mask, const AttentionShape& shape)
      : e_(e),
        mask_(mask),
        shape_(shape),
        places_(mask, shape),
        scale_(e.attributes.Number("scale", 1)),
        causal_(IsCausal(e.attributes)) {}

  std::vector<double> Row(int64_t b, int64_t h, int64_t s) const {
    std::vector<double> row;
    for (int64_t t = 0; t < shape_.keys; ++t) {
      const double dot =
          Dot(e_.operand(0), shape_.Q(b, h, s), e_.operand(1), shape_.K(b, h, t), shape_.width);
      row.push_back(
          MaskedLogit(scale_ * dot, mask_, places_.At(b, h, s, t), causal_ && shape_.Hides(s, t)));
    }
    return row;
  }
  const MaskPlaces& places() const { return places_; }

 private:
  const Evaluation& e_;
  const Tensor* mask_;
  const AttentionShape& shape_;
  MaskPlaces places_;
  double scale_;
  bool causal_;
};

absl::Status EvaluateAttention(Evaluation& e) {
  const absl::StatusOr<AttentionShape> found = LocalShape(e, e.results[1]);
  if (!found.ok()) return found.status();
  const AttentionShape& shape = *found;
  const Logits logits(e, e.has_operand(3) ? &e.operand(3) : nullptr, shape);
  ForEachQuery(shape, [&](int64_t b, int64_t h, int64_t s) {
    std::vector<double> row = logits.Row(b, h, s);
    double most = kHiddenLogit, sum = 0;
    for (const double logit : row) most = std::max(most, logit);
    for (double& logit : row) sum += logit = std::exp(logit - most);
    for (int64_t t = 0; t < shape.keys; ++t) {
      const double p = row[static_cast<size_t>(t)] / sum;
      AddRow(e.results[0], shape.Y(b, h, s), p, e.operand(2), shape.V(b, h, t), shape.value_width);
      if (!IsFlash(e.attributes)) e.results[1].SetNumber(shape.Logits(b, h, s) + t, p);
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

// AttentionGrad(q, k, v, y, statistics, dy[, mask]).

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
  const bool masked = op.operands.size() > 6;
  if (masked) {
    if (absl::Status status = CheckMaskOf(op, *op.operands[6], *shape); !status.ok()) return status;
  }
  for (size_t i = 0; i < 3; ++i) {
    results.push_back(
        {.dtype = op.operands[i]->dtype, .dims = op.operands[i]->dims, .sharding = {}});
  }
  if (masked && op.attributes.Int("mask_gradient", 0) != 0) {
    results.push_back(
        {.dtype = op.operands[6]->dtype, .dims = op.operands[6]->dims, .sharding = {}});
  }
  return absl::OkStatus();
}

// The gradients of both operands of both products; flash computes the first product again.
double AttentionGradFlops(const OpTypes& op, const TypeList&) {
  const Products products = ProductsOf(op, *op.operands[3]);
  return (IsFlash(op.attributes) ? 6 : 4) * products.of_q + 4 * products.of_v;
}

ShardingRule AttentionGradSharding(const OpTypes& op, const TypeList& results) {
  const AttentionShape shape = GlobalShape(op).value();
  const Split split = SplitOf(op, shape);
  const ShardingRule::Factors q = split.Of(true), k = split.Of(false);
  ShardingRule rule{.operands = {q, k, k, q, split.OfStatistics(op.operands[4]->dims.size()), q},
                    .results = {q, k, k}};
  if (op.operands.size() < 7) return rule;
  rule.operands.push_back(FactorsOfMask(*op.operands[6], shape, split));
  if (results.size() > 3) rule.results.push_back(rule.operands.back());
  KeepWindowsTogether(op, *op.operands[6], shape, rule);
  return rule;
}

// With p the probabilities of a row and dp = dy v: dlogits = p (dp - dy y).
absl::Status EvaluateAttentionGrad(Evaluation& e) {
  const absl::StatusOr<AttentionShape> found = LocalShape(e, e.operand(4));
  if (!found.ok()) return found.status();
  const AttentionShape& shape = *found;
  const Tensor &q = e.operand(0), &k = e.operand(1), &v = e.operand(2), &dy = e.operand(5);
  const Logits logits(e, e.has_operand(6) ? &e.operand(6) : nullptr, shape);
  const double scale = e.attributes.Number("scale", 1);
  ForEachQuery(shape, [&](int64_t b, int64_t h, int64_t s) {
    const int64_t y_at = shape.Y(b, h, s), q_at = shape.Q(b, h, s);
    const double mean = Dot(dy, y_at, e.operand(3), y_at, shape.value_width);
    const std::vector<double> row = logits.Row(b, h, s);
    for (int64_t t = 0; t < shape.keys; ++t) {
      const double p = IsFlash(e.attributes)
                           ? std::exp(row[static_cast<size_t>(t)] -
                                      e.operand(4).Number(shape.Statistic(b, h, s)))
                           : e.operand(4).Number(shape.Logits(b, h, s) + t);
      const int64_t k_at = shape.K(b, h, t), v_at = shape.V(b, h, t);
      const double dlogit = p * (Dot(dy, y_at, v, v_at, shape.value_width) - mean);
      AddRow(e.results[0], q_at, scale * dlogit, k, k_at, shape.width);
      AddRow(e.results[1], k_at, scale * dlogit, q, q_at, shape.width);
      AddRow(e.results[2], v_at, p, dy, y_at, shape.value_width);
      if (e.results.size() > 3) {
        e.results[3].floats()[static_cast<size_t>(logits.places().At(b, h, s, t))] += dlogit;
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

extern const OpInfo kAttentionOp = {
    .name = "Attention",
    .summary =
        "softmax(scale q kᵀ, masked) v, by heads: q [b,s,heads d], k and v [b,t,kv_heads d], "
        "or [b,heads,s,d]; and the probabilities, or with flash=1 the logarithms of their "
        "sums",
    .operands = 4,
    .optional = 1,
    .results = 2,
    .infer = InferAttention,
    .flops = AttentionFlops,
    .sharding = AttentionSharding,
    .evaluate = EvaluateAttention,
    .gradient = AttentionGradient,
    .matrix_product = true,
};

extern const OpInfo kAttentionGradOp = {
    .name = "AttentionGrad",
    .summary =
        "gradients of Attention from q, k, v, y, statistics, dy and the mask: of q, k, v, and "
        "of the mask with mask_gradient=1",
    .operands = 7,
    .optional = 1,
    .results = OpInfo::kVariadic,
    .infer = InferAttentionGrad,
    .flops = AttentionGradFlops,
    .sharding = AttentionGradSharding,
    .evaluate = EvaluateAttentionGrad,
    .matrix_product = true,
};

}  // namespace orrery::ir
