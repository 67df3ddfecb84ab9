#include <algorithm>

#include "ir/op_info.h"
#include "ir/ops/attention.h"
#include "ir/ops/chance.h"
#include "ir/ops/checks.h"
#include "support/status.h"

// The shapes of attention and of its masks, and how they may be split.

namespace orrery::ir::attention {
namespace attention_shape_cc {
namespace {

// Factors.
constexpr int8_t kFactorBatch = 0;
constexpr int8_t kFactorHeads = 1;
constexpr int8_t kFactorQueries = 2;

// What a ring wants, on whole shapes.
absl::Status CheckRing(const OpTypes& op, AttentionShape& shape) {
  if (op.attributes.Find("ring_rows") == nullptr) return absl::OkStatus();
  const int64_t rows = RingRows(op.attributes), turn = op.attributes.Int("turn", 0);
  const bool parts = rows > 0 && shape.queries == shape.keys && shape.keys % rows == 0;
  if (!parts || turn < 0 || turn >= std::max<int64_t>(shape.keys / rows, 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("q and k have ", shape.queries, " and ", shape.keys,
                     " rows with ring_rows=", rows, " and turn=", turn,
                     "; wanted as many rows of both, in whole parts, and a turn below their "
                     "number"));
  }
  if (!IsFlash(op.attributes) || op.operands.size() % 3 != 0 || DropoutRatio(op.attributes) > 0) {
    return absl::InvalidArgumentError("attention in a ring wants flash=1, no mask and no dropout");
  }
  shape.ring_rows = rows;
  shape.turn = turn;
  return absl::OkStatus();
}

}  // namespace
}  // namespace attention_shape_cc

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
  if (shape.kv_heads < 1) return trouble();
  if (kv_packed && v[2] % shape.kv_heads != 0) return trouble();
  shape.value_width = kv_packed ? v[2] / shape.kv_heads : v[3];
  const bool fits = k[0] == q[0] && v[0] == q[0] && v[kv_rows] == k[kv_rows] &&
                    (kv_packed || (k[3] == shape.width && v[1] == shape.kv_heads));
  if (!fits) return trouble();
  shape.all_queries = shape.queries;
  shape.all_keys = shape.keys;
  return shape;
}

MaskPositions::MaskPositions(const Tensor* mask, const AttentionShape& shape) : strides_(4, 0) {
  if (mask == nullptr) return;
  Dims dims = shape.logits();
  if (mask->dims().size() == 4) {
    batch_ = std::max<int64_t>(mask->dims()[0], 1);
    dims[0] = batch_;
  }
  strides_ = BroadcastStrides(mask->dims(), dims);
}

absl::StatusOr<AttentionShape> GlobalShape(const OpTypes& op) {
  ORRERY_ASSIGN_OR_RETURN(AttentionShape shape,
                          ShapeOfAttention(op.operands[0]->dims, op.operands[1]->dims,
                                           op.operands[2]->dims, op.attributes.Int("heads", 0)));
  const int64_t kv_heads = op.attributes.Int("kv_heads", shape.heads);
  if (kv_heads != shape.kv_heads || shape.heads % kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("k has ", shape.kv_heads, " heads of width ",
                                                   shape.width, "; wanted kv_heads=", kv_heads,
                                                   ", which go into heads=", shape.heads));
  }
  shape.group = shape.heads / shape.kv_heads;
  if (const double ratio = DropoutRatio(op.attributes); ratio < 0 || ratio >= 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("dropout=", ratio, "; wanted at least 0 and less than 1"));
  }
  ORRERY_RETURN_IF_ERROR(attention_shape_cc::CheckRing(op, shape));
  return shape;
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

TensorType StayedOf(const AttentionShape& shape) {
  return {.dtype = DType::kBool, .dims = shape.logits(), .sharding = {}};
}

TensorType DroppedOf(const OpTypes& op, const AttentionShape& shape) {
  return {.dtype = op.operands[0]->dtype, .dims = shape.logits(), .sharding = {}};
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
  const int64_t ring_rows = RingRows(op.attributes);
  const auto keys = static_cast<double>(ring_rows > 0 ? ring_rows : k[k.size() - 2]);
  return {.of_q = static_cast<double>(ElementCount(op.operands[0]->dims)) * keys,
          .of_v = static_cast<double>(ElementCount(y.dims)) * keys};
}

// From the shapes of one rank; the attributes count the heads of the whole. Heads of q that are not
// at the boundary of a group may reach into one more of k.
int64_t UnreadBytes(const OpTypes& op, const TensorType& statistics) {
  const int64_t all = op.attributes.Int("heads", 1);
  const int64_t group = std::max<int64_t>(all / op.attributes.Int("kv_heads", all), 1);
  const Dims &q = op.operands[0]->dims, &k = op.operands[1]->dims;
  const int64_t heads = std::max<int64_t>(statistics.dims[1], 1);
  const int64_t width = std::max<int64_t>(q.size() == 3 ? q[2] / heads : q[3], 1);
  const int64_t held = k.size() == 3 ? k[2] / width : k[1];
  const bool aligned = heads % group == 0 || group % heads == 0;
  const int64_t read = (heads + group - 1) / group + (aligned ? 0 : 1);
  if (read >= held) return 0;
  return (SizeOf(*op.operands[1]) + SizeOf(*op.operands[2])).count() / held * (held - read);
}

ShardingRule::Factors Split::Of(bool of_queries) const {
  const int8_t h = (of_queries ? heads : kv_heads) ? attention_shape_cc::kFactorHeads : kNoFactor;
  const int8_t rows =
      (of_queries ? queries : keys) ? attention_shape_cc::kFactorQueries : kNoFactor;
  if (of_queries ? packed : kv_packed) return {attention_shape_cc::kFactorBatch, rows, h};
  return {attention_shape_cc::kFactorBatch, h, rows, kNoFactor};
}

ShardingRule::Factors Split::OfStatistics(size_t rank) const {
  ShardingRule::Factors factors(rank, kNoFactor);
  const ShardingRule::Factors first = {attention_shape_cc::kFactorBatch,
                                       heads ? attention_shape_cc::kFactorHeads : kNoFactor,
                                       queries ? attention_shape_cc::kFactorQueries : kNoFactor};
  std::copy_n(first.begin(), std::min<size_t>(rank, 3), factors.begin());
  return factors;
}

Split SplitOf(const OpTypes& op, const AttentionShape& shape) {
  const auto parts = [&](size_t i, size_t dim) {
    return op.mesh.size(op.operands[i]->sharding.at(dim));
  };
  const size_t of_heads = shape.packed ? 2 : 1, of_kv_heads = shape.kv_packed ? 2 : 1;
  const int64_t heads = parts(0, of_heads), k = parts(1, of_kv_heads), v = parts(2, of_kv_heads);
  const bool only_q = heads > 1 && k == 1 && v == 1;
  const bool whole =
      shape.kv_heads % heads == 0 && shape.kv_heads % k == 0 && shape.kv_heads % v == 0;
  // Parts of a ring stay whole.
  const bool ring = shape.ring_rows > 0;
  const bool rows = !ring || shape.keys / shape.ring_rows % parts(0, shape.packed ? 1 : 2) == 0;
  return {.packed = shape.packed,
          .kv_packed = shape.kv_packed,
          .heads = only_q ? shape.heads % heads == 0 : whole,
          .kv_heads = whole && !only_q,
          .queries = rows,
          .keys = rows && ring};
}

// Where each head of q has one of k for itself, nothing is read by two.
uint32_t WholeToo(const AttentionShape& shape, const Split& split) {
  return split.kv_heads && shape.group > 1 ? 0b110 : 0;
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
    std::replace(factors.begin(), factors.end(), attention_shape_cc::kFactorBatch, kNoFactor);
  };
  for (ShardingRule::Factors& factors : rule.operands) make_whole(factors);
  for (ShardingRule::Factors& factors : rule.results) make_whole(factors);
}

absl::StatusOr<AttentionShape> LocalShape(const Evaluation& e, const Tensor& statistics) {
  ORRERY_ASSIGN_OR_RETURN(AttentionShape shape,
                          ShapeOfAttention(e.operand(0).dims(), e.operand(1).dims(),
                                           e.operand(2).dims(), statistics.dims()[1]));
  const size_t rows = shape.packed ? 1 : 2, kv_rows = shape.kv_packed ? 1 : 2;
  const int64_t heads = e.attributes.Int("heads", shape.heads);
  shape.group = heads / e.attributes.Int("kv_heads", heads);
  shape.first_head = shape.packed ? e.OperandFirst(0, 2) / shape.width : e.OperandFirst(0, 1);
  shape.first_kv_head = shape.kv_packed ? e.OperandFirst(1, 2) / shape.width : e.OperandFirst(1, 1);
  shape.first_batch = e.OperandFirst(0, 0);
  shape.all_heads = heads;
  shape.first_query = e.OperandFirst(0, rows);
  shape.first_key = e.OperandFirst(1, kv_rows);
  shape.all_queries = e.OperandWhole(0, rows);
  shape.all_keys = e.OperandWhole(1, kv_rows);
  shape.ring_rows = RingRows(e.attributes);
  shape.turn = e.attributes.Int("turn", 0);
  return shape;
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

double DropoutFactors::At(int64_t b, int64_t h, int64_t s, int64_t t) const {
  if (ratio_ == 0) return 1;
  const int64_t head = (shape_.first_batch + b) * shape_.all_heads + shape_.first_head + h;
  const int64_t row = head * shape_.all_queries + shape_.first_query + s;
  const int64_t position = row * shape_.all_keys + shape_.first_key + t;
  return Chance(seed_, position) < ratio_ ? 0 : 1 / (1 - ratio_);
}

std::vector<double> Logits::Row(int64_t b, int64_t h, int64_t s) const {
  std::vector<double> row;
  const auto [begin, end] = shape_.KeysOf(s);
  for (int64_t t = begin; t < end; ++t) {
    const double dot =
        Dot(e_.operand(0), shape_.Q(b, h, s), e_.operand(1), shape_.K(b, h, t), shape_.width);
    row.push_back(
        MaskedLogit(scale_ * dot, mask_, positions_.At(b, h, s, t), causal_ && shape_.Hides(s, t)));
  }
  return row;
}

}  // namespace orrery::ir::attention
