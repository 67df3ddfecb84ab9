#include <algorithm>

#include "ir/batch.h"
#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/pass/rewriter.h"

// Transposes and reshapes that only move rows about swap with the products and splits that
// read them, row by row. Behind the product they meet what moves the rows back, and both go.

namespace orrery::transforms {
namespace sink_moves_cc {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Leaves each row, the last dimension, as it is.
bool MovesRows(const Rewriter& r, OpId op) {
  const ValueId x = r.operand(op, 0), y = r.result(op);
  if (r.rank(x) < 2 || r.rank(y) < 2 || r.dims(x).back() != r.dims(y).back()) return false;
  if (r.kind(op) == OpKind::kReshape) return true;
  const std::vector<int64_t> perm = r.attributes(op).Ints("perm");
  return !perm.empty() && perm.back() + 1 == static_cast<int64_t>(perm.size());
}

// The op behind which `value` could be made: used by the op in hand alone.
OpId MatchMove(const Rewriter& r, ValueId value) {
  for (const OpKind kind : {OpKind::kTranspose, OpKind::kReshape}) {
    const OpId op = r.MadeOnlyFor(value, kind);
    if (op.valid() && MovesRows(r, op)) return op;
  }
  return OpId();
}

// `value`, a result of what was made of the rows before the move, moved.
ValueId Move(Rewriter& r, OpId move, ValueId value) {
  AttributeSet attributes = r.attributes(move);
  if (r.kind(move) == OpKind::kReshape) {
    std::vector<int64_t> shape = attributes.Ints("shape");
    shape.back() = r.dims(value).back();
    attributes.Set("shape", shape);
  }
  return r.Op(r.kind(move), {value}, attributes);
}

// Whether as many columns come out as there may be samples, each sample against each: a Reshape
// behind the product would say how many.
bool MayMakeColumnsOfSamples(const Rewriter& r, OpId op) {
  const OpId maker = r.function().producer(r.operand(op, 1));
  const bool known = !maker.valid() || (r.kind(maker) == OpKind::kTranspose &&
                                        !r.function().producer(r.operand(maker, 0)).valid());
  return !known && r.dims(r.result(op)).back() == ir::BatchOf(r.function());
}

bool WorksByRows(const Rewriter& r, OpId op) {
  const AttributeSet& set = r.attributes(op);
  switch (r.kind(op)) {
    case OpKind::kMatMul:
      return set.Int("transpose_x", 0) == 0 && r.rank(r.operand(op, 1)) == 2 &&
             !MayMakeColumnsOfSamples(r, op);
    case OpKind::kLinear:
    case OpKind::kLinearGroup:
      return true;
    case OpKind::kSplit:
      return set.Int("axis", 0) + 1 == static_cast<int64_t>(r.rank(r.operand(op, 0)));
    default:
      return false;
  }
}

void SinkMove(Rewriter& r, OpId op) {
  if (!WorksByRows(r, op)) return;
  const OpId move = MatchMove(r, r.operand(op, 0));
  if (!move.valid()) return;
  std::vector<ValueId> operands(r.function().operands(op).begin(), r.function().operands(op).end());
  operands[0] = r.operand(move, 0);
  AttributeSet attributes = r.attributes(op);
  if (r.kind(op) == OpKind::kSplit) {
    attributes.Set("axis", static_cast<int64_t>(r.rank(operands[0])) - 1);
  }
  const OpId sunk = r.Ops(r.kind(op), operands, attributes);
  for (int32_t i = 0; sunk.valid() && i < r.function().result_count(op); ++i) {
    if (r.uses(r.result(op, i)) == 0) continue;
    const ValueId moved = Move(r, move, r.result(sunk, i));
    if (moved.valid()) r.Replace(r.result(op, i), moved);
  }
}

}  // namespace
}  // namespace sink_moves_cc

extern const PassInfo kSinkMovesPass = {
    .name = "sink-moves",
    .summary = "puts what moves rows about behind the products and splits that read it",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, sink_moves_cc::SinkMove); },
};

}  // namespace orrery::transforms
