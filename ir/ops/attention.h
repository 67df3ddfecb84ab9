#ifndef ORRERY_IR_OPS_ATTENTION_H_
#define ORRERY_IR_OPS_ATTENTION_H_

#include <limits>
#include <vector>

#include "ir/op_info.h"
#include "ir/ops/kernels.h"

// What Attention, its gradient and MaskedSoftmax share: the shapes of attention in its two layouts,
// and what a mask does to a logit.

namespace orrery::ir::attention {

/// The logit of what is hidden. A row of which all is hidden attends to everything alike, as with
/// the finite masks of most exports.
inline constexpr double kHiddenLogit = std::numeric_limits<float>::lowest();

/// A scaled logit after a mask: one of bools hides where it is false, one of floats is added. Null:
/// no mask. `hidden`: hidden anyhow, by causality.
inline double MaskedLogit(double logit, const Tensor* mask, int64_t at, bool hidden) {
  if (hidden) return kHiddenLogit;
  if (mask == nullptr) return logit;
  if (!mask->is_float()) return mask->Number(at) != 0 ? logit : kHiddenLogit;
  return std::max(logit + mask->Number(at), kHiddenLogit);
}

/// An error unless `mask`, of bools or of `dtype`, broadcasts to `logits`.
absl::Status CheckMask(const OpTypes& op, const TensorType& mask, DType dtype, const Dims& logits);

/// The shape of one attention: q [batch,queries,heads width], k and v alike but with `keys` rows
/// and `kv_heads` heads; or not packed: q [batch,heads,queries,width]. The keys that a cache holds
/// are not packed where q may be.
///
/// It may be the part of one rank. Then rows and heads have positions in the whole, too: a rank may
/// have some heads of q and all of k, and rows of q in the middle.
///
/// Ring attention (Liu et al. 2023): all rows fall into parts of `ring_rows`, and k and v have gone
/// round by `turn` parts. Queries of part j see part j of the keys given, which was part j - turn.
///
/// So many fields: sizes and positions of five tensors.
struct AttentionShape {
  bool packed = true;     // q and y
  bool kv_packed = true;  // k and v
  int64_t batch = 1, queries = 1, keys = 1, heads = 1, kv_heads = 1;
  int64_t width = 1, value_width = 1;  // of one head of q and k, and of v
  int64_t group = 1;                   // heads of q that share one of k
  int64_t first_head = 0, first_kv_head = 0, first_query = 0, first_key = 0;  // in the whole
  int64_t first_batch = 0;
  int64_t all_heads = 1, all_queries = 1, all_keys = 1;  // of the whole
  int64_t ring_rows = 0, turn = 0;                       // 0: no ring

  struct Range {
    int64_t begin, end;
  };

  Dims logits() const { return {batch, heads, queries, keys}; }
  /// The head of k and v that head `h` of q reads.
  int64_t KvHead(int64_t h) const { return (first_head + h) / group - first_kv_head; }
  /// Where the row of one head begins in q, k, v and y.
  int64_t Q(int64_t b, int64_t h, int64_t row) const { return QueryRow(b, h, row) * width; }
  int64_t K(int64_t b, int64_t h, int64_t row) const { return KeyRow(b, KvHead(h), row) * width; }
  int64_t V(int64_t b, int64_t h, int64_t row) const {
    return KeyRow(b, KvHead(h), row) * value_width;
  }
  int64_t Y(int64_t b, int64_t h, int64_t row) const { return QueryRow(b, h, row) * value_width; }
  /// Where the row of one query begins in the logits.
  int64_t Logits(int64_t b, int64_t h, int64_t row) const {
    return ((b * heads + h) * queries + row) * keys;
  }
  int64_t Statistic(int64_t b, int64_t h, int64_t row) const {
    return (b * heads + h) * queries + row;
  }
  /// The keys that query `s` meets: all, or those of its part of the ring.
  Range KeysOf(int64_t s) const {
    if (ring_rows == 0) return {0, keys};
    const int64_t begin = (first_query + s) / ring_rows * ring_rows - first_key;
    return {begin, begin + ring_rows};
  }
  /// Whether causality hides key `t` from query `s`: the last query sees all keys.
  bool Hides(int64_t s, int64_t t) const {
    return OriginalKey(first_key + t) > first_query + s + all_keys - all_queries;
  }

 private:
  int64_t OriginalKey(int64_t t) const {
    const int64_t home = t - turn * ring_rows;
    return home < 0 ? home + all_keys : home;
  }
  int64_t QueryRow(int64_t b, int64_t h, int64_t row) const {
    return packed ? (b * queries + row) * heads + h : (b * heads + h) * queries + row;
  }
  int64_t KeyRow(int64_t b, int64_t h, int64_t row) const {
    return kv_packed ? (b * keys + row) * kv_heads + h : (b * kv_heads + h) * keys + row;
  }
};

/// The shape that q, k and v have when q has `heads` heads, whole or the part of one rank; an error
/// that says what does not fit.
absl::StatusOr<AttentionShape> ShapeOfAttention(const Dims& q, const Dims& k, const Dims& v,
                                                int64_t heads);

/// Positions in a mask by the position of a logit. Its batch may go several times into that of q:
/// windows share their masks.
class MaskPositions {
 public:
  MaskPositions(const Tensor* mask, const AttentionShape& shape);
  int64_t At(int64_t b, int64_t h, int64_t s, int64_t t) const {
    return b % batch_ * strides_[0] + h * strides_[1] + s * strides_[2] + t * strides_[3];
  }

 private:
  int64_t batch_ = 1;
  Dims strides_;
};

// Of one application of Attention or AttentionGrad, whose first operands are q, k and v.

/// Probabilities are zero with this probability, the others scaled so that the mean stays.
inline double DropoutRatio(const AttributeSet& attributes) {
  return attributes.Number("dropout", 0);
}

inline bool IsCausal(const AttributeSet& attributes) { return attributes.Int("causal", 0) != 0; }
inline bool IsFlash(const AttributeSet& attributes) { return attributes.Int("flash", 0) != 0; }
/// Whether what dropout has done to the probabilities is kept for backward: which of them stayed,
/// and what they became. With flash=1 that is computed again.
inline bool KeepsDropout(const AttributeSet& attributes) {
  return DropoutRatio(attributes) > 0 && !IsFlash(attributes);
}
/// Rows of a part of a ring; 0 without a ring.
inline int64_t RingRows(const AttributeSet& attributes) { return attributes.Int("ring_rows", 0); }

/// The shape that operands and attributes agree on.
absl::StatusOr<AttentionShape> GlobalShape(const OpTypes& op);
absl::Status CheckMaskOf(const OpTypes& op, const TensorType& mask, const AttentionShape& shape);
absl::Status CheckElementTypes(const OpTypes& op);
/// The type of the statistics: probabilities, or a logarithm a row in at least f32.
TensorType StatisticsOf(const OpTypes& op, const AttentionShape& shape);
/// What KeepsDropout speaks of: bools, and probabilities after dropout.
TensorType StayedOf(const AttentionShape& shape);
TensorType DroppedOf(const OpTypes& op, const AttentionShape& shape);
TensorType ResultOf(const OpTypes& op, const AttentionShape& shape);

/// Queries times the keys that each meets times the widths of q and of v: half the flops of the two
/// products.
struct Products {
  double of_q, of_v;
};
Products ProductsOf(const OpTypes& op, const TensorType& y);

/// Bytes of k and v that no head of q reads: a rank may have some heads of q and all of k and v.
/// Operand `statistics` or a result tells how many heads of q there are.
int64_t UnreadBytes(const OpTypes& op, const TensorType& statistics);

/// What may be split: heads only where whole heads of q and of k fall to each rank, rows of q, and
/// of k only by whole parts of a ring. Grouped heads of k and v may stay whole, since several ranks
/// may read one of them.
struct Split {
  bool packed, kv_packed, heads, kv_heads, queries, keys;

  /// Factors of q and y, or of k and v.
  ShardingRule::Factors Of(bool of_queries) const;
  ShardingRule::Factors OfStatistics(size_t rank) const;
};
Split SplitOf(const OpTypes& op, const AttentionShape& shape);
/// ShardingRule::whole_too of k and v.
uint32_t WholeToo(const AttentionShape& shape, const Split& split);

/// A mask of a few windows is whole; then the batch is split only so that whole sets of windows
/// fall to each rank.
ShardingRule::Factors FactorsOfMask(const TensorType& mask, const AttentionShape& shape,
                                    const Split& split);
void KeepWindowsTogether(const OpTypes& op, const TensorType& mask, const AttentionShape& shape,
                         ShardingRule& rule);

// Evaluation, on what one rank holds.

/// The shape of the part of one rank, and its position: its statistics have a row for each of its
/// heads.
absl::StatusOr<AttentionShape> LocalShape(const Evaluation& e, const Tensor& statistics);

/// The inner product of `width` elements of x from i on and of y from j on.
double Dot(const Tensor& x, int64_t i, const Tensor& y, int64_t j, int64_t width);
/// y[to..] += factor x[from..]
void AddRow(Tensor& y, int64_t to, double factor, const Tensor& x, int64_t from, int64_t width);

template <typename F>
void ForEachQuery(const AttentionShape& shape, F f) {
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      for (int64_t s = 0; s < shape.queries; ++s) f(b, h, s);
    }
  }
}

/// What dropout multiplies the probability of a position by. A position of the whole has the same
/// in every part of it.
class DropoutFactors {
 public:
  DropoutFactors(const Evaluation& e, const AttentionShape& shape)
      : shape_(shape), ratio_(DropoutRatio(e.attributes)), seed_(e.attributes.Int("seed", 0)) {}

  double At(int64_t b, int64_t h, int64_t s, int64_t t) const;

 private:
  const AttentionShape& shape_;
  double ratio_;
  int64_t seed_;
};

/// Rows of logits, scaled and masked.
class Logits {
 public:
  Logits(const Evaluation& e, const Tensor* mask, const AttentionShape& shape)
      : e_(e),
        mask_(mask),
        shape_(shape),
        positions_(mask, shape),
        scale_(e.attributes.Number("scale", 1)),
        causal_(IsCausal(e.attributes)) {}

  /// Of the keys of KeysOf(s).
  std::vector<double> Row(int64_t b, int64_t h, int64_t s) const;
  const MaskPositions& positions() const { return positions_; }

 private:
  const Evaluation& e_;
  const Tensor* mask_;
  const AttentionShape& shape_;
  MaskPositions positions_;
  double scale_;
  bool causal_;
};

}  // namespace orrery::ir::attention

#endif  // ORRERY_IR_OPS_ATTENTION_H_
