#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match.h"

// Ops that change nothing go: those that move no element, sums with 0, products with 1. What
// multiplies by a number becomes Scale, and chains of such ops become one.

namespace orrery::transforms {
namespace remove_identities_cc {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

void Forward(Rewriter& r, OpId op, ValueId value) {
  if (r.function().type_id(value) != r.function().type_id(r.result(op))) return;
  if (r.MayReplace(r.result(op), value)) r.Replace(r.result(op), value);
}

bool IsSorted(const std::vector<int64_t>& perm) { return std::is_sorted(perm.begin(), perm.end()); }

// Moves nothing when no element changes its position: then the dims are the same.
bool MovesNothing(const Rewriter& r, OpId op) {
  const AttributeSet& set = r.attributes(op);
  switch (r.kind(op)) {
    case OpKind::kTranspose:
      return set.Find("perm") != nullptr ? IsSorted(set.Ints("perm")) : r.rank(r.result(op)) < 2;
    case OpKind::kSlice: {
      const std::vector<int64_t> steps = set.Ints("steps");
      return std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
    }
    case OpKind::kConcat:
      return r.operand_count(op) == 1;
    case OpKind::kIdentity:
    case OpKind::kReshape:
    case OpKind::kExpand:
    case OpKind::kSqueeze:
    case OpKind::kUnsqueeze:
    case OpKind::kCast:
    case OpKind::kPad:
    case OpKind::kTile:
    case OpKind::kSplit:
      return true;
    default:
      return false;
  }
}

void Scale(Rewriter& r, OpId op, ValueId value, double factor) {
  if (factor == 1) return Forward(r, op, value);
  if (!std::isfinite(factor)) return;
  if (r.function().type_id(value) != r.function().type_id(r.result(op))) return;
  r.Replace(r.result(op), r.Op(OpKind::kScale, {value}, {{"factor", factor}}));
}

// Dropout that drops nothing, as torchvision's models have it, and whose mask nobody reads.
void Dropout(Rewriter& r, OpId op) {
  const bool drops = r.attributes(op).Number("ratio", 0.5) != 0;
  if (!drops && r.uses(r.result(op, 1)) == 0) Forward(r, op, r.operand(op, 0));
}

// Scale of Scale; of two that are shares of the batch neither says which.
void MergeScales(Rewriter& r, OpId op) {
  const double factor = r.attributes(op).Number("factor", 1);
  if (factor == 1) return Forward(r, op, r.operand(op, 0));
  const OpId inner = r.MadeOnlyFor(r.operand(op, 0), OpKind::kScale);
  if (!inner.valid()) return;
  const int64_t shares =
      r.attributes(op).Int("over_batch", 0) + r.attributes(inner).Int("over_batch", 0);
  if (shares > 1) return;
  ir::AttributeSet both = {{"factor", factor * r.attributes(inner).Number("factor", 1)}};
  if (shares == 1) both.Set("over_batch", int64_t{1});
  r.Replace(r.result(op), r.Op(OpKind::kScale, {r.operand(inner, 0)}, both));
}

// x + 0, x - 0, x times or over a number.
void Arithmetic(Rewriter& r, OpId op) {
  if (!ir::IsFloat(r.type(r.result(op)).dtype)) return;
  const OpKind kind = r.kind(op);
  const std::optional<double> right = r.Number(r.operand(op, 1));
  if (kind == OpKind::kSub || kind == OpKind::kDiv || kind == OpKind::kPow) {
    if (!right.has_value()) return;
    if (kind == OpKind::kDiv && *right != 0) return Scale(r, op, r.operand(op, 0), 1 / *right);
    if (*right == (kind == OpKind::kSub ? 0 : 1)) Forward(r, op, r.operand(op, 0));
    return;
  }
  const auto match = MatchNumber(r, op);
  if (!match.has_value()) return;
  if (kind == OpKind::kMul) return Scale(r, op, match->value, match->number);
  if (match->number == 0) Forward(r, op, match->value);
}

// Powers that have kernels of their own.
void Power(Rewriter& r, OpId op) {
  const std::optional<double> exponent = r.Number(r.operand(op, 1));
  const ValueId x = r.operand(op, 0);
  if (!exponent.has_value() || !ir::IsFloat(r.type(x).dtype)) return;
  if (r.function().type_id(x) != r.function().type_id(r.result(op))) return;
  const auto become = [&](OpKind kind) { r.Replace(r.result(op), r.Op(kind, {x})); };
  if (*exponent == 0.5) return become(OpKind::kSqrt);
  if (*exponent == -0.5) return become(OpKind::kRsqrt);
  if (*exponent == -1) return become(OpKind::kReciprocal);
  Arithmetic(r, op);
}

void MergeTransposes(Rewriter& r, OpId op) {
  const OpId inner = r.MadeOnlyFor(r.operand(op, 0), OpKind::kTranspose);
  if (!inner.valid()) return;
  const std::vector<int64_t> outer_perm = PermutationOf(r.function(), op),
                             inner_perm = PermutationOf(r.function(), inner);
  std::vector<int64_t> perm;
  for (const int64_t d : outer_perm) perm.push_back(inner_perm[static_cast<size_t>(d)]);
  if (IsSorted(perm)) return Forward(r, op, r.operand(inner, 0));
  r.Replace(r.result(op), r.Op(OpKind::kTranspose, {r.operand(inner, 0)}, {{"perm", perm}}));
}

bool SwapsLastTwo(const std::vector<int64_t>& perm) {
  const size_t rank = perm.size();
  if (rank < 2) return false;
  for (size_t d = 0; d < rank; ++d) {
    const size_t from = d + 1 == rank ? rank - 2 : d + 2 == rank ? rank - 1 : d;
    if (perm[d] != static_cast<int64_t>(from)) return false;
  }
  return true;
}

// `value` in the shape `wanted`, in which what it is a view of may be already.
ValueId View(Rewriter& r, ValueId value, const std::vector<int64_t>& wanted) {
  const OpId inner = r.producer(value);
  const ValueId x = inner.valid() && IsView(r.kind(inner)) ? r.operand(inner, 0) : value;
  const ValueId view = r.Op(OpKind::kReshape, {x}, {{"shape", wanted}});
  if (!view.valid()) return view;
  return r.function().type_id(view) == r.function().type_id(x) ? x : view;
}

// A view of transposed matrices: the transpose of a view. Behind it the transpose meets the product
// that reads the matrices, or another one.
bool SinkSwap(Rewriter& r, OpId op) {
  const OpId swap = r.MadeOnlyFor(r.operand(op, 0), OpKind::kTranspose);
  if (!swap.valid() || r.kind(op) != OpKind::kReshape) return false;
  const ir::Dims &from = r.dims(r.operand(op, 0)), &to = r.dims(r.result(op));
  std::vector<int64_t> shape = r.attributes(op).Ints("shape");
  const size_t rank = to.size();
  if (rank < 3 || from.size() < 3 || shape.size() != rank || shape[0] == 0) return false;
  if (!SwapsLastTwo(PermutationOf(r.function(), swap))) return false;
  if (to[rank - 1] != from.back() || to[rank - 2] != from[from.size() - 2]) return false;
  std::swap(shape[rank - 1], shape[rank - 2]);
  const ValueId view = View(r, r.operand(swap, 0), shape);
  if (!view.valid()) return true;
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 1], perm[rank - 2]);
  const ValueId swapped = r.Op(OpKind::kTranspose, {view}, {{"perm", perm}});
  if (swapped.valid()) r.Replace(r.result(op), swapped);
  return true;
}

// Reshape of what only has other dims: of what that is made from. Two that undo each other go.
void MergeViews(Rewriter& r, OpId op) {
  if (SinkSwap(r, op)) return;
  const OpId inner = r.producer(r.operand(op, 0));
  if (!inner.valid() || !IsView(r.kind(inner))) return;
  const ValueId x = r.operand(inner, 0);
  if (r.function().type_id(x) == r.function().type_id(r.result(op))) return Forward(r, op, x);
  if (r.kind(op) != OpKind::kReshape) return;
  r.Replace(r.result(op), r.Op(OpKind::kReshape, {x}, r.attributes(op)));
}

// A product reads either of its operands transposed just as well.
void TakeInTransposes(Rewriter& r, OpId op) {
  std::vector<ValueId> operands(r.function().operands(op).begin(), r.function().operands(op).end());
  AttributeSet attributes = r.attributes(op);
  bool found = false;
  for (size_t i = 0; i < 2; ++i) {
    const OpId transpose = r.MadeBy(operands[i], OpKind::kTranspose);
    const char* flag = i == 0 ? "transpose_x" : "transpose_w";
    if (!transpose.valid() || !SwapsLastTwo(PermutationOf(r.function(), transpose))) continue;
    if (i == 0 && attributes.Int("transpose_x", 0) == 0) continue;  // rows stay rows
    operands[i] = r.operand(transpose, 0);
    attributes.Set(flag, 1 - attributes.Int(flag, 0));
    found = true;
  }
  if (!found) return;
  AttributeSet set;
  for (const char* flag : {"transpose_x", "transpose_w"}) {
    if (attributes.Int(flag, 0) != 0) set.Set(flag, int64_t{1});
  }
  r.Replace(r.result(op), r.Op(OpKind::kMatMul, operands, set));
}

// A row that is known beforehand is a view.
void SliceRow(Rewriter& r, OpId op) {
  const auto index = r.Known(r.operand(op, 1), 1);
  if (!index.has_value() || index->size() != 1 || index->dims().size() > 1) return;
  const int64_t axis = r.attributes(op).Int("axis", 0);
  const int64_t size = r.dims(r.operand(op, 0))[static_cast<size_t>(axis)];
  const int64_t start = index->ints()[0] + (index->ints()[0] < 0 ? size : 0);
  if (start < 0 || start >= size) return;
  using Ints = std::vector<int64_t>;
  ValueId row = r.Op(OpKind::kSlice, {r.operand(op, 0)},
                     {{"axes", Ints{axis}},
                      {"starts", Ints{start}},
                      {"ends", Ints{start + 1}},
                      {"steps", Ints{1}}});
  if (index->dims().empty()) row = r.Op(OpKind::kSqueeze, {row}, {{"axes", Ints{axis}}});
  if (row.valid()) r.Replace(r.result(op), row);
}

// Where a Slice of one dimension, `axis`, begins; nothing for others.
std::optional<int64_t> StartOfSlice(const Rewriter& r, OpId slice, int64_t axis) {
  const AttributeSet& set = r.attributes(slice);
  if (set.Ints("axes") != std::vector<int64_t>{axis}) return std::nullopt;
  if (set.Ints("steps") != std::vector<int64_t>{1}) return std::nullopt;
  return set.Ints("starts")[0];
}

// The back of x before its front: x rolled. Rolled along another dimension too, it is one Roll.
void RollTogether(Rewriter& r, OpId op) {
  if (r.operand_count(op) != 2) return;
  const OpId back = r.MadeBy(r.operand(op, 0), OpKind::kSlice),
             front = r.MadeBy(r.operand(op, 1), OpKind::kSlice);
  if (!back.valid() || !front.valid() || r.operand(back, 0) != r.operand(front, 0)) return;
  ValueId x = r.operand(back, 0);
  const int64_t axis = r.attributes(op).Int("axis", 0);
  const int64_t cut = r.dims(r.operand(op, 1))[static_cast<size_t>(axis)];
  if (r.function().type_id(x) != r.function().type_id(r.result(op))) return;
  if (StartOfSlice(r, back, axis) != cut || StartOfSlice(r, front, axis) != 0) return;
  std::vector<int64_t> axes = {axis}, shifts = {-cut};
  const OpId inner = r.MadeOnlyFor(x, OpKind::kRoll, 2);
  if (inner.valid()) {
    const std::vector<int64_t> others = r.attributes(inner).Ints("axes");
    if (std::find(others.begin(), others.end(), axis) == others.end()) {
      const std::vector<int64_t> by = r.attributes(inner).Ints("shifts");
      axes.insert(axes.begin(), others.begin(), others.end());
      shifts.insert(shifts.begin(), by.begin(), by.end());
      x = r.operand(inner, 0);
    }
  }
  const ValueId rolled = r.Op(OpKind::kRoll, {x}, {{"axes", axes}, {"shifts", shifts}});
  if (rolled.valid()) r.Replace(r.result(op), rolled);
}

void RemoveIdentity(Rewriter& r, OpId op) {
  if (r.kind(op) == OpKind::kDropout) return Dropout(r, op);
  if (r.function().result_count(op) != 1 || r.operand_count(op) == 0) return;
  if (MovesNothing(r, op) && r.dims(r.operand(op, 0)) == r.dims(r.result(op))) {
    Forward(r, op, r.operand(op, 0));
    if (!r.is_alive(op)) return;
  }
  switch (r.kind(op)) {
    case OpKind::kScale:
      return MergeScales(r, op);
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
      return Arithmetic(r, op);
    case OpKind::kPow:
      return Power(r, op);
    case OpKind::kReshape:
    case OpKind::kSqueeze:
    case OpKind::kUnsqueeze:
      return MergeViews(r, op);
    case OpKind::kTranspose:
      return MergeTransposes(r, op);
    case OpKind::kConcat:
      return RollTogether(r, op);
    case OpKind::kGather:
      return SliceRow(r, op);
    case OpKind::kMatMul:
      return TakeInTransposes(r, op);
    default:
      return;
  }
}

}  // namespace
}  // namespace remove_identities_cc

extern const PassInfo kRemoveIdentitiesPass = {
    .name = "remove-identities",
    .summary = "removes ops that change nothing, and makes one op of chains of scales and moves",
    .options = "",
    .run =
        [](ir::Function& function, const PassOptions&) {
          return Rewrite(function, remove_identities_cc::RemoveIdentity);
        },
};

}  // namespace orrery::transforms
