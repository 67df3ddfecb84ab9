#ifndef ORRERY_TRANSFORMS_SIMPLIFY_MATCH_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_MATCH_H_

#include <optional>

#include "absl/container/inlined_vector.h"
#include "transforms/pass/rewriter.h"

// Patterns that several fusions look for. Operands of sums and products may come in either order;
// what a pattern consists of is used by nothing else.

namespace orrery::transforms {

/// Whether two numbers are the same constant, one of them perhaps written in half precision.
bool IsNear(double x, double wanted);

/// x and the number that `op`, of two operands, puts beside it on either side. The result has the
/// type of x.
struct ValueAndNumber {
  ir::ValueId value;
  double number = 0;
};
std::optional<ValueAndNumber> MatchNumber(const Rewriter& r, ir::OpId op);

/// The other operand of `op`, of two operands, when one of them is `value`; invalid otherwise.
ir::ValueId OtherOperand(const Rewriter& r, ir::OpId op, ir::ValueId value);

/// A product taken apart: the number `scale` times all factors.
struct Product {
  double scale = 1;
  absl::InlinedVector<ir::ValueId, 4> factors;
};
/// Takes apart what `op` multiplies, through products, quotients by numbers, and small whole
/// powers; a factor that is none of these stands for itself.
Product TakeApart(const Rewriter& r, ir::OpId op);
/// The same for what makes `value`, if that is used once.
Product TakeApart(const Rewriter& r, ir::ValueId value);

/// value / sqrt(square + epsilon), in any of the ways in which it is written.
struct Normalized {
  ir::ValueId value, square;
  double epsilon = 0;
};
std::optional<Normalized> MatchNormalized(const Rewriter& r, ir::OpId op);
/// The same of 1 / sqrt(square + epsilon), which is used `times` times; `value` stays invalid.
std::optional<Normalized> MatchReciprocalRoot(const Rewriter& r, ir::ValueId root, int32_t times);

/// The mean of `value` over all dimensions from `axis` on, which stay with size 1. It is used
/// `times` times.
struct Mean {
  ir::ValueId value;
  size_t axis = 0;
};
std::optional<Mean> MatchMean(const Rewriter& r, ir::ValueId mean, int32_t times = 1);
/// The same of the square of `value`.
std::optional<Mean> MatchMeanSquare(const Rewriter& r, ir::ValueId mean);

/// Whether `value` has a number for each channel of [batch,channels,..]: [channels,1,..] or
/// [1,channels,1,..].
bool IsByChannels(const Rewriter& r, ir::ValueId value, const ir::Dims& channels);

/// Whether an op of that kind gives its operand other dims, and moves nothing: a Reshape, a
/// Squeeze, an Unsqueeze.
bool IsView(ir::OpKind kind);

/// Dimension k of what a Transpose makes is dimension perm[k] of its operand; without the attribute
/// they stand the other way round.
std::vector<int64_t> PermutationOf(const ir::Function& function, ir::OpId op);

/// The dims from `axis` on.
ir::Dims DimsFrom(const ir::Dims& dims, size_t axis);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_MATCH_H_
