#ifndef ORRERY_IR_OPS_MOVEMENT_H_
#define ORRERY_IR_OPS_MOVEMENT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/ops/kernels.h"
#include "ir/tensor.h"
#include "support/status.h"

// What the ops that move elements share. An op that works along some dimensions lists these in its
// attribute `axes`, none negative, and numbers for each of them in lists beside it; dimensions that
// it leaves alone, the batch above all, stand in no attribute.

namespace orrery::ir {

/// An end, or a start from the far end, that follows the size of the dimension.
inline constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
/// A dimension that no tensor has; larger products stop here.
inline constexpr int64_t kTooLarge = int64_t{1} << 61;

/// a·b and a+b for sizes of at least 0; kTooLarge when they are larger.
int64_t SizeProduct(int64_t a, int64_t b);
int64_t SizeSum(int64_t a, int64_t b);
/// ElementCount of dims that nobody has checked.
int64_t CheckedCount(const std::vector<int64_t>& dims);

/// Bytes of an op that reads from operand 0 only what its indices, operand 1, name.
int64_t GatheredBytes(const OpTypes& op, const TypeList& results);

/// Ok when the attribute `axes` names dimensions of `rank`, each once.
absl::Status CheckAxes(const std::vector<int64_t>& axes, size_t rank);
/// The same for the attribute `axis`.
absl::Status CheckAxis(const AttributeSet& attributes, size_t rank);
/// Ok when each list of the attributes that are named is as long as `axes`, and no entry is below
/// `least`.
absl::Status CheckLists(const AttributeSet& attributes,
                        std::initializer_list<absl::string_view> names, int64_t least);
/// The position of dimension `dim` in `axes`; nothing for one that is left alone.
std::optional<size_t> PositionOf(const std::vector<int64_t>& axes, size_t dim);

/// Appends a result of the dtype of operand `like`.
absl::Status AddResult(const OpTypes& op, Dims dims, TypeList& results, size_t like = 0);

/// Rule of an op of one operand and results of its rank: all dimensions may be split but those
/// that `whole` lists.
ShardingRule SplitOtherDims(const OpTypes& op, const TypeList& results,
                            const std::vector<int64_t>& whole);
/// The same with what the attributes `axes` or `axis` list.
ShardingRule SplitUntouchedDims(const OpTypes& op, const TypeList& results);

/// Ok when `ids` can be indices: i32 or i64.
absl::Status CheckIndices(const TensorType& ids);
/// Element i of an operand of indices into a dimension of `size`, counted from the end when
/// negative; an error when there is no such position.
absl::StatusOr<int64_t> IndexAt(const Tensor& indices, int64_t i, int64_t size);

/// Which positions of a dimension a rank holds: from `first` on, of `whole`.
struct HeldPositions {
  int64_t first = 0, whole = 0;
};
/// The same index into the whole dimension, counted from where what is held begins: below 0 or past
/// its end where another rank holds the position.
absl::StatusOr<int64_t> HeldIndexAt(const Tensor& indices, int64_t i, const HeldPositions& held);

/// Adds element `from` of `other` to element `to` of `sum`; whole numbers wrap around.
void AddElement(Tensor& sum, int64_t to, const Tensor& other, int64_t from);

/// One floating-point operation an element of the last operand, or of the first.
double OneFlopALastElement(const OpTypes& op, const TypeList& results);
double OneFlopAFirstElement(const OpTypes& op, const TypeList& results);

/// Sets the gradient of operand i to an op on that of result 0.
absl::Status SetGradientOp(GradientContext& c, int i, OpKind kind, const AttributeSet& attributes);

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_MOVEMENT_H_
