#include <algorithm>

#include "transforms/match_logits.h"
#include "transforms/pass.h"

// softmax(scale q kᵀ, masked) v, written out: one Attention by heads. Heads of keys and values that
// were repeated for groups of queries are read once. Packing is left to pack-attention.

namespace orrery::transforms {
namespace {

using ir::AttributeSet;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// All that an Attention takes, before any op is made.
struct Match {
  ValueId q, k, v;
  std::vector<int64_t> k_perm;  // by which k is transposed yet; empty: not at all
  Logits logits;
};

// Sees through a scale of q or k.
ValueId WithoutScale(const Rewriter& r, ValueId value, double& scale) {
  const OpId op = r.MadeOnlyFor(value, OpKind::kScale);
  if (!op.valid()) return value;
  scale *= r.attributes(op).Number("factor", 1);
  return r.operand(op, 0);
}

// Probabilities that were made zero where they are no numbers.
ValueId WithoutGuard(const Rewriter& r, ValueId value) {
  const OpId where = r.MadeOnlyFor(value, OpKind::kWhere);
  if (!where.valid() || r.Number(r.operand(where, 1)) != 0) return value;
  const OpId is_nan = r.MadeOnlyFor(r.operand(where, 0), OpKind::kIsNaN);
  const ValueId inside = r.operand(where, 2);
  const bool guards = is_nan.valid() && r.operand(is_nan, 0) == inside && r.uses(inside) == 2;
  return guards ? inside : value;
}

std::optional<Logits> MatchProbabilities(const Rewriter& r, ValueId given) {
  const ValueId value = WithoutGuard(r, given);
  const OpId op = r.producer(value);
  if (!op.valid() || r.uses(value) != (value == given ? 1 : 2)) return std::nullopt;
  const OpKind kind = r.kind(op);
  if (kind != OpKind::kSoftmax && kind != OpKind::kMaskedSoftmax) return std::nullopt;
  const AttributeSet& set = r.attributes(op);
  const auto last = static_cast<int64_t>(r.rank(value)) - 1;
  if (set.Int("axis", -1) != last && set.Int("axis", -1) != -1) return std::nullopt;
  if (kind == OpKind::kSoftmax) return MatchLogits(r, r.operand(op, 0), r.rank(value) == 4);
  Logits logits{.x = r.operand(op, 0),
                .scale = set.Number("scale", 1),
                .causal = set.Int("causal", 0) != 0,
                .masks = {}};
  if (r.operand_count(op) > 1) logits.masks.push_back({.value = r.operand(op, 1)});
  return logits;
}

// k of a product that reads it transposed, and how it is still to be transposed.
void MatchKeys(const Rewriter& r, OpId product, Match& match) {
  ValueId k = WithoutScale(r, r.operand(product, 1), match.logits.scale);
  const size_t rank = r.rank(k);
  std::vector<int64_t> perm(rank);
  for (size_t d = 0; d < rank; ++d) perm[d] = static_cast<int64_t>(d);
  if (r.attributes(product).Int("transpose_w", 0) == 0) {
    const OpId transpose = r.MadeOnlyFor(k, OpKind::kTranspose);
    if (transpose.valid() && r.attributes(transpose).Find("perm") != nullptr) {
      perm = r.attributes(transpose).Ints("perm");
      k = WithoutScale(r, r.operand(transpose, 0), match.logits.scale);
    }
    std::swap(perm[rank - 1], perm[rank - 2]);
  }
  match.k = k;
  if (!std::is_sorted(perm.begin(), perm.end())) match.k_perm = perm;
}

ir::Dims DimsOfKeys(const Rewriter& r, const Match& match) {
  if (match.k_perm.empty()) return r.dims(match.k);
  ir::Dims dims;
  for (const int64_t d : match.k_perm) dims.push_back(r.dims(match.k)[static_cast<size_t>(d)]);
  return dims;
}

std::optional<Match> MatchAttention(const Rewriter& r, OpId op) {
  if (!r.attributes(op).empty()) return std::nullopt;
  const size_t rank = r.rank(r.result(op));
  if (rank != 3 && rank != 4) return std::nullopt;
  const auto logits = MatchProbabilities(r, r.operand(op, 0));
  const OpId product = logits.has_value() ? r.MadeOnlyFor(logits->x, OpKind::kMatMul) : OpId();
  if (!product.valid() || r.attributes(product).Int("transpose_x", 0) != 0) return std::nullopt;
  Match match{.q = {}, .k = {}, .v = r.operand(op, 1), .k_perm = {}, .logits = *logits};
  match.q = WithoutScale(r, r.operand(product, 0), match.logits.scale);
  if (r.rank(match.q) != rank || r.rank(r.operand(product, 1)) != rank || r.rank(match.v) != rank) {
    return std::nullopt;
  }
  MatchKeys(r, product, match);
  const ir::Dims &q = r.dims(match.q), &v = r.dims(match.v), k = DimsOfKeys(r, match);
  for (size_t d = 0; d + 2 < rank; ++d) {
    if (q[d] != k[d] || q[d] != v[d]) return std::nullopt;
  }
  return match;
}

// What `value` was before each of its heads, dimension `dim`, was repeated for a group of queries;
// invalid when none was.
ValueId WithoutRepeatAt(const Rewriter& r, ValueId value, size_t dim) {
  const OpId flat = r.MadeBy(value, OpKind::kReshape);
  const OpId expand = flat.valid() ? r.MadeBy(r.operand(flat, 0), OpKind::kExpand) : OpId();
  if (!expand.valid() || r.rank(value) != 4 || r.rank(r.result(expand)) != 5) return ValueId();
  const ir::Dims &wide = r.dims(r.result(expand)), &narrow = r.dims(r.operand(expand, 0));
  ir::Dims few = r.dims(value), once = r.dims(value);
  few[dim] = wide[dim];
  if (r.dims(value)[dim] != wide[dim] * wide[dim + 1]) return ValueId();
  once[dim] = wide[dim];
  once.insert(once.begin() + static_cast<std::ptrdiff_t>(dim) + 1, 1);
  const OpId view = r.producer(r.operand(expand, 0));
  if (narrow != once || !view.valid() || r.operand_count(view) != 1) return ValueId();
  const bool is_view = r.kind(view) == OpKind::kUnsqueeze || r.kind(view) == OpKind::kReshape;
  return is_view && r.dims(r.operand(view, 0)) == few ? r.operand(view, 0) : ValueId();
}

// [b,kv_heads,t,d] that was repeated to [b,heads,t,d], before or after it was transposed to that;
// invalid when it was not.
ValueId WithoutRepeat(Rewriter& r, ValueId value) {
  if (const ValueId few = WithoutRepeatAt(r, value, 1); few.valid()) return few;
  const std::vector<int64_t> by_heads = {0, 2, 1, 3};
  const OpId op = r.MadeBy(value, OpKind::kTranspose);
  if (!op.valid() || r.attributes(op).Ints("perm") != by_heads) return ValueId();
  const ValueId few = WithoutRepeatAt(r, r.operand(op, 0), 2);
  return few.valid() ? r.Op(OpKind::kTranspose, {few}, {{"perm", by_heads}}) : ValueId();
}

ValueId OneHead(Rewriter& r, ValueId value) {
  return r.Op(OpKind::kUnsqueeze, {value}, {{"axes", std::vector<int64_t>{1}}});
}

void Fuse(Rewriter& r, OpId op, Match match, bool flash) {
  ValueId q = match.q, k = match.k, v = match.v;
  if (!match.k_perm.empty()) k = r.Op(OpKind::kTranspose, {k}, {{"perm", match.k_perm}});
  const ValueId few_k = WithoutRepeat(r, k), few_v = WithoutRepeat(r, v);
  if (few_k.valid() && few_v.valid() && r.dims(few_k)[1] == r.dims(few_v)[1]) {
    k = few_k;
    v = few_v;
  }
  ValueId mask = MakeMask(r, match.logits);
  const bool by_heads = r.rank(q) == 4;
  if (!by_heads) {
    for (ValueId* value : {&q, &k, &v}) *value = OneHead(r, *value);
    if (mask.valid() && r.rank(mask) == 3) mask = OneHead(r, mask);
  }
  AttributeSet attributes = {
      {"heads", r.dims(q)[1]}, {"kv_heads", r.dims(k)[1]}, {"scale", match.logits.scale}};
  if (match.logits.causal) attributes.Set("causal", int64_t{1});
  if (flash) attributes.Set("flash", int64_t{1});
  std::vector<ValueId> operands = {q, k, v};
  if (mask.valid()) operands.push_back(mask);
  const OpId attention = r.Ops(OpKind::kAttention, operands, attributes);
  if (!attention.valid()) return;
  ValueId y = r.result(attention);
  if (!by_heads) y = r.Op(OpKind::kSqueeze, {y}, {{"axes", std::vector<int64_t>{1}}});
  r.Replace(r.result(op), y);
}

absl::StatusOr<bool> FuseAttention(ir::Function& function, const PassOptions& options) {
  const std::string& flash = options.find("flash")->second;
  if (flash != "0" && flash != "1") {
    return absl::InvalidArgumentError("option flash is '" + flash + "'; wanted 0 or 1");
  }
  return Rewrite(function, [&](Rewriter& r, OpId op) {
    if (r.kind(op) != OpKind::kMatMul) return;
    std::optional<Match> match = MatchAttention(r, op);
    if (match.has_value()) Fuse(r, op, *std::move(match), flash == "1");
  });
}

}  // namespace

extern const PassInfo kFuseAttentionPass = {
    .name = "fuse-attention",
    .summary = "makes one Attention of the products and the softmax that stand for it",
    .options = "flash=0",
    .run = FuseAttention,
    .idempotent = true,
};

}  // namespace orrery::transforms
