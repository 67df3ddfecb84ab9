#include <limits>

#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/match.h"

// Rotary embedding written out: x cos + rotated(x) sin, where `rotated` negates one half of the
// features and swaps it with the other, or does so pair by pair.

namespace orrery::transforms {
namespace fuse_rotary_cc {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// A part of the last dimension of `x`.
struct Part {
  ValueId x;
  int64_t start = 0, end = 0, step = 1;
};

std::optional<Part> MatchSlice(const Rewriter& r, ValueId value) {
  const OpId op = r.MadeBy(value, OpKind::kSlice);
  if (!op.valid() || r.uses(value) != 1) return std::nullopt;
  const AttributeSet& set = r.attributes(op);
  const std::vector<int64_t> axes = set.Ints("axes"), starts = set.Ints("starts"),
                             ends = set.Ints("ends"), steps = set.Ints("steps");
  const ValueId x = r.operand(op, 0);
  if (axes.size() != 1 || axes[0] + 1 != static_cast<int64_t>(r.rank(x))) return std::nullopt;
  if (starts.size() != 1 || ends.size() != 1) return std::nullopt;
  return Part{.x = x,
              .start = starts[0],
              .end = std::min(ends[0], r.dims(x).back()),
              .step = steps.empty() ? 1 : steps[0]};
}

std::optional<Part> MatchSplit(const Rewriter& r, ValueId value) {
  const OpId op = r.producer(value);
  if (!op.valid() || r.kind(op) != OpKind::kSplit || r.uses(value) != 1) return std::nullopt;
  const ValueId x = r.operand(op, 0);
  if (r.attributes(op).Int("axis", 0) + 1 != static_cast<int64_t>(r.rank(x))) return std::nullopt;
  Part part{.x = x};
  for (int32_t i = 0; r.result(op, i) != value; ++i) part.start += r.dims(r.result(op, i)).back();
  part.end = part.start + r.dims(value).back();
  return part;
}

std::optional<Part> MatchPart(const Rewriter& r, ValueId value) {
  const auto slice = MatchSlice(r, value);
  return slice.has_value() ? slice : MatchSplit(r, value);
}

// Through what adds a last dimension of 1, to stack by.
ValueId Stacked(const Rewriter& r, ValueId value, bool interleaved) {
  if (!interleaved) return value;
  const OpId op = r.producer(value);
  if (!op.valid() || r.uses(value) != 1 || r.dims(value).back() != 1) return ValueId();
  const bool is_view = r.kind(op) == OpKind::kUnsqueeze || r.kind(op) == OpKind::kReshape;
  if (!is_view || r.rank(r.operand(op, 0)) + 1 != r.rank(value)) return ValueId();
  return r.operand(op, 0);
}

// What `value` is rotated from; the layout is "interleaved" when two are stacked.
struct Rotated {
  ValueId x;
  bool interleaved = false;
};

std::optional<Rotated> MatchRotated(const Rewriter& r, ValueId value) {
  const OpId flat = r.MadeOnlyFor(value, OpKind::kReshape);
  const bool interleaved = flat.valid();
  const OpId concat = r.MadeOnlyFor(interleaved ? r.operand(flat, 0) : value, OpKind::kConcat);
  if (!concat.valid() || r.operand_count(concat) != 2) return std::nullopt;
  const auto last = static_cast<int64_t>(r.rank(r.result(concat))) - 1;
  if (r.attributes(concat).Int("axis", 0) != last) return std::nullopt;
  const ValueId negated = Stacked(r, r.operand(concat, 0), interleaved);
  const ValueId second = Stacked(r, r.operand(concat, 1), interleaved);
  if (!negated.valid() || !second.valid()) return std::nullopt;
  OpId neg = r.MadeOnlyFor(negated, OpKind::kNeg);
  if (!neg.valid()) neg = r.MadeOnlyFor(negated, OpKind::kScale);
  if (!neg.valid() || r.attributes(neg).Number("factor", -1) != -1) return std::nullopt;
  const auto high = MatchPart(r, r.operand(neg, 0)), low = MatchPart(r, second);
  if (!high.has_value() || !low.has_value() || high->x != low->x) return std::nullopt;
  const int64_t d = r.dims(low->x).back();
  if (d % 2 != 0 || r.dims(low->x) != r.dims(value)) return std::nullopt;
  const bool fits = interleaved ? low->start == 0 && low->step == 2 && low->end >= d - 1 &&
                                      high->start == 1 && high->step == 2 && high->end >= d
                                : low->start == 0 && low->step == 1 && low->end == d / 2 &&
                                      high->start == d / 2 && high->step == 1 && high->end == d;
  if (!fits) return std::nullopt;
  return Rotated{.x = low->x, .interleaved = interleaved};
}

// x cos with that x; the table is the other operand.
ValueId TableBeside(const Rewriter& r, ValueId product, ValueId x) {
  const OpId op = r.MadeOnlyFor(product, OpKind::kMul);
  const ValueId table = op.valid() ? OtherOperand(r, op, x) : ValueId();
  if (!table.valid() || r.rank(table) == 0 || r.dims(table).back() != r.dims(x).back()) {
    return ValueId();
  }
  return r.dims(product) == r.dims(x) ? table : ValueId();
}

bool FuseSum(Rewriter& r, OpId add, size_t i) {
  const OpId turned = r.MadeOnlyFor(r.operand(add, i), OpKind::kMul);
  if (!turned.valid()) return false;
  for (size_t j = 0; j < 2; ++j) {
    const auto rotated = MatchRotated(r, r.operand(turned, j));
    if (!rotated.has_value()) continue;
    const ValueId sin = r.operand(turned, 1 - j);
    const ValueId cos = TableBeside(r, r.operand(add, 1 - i), rotated->x);
    if (!cos.valid() || r.dims(cos) != r.dims(sin)) return false;
    const ValueId operands[] = {rotated->x, cos, sin};
    const AttributeSet layout = {
        {"layout", std::string(rotated->interleaved ? "interleaved" : "half")}};
    r.Replace(r.result(add), r.Op(OpKind::kRotary, operands, layout));
    return true;
  }
  return false;
}

void FuseRotary(Rewriter& r, OpId op) {
  if (r.kind(op) != OpKind::kAdd || r.rank(r.result(op)) < 3) return;
  for (size_t i = 0; i < 2; ++i) {
    if (FuseSum(r, op, i)) return;
  }
}

}  // namespace
}  // namespace fuse_rotary_cc

extern const PassInfo kFuseRotaryPass = {
    .name = "fuse-rotary",
    .summary = "makes one Rotary of x cos + rotated(x) sin",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, fuse_rotary_cc::FuseRotary); },
    .idempotent = true,
};

}  // namespace orrery::transforms
