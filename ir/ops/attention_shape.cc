#include <algorithm>

#include "ir/ops/attention.h"
#include "ir/ops/checks.h"

// The shapes of attention and of its masks, and how they may be split.

namespace orrery::ir::attention {
namespace {

// Factors. The rows of q may be split, unless a causal mask counts them.
constexpr int8_t kFactorBatch = 0;
constexpr int8_t kFactorHeads = 1;
constexpr int8_t kFactorQueries = 2;

}  // namespace

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
  const bool packed = q.size() == 3, kv_packed = k.size() == 3;
  const bool ranked = (packed || q.size() == 4) && (kv_packed || k.size() == 4);
  if (!ranked || v.size() != k.size() || heads < 1) return trouble();
  const size_t rows = packed ? 1 : 2, kv_rows = kv_packed ? 1 : 2;
  if (packed ? q[2] % heads != 0 : q[1] != heads) return trouble();
  AttentionShape shape{.packed = packed,
                       .kv_packed = kv_packed,
                       .batch = q[0],
                       .queries = q[rows],
                       .keys = k[kv_rows],
                       .heads = heads};
  shape.width = packed ? q[2] / heads : q[3];
  if (shape.width < 1 || (kv_packed && k[2] % shape.width != 0)) return trouble();
  shape.kv_heads = kv_packed ? k[2] / shape.width : k[1];
  if (shape.kv_heads < 1 || heads % shape.kv_heads != 0) return trouble();
  if (kv_packed && v[2] % shape.kv_heads != 0) return trouble();
  shape.value_width = kv_packed ? v[2] / shape.kv_heads : v[3];
  const bool fits = k[0] == q[0] && v[0] == q[0] && v[kv_rows] == k[kv_rows] &&
                    (kv_packed || (k[3] == shape.width && v[1] == shape.kv_heads));
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
  return {.dtype = StatisticsType(dtype),
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

Products ProductsOf(const OpTypes& op, const TensorType& y) {
  const Dims& k = op.operands[1]->dims;
  const auto keys = static_cast<double>(k[k.size() - 2]);
  return {.of_q = static_cast<double>(ElementCount(op.operands[0]->dims)) * keys,
          .of_v = static_cast<double>(ElementCount(y.dims)) * keys};
}

ShardingRule::Factors Split::Of(bool of_queries) const {
  const int8_t h = heads ? kFactorHeads : kNoFactor;
  const int8_t rows = of_queries && queries ? kFactorQueries : kNoFactor;
  if (of_queries ? packed : kv_packed) return {kFactorBatch, rows, h};
  return {kFactorBatch, h, rows, kNoFactor};
}

ShardingRule::Factors Split::OfStatistics(size_t rank) const {
  ShardingRule::Factors factors(rank, kNoFactor);
  const ShardingRule::Factors first = {kFactorBatch, heads ? kFactorHeads : kNoFactor,
                                       queries ? kFactorQueries : kNoFactor};
  std::copy_n(first.begin(), std::min<size_t>(rank, 3), factors.begin());
  return factors;
}

Split SplitOf(const OpTypes& op, const AttentionShape& shape) {
  bool whole = true;
  for (size_t i = 0; i < 3; ++i) {
    const TensorType& type = *op.operands[i];
    const int64_t parts =
        op.mesh.size(type.sharding.at((i == 0 ? shape.packed : shape.kv_packed) ? 2 : 1));
    whole = whole && shape.kv_heads % parts == 0;
  }
  return {.packed = shape.packed,
          .kv_packed = shape.kv_packed,
          .heads = whole,
          .queries = !IsCausal(op.attributes)};
}

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

absl::StatusOr<AttentionShape> LocalShape(const Evaluation& e, const Tensor& statistics) {
  return ShapeOfAttention(e.operand(0).dims(), e.operand(1).dims(), e.operand(2).dims(),
                          statistics.dims()[1]);
}

double Dot(const Tensor& x, int64_t i, const Tensor& y, int64_t j, int64_t width) {
  double sum = 0;
  for (int64_t p = 0; p < width; ++p) sum += x.Number(i + p) * y.Number(j + p);
  return sum;
}

void AddRow(Tensor& y, int64_t to, double factor, const Tensor& x, int64_t from, int64_t width) {
  std::vector<double>& values = y.floats();
  for (int64_t p = 0; p < width; ++p) {
    values[static_cast<size_t>(to + p)] += factor * x.Number(from + p);
  }
}

std::vector<double> Logits::Row(int64_t b, int64_t h, int64_t s) const {
  std::vector<double> row;
  for (int64_t t = 0; t < shape_.keys; ++t) {
    const double dot =
        Dot(e_.operand(0), shape_.Q(b, h, s), e_.operand(1), shape_.K(b, h, t), shape_.width);
    row.push_back(
        MaskedLogit(scale_ * dot, mask_, places_.At(b, h, s, t), causal_ && shape_.Hides(s, t)));
  }
  return row;
}

}  // namespace orrery::ir::attention
