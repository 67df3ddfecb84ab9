#include <algorithm>

#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/pass/rewriter.h"
#include "transforms/simplify/heads.h"

// Attention by heads, [batch,heads,rows,width], whose operands were transposed to that from rows of
// [heads width]: it reads and writes those rows as they are, and the transposes go. New keys and
// values that are appended to a cache stay rows too.

namespace orrery::transforms {
namespace pack_attention_cc {
namespace {

using ir::AttributeSet;
using ir::Dims;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool IsTransposedBy(const Rewriter& r, OpId op, const std::vector<int64_t>& perm) {
  return op.valid() && r.kind(op) == OpKind::kTranspose && r.attributes(op).Ints("perm") == perm;
}

// `value` [b,s,..] as [b,s,width]; the view that it is made by, if any, need not be.
ValueId AsRows(Rewriter& r, ValueId value, int64_t width) {
  const Dims rows = {r.dims(value)[0], r.dims(value)[1], width};
  const OpId view = r.producer(value);
  if (view.valid() && r.kind(view) == OpKind::kReshape && r.dims(r.operand(view, 0)) == rows) {
    return r.operand(view, 0);
  }
  return r.Op(OpKind::kReshape, {value}, {{"shape", std::vector<int64_t>{-1, rows[1], width}}});
}

// Part `index` of the first dimension, of size `parts`, of `whole`.
struct PartOf {
  ValueId whole;
  int64_t index = 0, parts = 1;
};

std::optional<PartOf> MatchPart(const Rewriter& r, ValueId value) {
  const OpId squeeze = r.producer(value);
  const bool is_view = squeeze.valid() &&
                       (r.kind(squeeze) == OpKind::kSqueeze || r.kind(squeeze) == OpKind::kReshape);
  if (!is_view || r.rank(r.operand(squeeze, 0)) != r.rank(value) + 1) return std::nullopt;
  const ValueId part = r.operand(squeeze, 0);
  const OpId op = r.producer(part);
  if (!op.valid() || r.dims(part)[0] != 1 || r.operand_count(op) != 1) return std::nullopt;
  PartOf match{.whole = r.operand(op, 0), .index = 0, .parts = r.dims(r.operand(op, 0))[0]};
  if (r.kind(op) == OpKind::kSlice) {
    if (r.attributes(op).Ints("axes") != std::vector<int64_t>{0}) return std::nullopt;
    const std::vector<int64_t> starts = r.attributes(op).Ints("starts");
    if (starts.size() != 1) return std::nullopt;
    match.index = starts[0];
    return match;
  }
  if (r.kind(op) != OpKind::kSplit || r.attributes(op).Int("axis", 0) != 0) return std::nullopt;
  for (int32_t i = 0; r.result(op, i) != part; ++i) match.index += r.dims(r.result(op, i))[0];
  return match;
}

// One of several tensors that were made by one product, [b,s,parts,heads,d], and transposed
// together.
struct PackedPart {
  ValueId rows;
  int64_t index = 0, parts = 1;
};

std::optional<PackedPart> MatchPackedPart(const Rewriter& r, ValueId value) {
  const auto part = MatchPart(r, value);
  if (!part.has_value() || r.rank(value) != 4) return std::nullopt;
  const OpId transpose = r.producer(part->whole);
  if (!IsTransposedBy(r, transpose, {2, 0, 3, 1, 4})) return std::nullopt;
  return PackedPart{.rows = r.operand(transpose, 0), .index = part->index, .parts = part->parts};
}

// A table of angles [..,1,s,d] against heads as one against rows: without the dimension of heads.
bool IsTableOfRows(const Rewriter& r, ValueId table) {
  const Dims& dims = r.dims(table);
  if (dims.size() == 4) return dims[1] == 1;
  return dims.size() == 2 || (dims.size() == 3 && dims[0] == 1);
}

ValueId TableOfRows(Rewriter& r, ValueId table) {
  if (r.rank(table) != 4) return table;
  return r.Op(OpKind::kSqueeze, {table}, {{"axes", std::vector<int64_t>{1}}});
}

OpId RotaryOf(const Rewriter& r, ValueId value) {
  const OpId rotary = r.MadeOnlyFor(value, OpKind::kRotary);
  if (!rotary.valid()) return OpId();
  return IsTableOfRows(r, r.operand(rotary, 1)) ? rotary : OpId();
}

// Whether `value`, by heads, is at hand as rows.
bool IsPackable(const Rewriter& r, ValueId value) {
  if (r.rank(value) != 4) return false;
  if (const OpId rotary = RotaryOf(r, value); rotary.valid()) {
    return IsPackable(r, r.operand(rotary, 0));
  }
  return IsTransposedBy(r, r.producer(value), {0, 2, 1, 3}) ||
         MatchPackedPart(r, value).has_value();
}

ValueId Pack(Rewriter& r, ValueId value) {
  const int64_t width = r.dims(value)[1] * r.dims(value)[3];
  if (const OpId rotary = RotaryOf(r, value); rotary.valid()) {
    const ValueId x = Pack(r, r.operand(rotary, 0));
    const ValueId cos = TableOfRows(r, r.operand(rotary, 1));
    const ValueId sin = TableOfRows(r, r.operand(rotary, 2));
    return r.Op(OpKind::kRotary, {x, cos, sin}, r.attributes(rotary));
  }
  if (const auto part = MatchPackedPart(r, value); part.has_value()) {
    const auto parts = static_cast<size_t>(part->parts);
    const ValueId rows[] = {AsRows(r, part->rows, part->parts * width)};
    const OpId split = r.Ops(OpKind::kSplit, rows,
                             {{"axis", int64_t{2}}, {"sizes", std::vector<int64_t>(parts, width)}});
    return split.valid() ? r.result(split, static_cast<int32_t>(part->index)) : ValueId();
  }
  return AsRows(r, r.operand(r.producer(value), 0), width);
}

// Matrices [batch heads,rows,width], seen as attention of one head or of several, that were made of
// rows [batch,rows,heads width] with batch and rows changed over: as frameworks do whose batch
// comes second. Invalid when `value` is no such thing.
ValueId RowsOfMatrices(const Rewriter& r, ValueId value) {
  OpId seen_by = r.MadeOnlyFor(value, OpKind::kUnsqueeze);
  if (!seen_by.valid()) seen_by = r.MadeOnlyFor(value, OpKind::kReshape);
  if (!seen_by.valid() || r.rank(value) != 4) return ValueId();
  const OpId inner = r.producer(r.operand(seen_by, 0));
  if (!IsTransposedBy(r, inner, {1, 0, 2})) return ValueId();
  const Dims& matrices = r.dims(r.result(inner));
  if (matrices[1] != r.dims(value)[2] || matrices[2] != r.dims(value)[3]) return ValueId();
  const OpId view = r.producer(r.operand(inner, 0));
  if (!view.valid() || r.kind(view) != OpKind::kReshape) return ValueId();
  const OpId outer = r.producer(r.operand(view, 0));
  if (!IsTransposedBy(r, outer, {1, 0, 2})) return ValueId();
  const Dims &rows = r.dims(r.operand(outer, 0)), &seen = r.dims(r.result(view));
  if (rows.size() != 3 || seen.size() != 3 || seen[0] != rows[1]) return ValueId();
  return rows[2] % seen[2] == 0 ? r.operand(outer, 0) : ValueId();
}

// The Attention whose result `value` is the matrices of.
OpId AttentionOfMatrices(const Rewriter& r, ValueId value) {
  OpId seen_by = r.MadeOnlyFor(value, OpKind::kSqueeze);
  if (!seen_by.valid()) seen_by = r.MadeOnlyFor(value, OpKind::kReshape);
  const OpId attention =
      seen_by.valid() ? r.MadeOnlyFor(r.operand(seen_by, 0), OpKind::kAttention) : OpId();
  if (!attention.valid() || r.uses(r.result(attention, 1)) != 0) return OpId();
  const Dims &y = r.dims(r.result(attention)), &matrices = r.dims(value);
  const bool fits =
      y.size() == 4 && matrices.size() == 3 && y[2] == matrices[1] && y[3] == matrices[2];
  return fits ? attention : OpId();
}

// Whether `mask` is one of matrices, [batch heads,1,s,t], and not one for all.
bool IsOfMatrices(const Rewriter& r, ValueId mask) {
  const Dims& dims = r.dims(mask);
  return dims.size() == 4 && dims[0] != 1 && dims[1] == 1;
}

// Attention of matrices, changed over and reshaped to [rows,batch,..] again.
void PackMatrices(Rewriter& r, OpId op) {
  const OpId transpose = r.MadeOnlyFor(r.operand(op, 0), OpKind::kTranspose);
  if (!IsTransposedBy(r, transpose, {1, 0, 2})) return;
  const OpId attention = AttentionOfMatrices(r, r.operand(transpose, 0));
  if (!attention.valid() || r.rank(r.operand(attention, 0)) != 4) return;
  std::vector<ValueId> operands(r.function().operands(attention).begin(),
                                r.function().operands(attention).end());
  const Dims q = r.dims(operands[0]);
  const int64_t matrices = q[0] * q[1];
  for (size_t i = 0; i < 3; ++i) {
    const int64_t own = r.dims(operands[i]).back();
    operands[i] = RowsOfMatrices(r, operands[i]);
    if (!operands[i].valid() || r.dims(operands[i])[2] / own * r.dims(operands[i])[0] != matrices) {
      return;
    }
  }
  const int64_t heads = r.dims(operands[0])[2] / q[3];
  if (q[1] != 1 && q[1] != heads) return;
  if (operands.size() > 3 && q[1] == 1 && IsOfMatrices(r, operands[3])) {
    operands[3] = PartHeads(r, operands[3], heads);
  }
  if (!r.builder().status().ok()) return;
  AttributeSet attributes = r.attributes(attention);
  attributes.Set("heads", heads);
  attributes.Set("kv_heads", heads);
  const OpId packed = r.Ops(OpKind::kAttention, operands, attributes);
  if (!packed.valid()) return;
  const ValueId y =
      r.Op(OpKind::kTranspose, {r.result(packed)}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  if (!y.valid()) return;
  const bool same = r.dims(y) == r.dims(r.result(op));
  r.Replace(r.result(op), same ? y : r.Op(OpKind::kReshape, {y}, r.attributes(op)));
}

// Reshape(Transpose(Attention)), which gives back rows.
void PackAttention(Rewriter& r, OpId op) {
  const OpId transpose = r.MadeOnlyFor(r.operand(op, 0), OpKind::kTranspose);
  if (!IsTransposedBy(r, transpose, {0, 2, 1, 3})) return;
  const OpId attention = r.MadeOnlyFor(r.operand(transpose, 0), OpKind::kAttention);
  if (!attention.valid() || r.uses(r.result(attention, 1)) != 0) return;
  std::vector<ValueId> operands(r.function().operands(attention).begin(),
                                r.function().operands(attention).end());
  if (!IsPackable(r, operands[0])) return;
  const bool all = IsPackable(r, operands[1]) && IsPackable(r, operands[2]);
  operands[0] = Pack(r, operands[0]);
  for (size_t i = 1; all && i < 3; ++i) operands[i] = Pack(r, operands[i]);
  if (!r.builder().status().ok()) return;
  const OpId packed = r.Ops(OpKind::kAttention, operands, r.attributes(attention));
  if (!packed.valid()) return;
  const ValueId y = r.result(packed);
  const bool same = r.dims(y) == r.dims(r.result(op));
  r.Replace(r.result(op), same ? y : r.Op(OpKind::kReshape, {y}, r.attributes(op)));
}

// Keys and values of Attention that reads rows of queries already.
bool PackKeys(Rewriter& r, std::vector<ValueId>& operands) {
  if (r.rank(operands[0]) != 3 || !IsPackable(r, operands[1]) || !IsPackable(r, operands[2])) {
    return false;
  }
  for (size_t i = 1; i < 3; ++i) operands[i] = Pack(r, operands[i]);
  return r.builder().status().ok();
}

// A mask is repeated over heads and queries as it is read.
bool TakeInExpand(const Rewriter& r, std::vector<ValueId>& operands) {
  const OpId expand = operands.size() > 3 ? r.MadeBy(operands[3], OpKind::kExpand) : OpId();
  if (expand.valid()) operands[3] = r.operand(expand, 0);
  return expand.valid();
}

void ImproveAttention(Rewriter& r, OpId op) {
  std::vector<ValueId> operands(r.function().operands(op).begin(), r.function().operands(op).end());
  const bool packed = PackKeys(r, operands), narrowed = TakeInExpand(r, operands);
  if (!packed && !narrowed) return;
  const OpId better = r.Ops(OpKind::kAttention, operands, r.attributes(op));
  for (int32_t i = 0; better.valid() && i < r.function().result_count(op); ++i) {
    if (r.uses(r.result(op, i)) > 0) r.Replace(r.result(op, i), r.result(better, i));
  }
}

// Concat(past, new keys or values by heads).
void AppendRows(Rewriter& r, OpId op) {
  if (r.operand_count(op) != 2 || r.attributes(op).Int("axis", 0) != 2) return;
  if (r.rank(r.result(op)) != 4 || !IsPackable(r, r.operand(op, 1))) return;
  const ValueId past = r.operand(op, 0), rows = Pack(r, r.operand(op, 1));
  if (rows.valid()) r.Replace(r.result(op), r.Op(OpKind::kAppendRows, {past, rows}));
}

void PackOrAppend(Rewriter& r, OpId op) {
  if (r.kind(op) == OpKind::kReshape) {
    PackAttention(r, op);
    if (r.is_alive(op)) PackMatrices(r, op);
  }
  if (r.kind(op) == OpKind::kConcat) AppendRows(r, op);
  if (r.kind(op) == OpKind::kAttention) ImproveAttention(r, op);
}

}  // namespace
}  // namespace pack_attention_cc

extern const PassInfo kPackAttentionPass = {
    .name = "pack-attention",
    .summary = "lets Attention read and write rows of all heads in place of transposed ones",
    .options = "",
    .run = [](ir::Function& function,
              const PassOptions&) { return Rewrite(function, pack_attention_cc::PackOrAppend); },
    .idempotent = true,
};

}  // namespace orrery::transforms
