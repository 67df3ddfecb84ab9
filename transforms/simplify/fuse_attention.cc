#include <algorithm>

#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/heads.h"
#include "transforms/simplify/match_logits.h"

// softmax(scale q kᵀ, masked) v, written out: one Attention by heads. Heads of keys and values that
// were repeated for groups of queries are read once. Packing is left to pack-attention.

namespace orrery::transforms {
namespace fuse_attention_cc {
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
  double dropout = 0;  // of the probabilities
  int64_t seed = 0;
};

// Probabilities before dropout, what is kept of which nobody else asks.
ValueId WithoutDropout(const Rewriter& r, ValueId value, Match& match) {
  const OpId op = r.MadeOnlyFor(value, OpKind::kDropout);
  if (!op.valid() || r.uses(r.result(op, 1)) != 0) return value;
  const double ratio = r.attributes(op).Number("ratio", 0.5);
  if (ratio >= 1) return value;
  match.dropout = ratio;
  match.seed = r.attributes(op).Int("seed", 0);
  return r.operand(op, 0);
}

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
  Logits probabilities{.x = WithoutGuard(r, given), .masks = {}};
  if (r.uses(probabilities.x) != (probabilities.x == given ? 1 : 2)) return std::nullopt;
  if (probabilities.x == given) SkipViews(r, probabilities);
  const ValueId value = probabilities.x;
  const OpId op = r.producer(value);
  if (!op.valid() || r.uses(value) > (value == given ? 1 : 2)) return std::nullopt;
  const OpKind kind = r.kind(op);
  if (kind != OpKind::kSoftmax && kind != OpKind::kMaskedSoftmax) return std::nullopt;
  const AttributeSet& set = r.attributes(op);
  const auto last = static_cast<int64_t>(r.rank(value)) - 1;
  if (set.Int("axis", -1) != last && set.Int("axis", -1) != -1) return std::nullopt;
  Logits logits{.x = r.operand(op, 0), .masks = {}};
  if (kind == OpKind::kSoftmax) {
    logits = MatchLogits(r, r.operand(op, 0), /*attention=*/true);
  } else {
    logits.scale = set.Number("scale", 1);
    logits.causal = set.Int("causal", 0) != 0;
    if (r.operand_count(op) > 1) {
      logits.masks.push_back({.value = r.operand(op, 1), .of_matrices = r.rank(value) == 3});
    }
    SkipViews(r, logits);
  }
  if (logits.heads == 0) logits.heads = probabilities.heads;
  const bool agree = probabilities.heads == 0 || logits.heads == probabilities.heads;
  return agree ? std::optional(logits) : std::nullopt;
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

// Whether the first dimension of `value`, transposed perhaps, was first before.
bool KeepsBatch(const Rewriter& r, ValueId value) {
  const OpId transpose = r.MadeBy(value, OpKind::kTranspose);
  if (!transpose.valid()) return true;
  const std::vector<int64_t> perm = r.attributes(transpose).Ints("perm");
  return !perm.empty() && perm[0] == 0;
}

// Learns from q, k and v, where they are matrices, how many heads there are; false when the batch
// is not outside of them.
bool FindHeads(const Rewriter& r, Match& match) {
  for (const ValueId value : {match.q, match.k, match.v}) {
    const ValueId parted = WithHeads(r, value);
    if (!parted.valid()) continue;
    if (!KeepsBatch(r, parted)) return false;
    if (match.logits.heads == 0) match.logits.heads = r.dims(parted)[1];
  }
  return true;
}

// The dims of `value` by heads.
std::optional<ir::Dims> ByHeads(const ir::Dims& dims, int64_t heads) {
  if (dims.size() == 4) return dims;
  if (dims.size() != 3 || heads < 1 || dims[0] % heads != 0) return std::nullopt;
  return ir::Dims{dims[0] / heads, heads, dims[1], dims[2]};
}

// Whether q, k and v have one batch, as many heads, and one element type.
bool Fit(const Rewriter& r, const Match& match) {
  const int64_t heads = std::max<int64_t>(match.logits.heads, 1);
  const auto q = ByHeads(r.dims(match.q), heads), k = ByHeads(DimsOfKeys(r, match), heads),
             v = ByHeads(r.dims(match.v), heads);
  if (!q.has_value() || !k.has_value() || !v.has_value()) return false;
  for (size_t d = 0; d < 2; ++d) {
    if ((*q)[d] != (*k)[d] || (*q)[d] != (*v)[d]) return false;
  }
  return r.type(match.q).dtype == r.type(match.v).dtype;
}

std::optional<Match> MatchAttention(const Rewriter& r, OpId op) {
  if (!r.attributes(op).empty()) return std::nullopt;
  Match match;
  const auto logits = MatchProbabilities(r, WithoutDropout(r, r.operand(op, 0), match));
  const OpId product = logits.has_value() ? r.MadeOnlyFor(logits->x, OpKind::kMatMul) : OpId();
  if (!product.valid() || r.attributes(product).Int("transpose_x", 0) != 0) return std::nullopt;
  match.v = r.operand(op, 1);
  match.logits = *logits;
  match.q = WithoutScale(r, r.operand(product, 0), match.logits.scale);
  const size_t rank = r.rank(match.q);
  if ((rank != 3 && rank != 4) || r.rank(r.operand(product, 1)) != rank) return std::nullopt;
  if (match.logits.heads == 0 && r.rank(match.v) != rank) return std::nullopt;
  MatchKeys(r, product, match);
  if (!FindHeads(r, match) || !Fit(r, match)) return std::nullopt;
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

// `value` by heads: with `heads` 0, matrices have one.
ValueId ByHeads(Rewriter& r, ValueId value, int64_t heads) {
  if (r.rank(value) == 4) return value;
  if (heads == 0) {
    return r.Op(OpKind::kUnsqueeze, {value}, {{"axes", std::vector<int64_t>{1}}});
  }
  return PartHeads(r, value, heads);
}

ValueId KeysByHeads(Rewriter& r, const Match& match) {
  const int64_t heads = match.logits.heads;
  std::vector<int64_t> perm = match.k_perm;
  if (perm.empty()) return ByHeads(r, match.k, heads);
  if (perm == std::vector<int64_t>{0, 2, 1} && heads != 0) {
    const ValueId k = ByHeads(r, match.k, heads);
    return r.Op(OpKind::kTranspose, {k}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  }
  const ValueId k = r.Op(OpKind::kTranspose, {match.k}, {{"perm", std::move(perm)}});
  return ByHeads(r, k, heads);
}

// What the op in hand made of what attention by heads makes: matrices, perhaps.
ValueId AsBefore(Rewriter& r, OpId op, ValueId y, int64_t heads) {
  const ir::Dims& dims = r.dims(r.result(op));
  if (dims.size() == 4) return y;
  if (heads == 0) return r.Op(OpKind::kSqueeze, {y}, {{"axes", std::vector<int64_t>{1}}});
  return r.Op(OpKind::kReshape, {y}, {{"shape", std::vector<int64_t>{-1, dims[1], dims[2]}}});
}

void Fuse(Rewriter& r, OpId op, const Match& match, bool flash) {
  const int64_t heads = match.logits.heads;
  const ValueId q = ByHeads(r, match.q, heads);
  ValueId k = KeysByHeads(r, match), v = ByHeads(r, match.v, heads);
  if (!r.builder().status().ok()) return;
  const ValueId few_k = WithoutRepeat(r, k), few_v = WithoutRepeat(r, v);
  if (few_k.valid() && few_v.valid() && r.dims(few_k)[1] == r.dims(few_v)[1]) {
    k = few_k;
    v = few_v;
  }
  const ValueId mask = MakeMask(r, match.logits, std::max<int64_t>(heads, 1));
  AttributeSet attributes = {
      {"heads", r.dims(q)[1]}, {"kv_heads", r.dims(k)[1]}, {"scale", match.logits.scale}};
  if (match.logits.causal) attributes.Set("causal", int64_t{1});
  if (flash) attributes.Set("flash", int64_t{1});
  if (match.dropout > 0) attributes.Set("dropout", match.dropout);
  if (match.dropout > 0 && match.seed != 0) attributes.Set("seed", match.seed);
  std::vector<ValueId> operands = {q, k, v};
  if (mask.valid()) operands.push_back(mask);
  const OpId attention = r.Ops(OpKind::kAttention, operands, attributes);
  if (!attention.valid()) return;
  const ValueId y = AsBefore(r, op, r.result(attention), heads);
  if (y.valid()) r.Replace(r.result(op), y);
}

// A scale before heads are parted, which attention can take in behind that.
void SinkScale(Rewriter& r, OpId op) {
  const size_t rank = r.rank(r.result(op));
  const OpId scale = r.MadeOnlyFor(r.operand(op, 0), OpKind::kScale);
  if (!scale.valid() || rank < 3 || rank > 4) return;
  const ValueId moved = r.Op(r.kind(op), {r.operand(scale, 0)}, r.attributes(op));
  if (!moved.valid()) return;
  r.Replace(r.result(op), r.Op(OpKind::kScale, {moved}, r.attributes(scale)));
}

absl::StatusOr<bool> FuseAttention(ir::Function& function, const PassOptions& options) {
  const std::string& flash = options.find("flash")->second;
  if (flash != "0" && flash != "1") {
    return absl::InvalidArgumentError("option flash is '" + flash + "'; wanted 0 or 1");
  }
  return Rewrite(function, [&](Rewriter& r, OpId op) {
    const OpKind kind = r.kind(op);
    if (kind == OpKind::kReshape || kind == OpKind::kTranspose) SinkScale(r, op);
    if (kind != OpKind::kMatMul) return;
    const std::optional<Match> match = MatchAttention(r, op);
    if (match.has_value()) Fuse(r, op, *match, flash == "1");
  });
}

}  // namespace
}  // namespace fuse_attention_cc

extern const PassInfo kFuseAttentionPass = {
    .name = "fuse-attention",
    .summary = "makes one Attention of the products and the softmax that stand for it",
    .options = "flash=0",
    .run = fuse_attention_cc::FuseAttention,
    .idempotent = true,
};

}  // namespace orrery::transforms
