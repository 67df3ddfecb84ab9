#include "transforms/simplify/match_logits.h"

#include <algorithm>
#include <limits>

#include "ir/op_kind.h"
#include "transforms/simplify/heads.h"
#include "transforms/simplify/match.h"

namespace orrery::transforms {

using ir::Dims;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

namespace match_logits_cc {
namespace {

constexpr int kMaxMasks = 4;

bool IsBroadcastTo(const Dims& from, const Dims& to) {
  const auto dims = ir::BroadcastDims(from, to);
  return dims.has_value() && *dims == to;
}

// Whether `value` is made by what makes logits: a product, scaled or masked.
bool LooksLikeLogits(const Rewriter& r, ValueId value) {
  const OpId op = r.producer(value);
  if (!op.valid()) return false;
  switch (r.kind(op)) {
    case OpKind::kMatMul:
    case OpKind::kEinsum:
    case OpKind::kScale:
    case OpKind::kWhere:
    case OpKind::kAdd:
      return true;
    case OpKind::kReshape:
      return LooksLikeLogits(r, r.operand(op, 0));
    default:
      return false;
  }
}

// Which operand of a sum the logits are; nothing when neither or both could be.
std::optional<size_t> LogitsOfSum(const Rewriter& r, OpId add) {
  const Dims& dims = r.dims(r.result(add));
  bool full[2], likely[2];
  for (size_t i = 0; i < 2; ++i) {
    full[i] = r.dims(r.operand(add, i)) == dims && r.uses(r.operand(add, i)) == 1;
    likely[i] = full[i] && LooksLikeLogits(r, r.operand(add, i));
  }
  if (likely[0] != likely[1]) return likely[0] ? 0 : 1;
  if (full[0] != full[1]) return full[0] ? 0 : 1;
  return std::nullopt;
}

// One layer around the logits: what is inside, and the mask.
struct Layer {
  ValueId inside;
  Mask mask;
};

std::optional<Layer> MatchWhere(const Rewriter& r, OpId where) {
  const ValueId condition = r.operand(where, 0);
  for (size_t i = 1; i <= 2; ++i) {
    const std::optional<double> number = r.Number(r.operand(where, 3 - i));
    const ValueId inside = r.operand(where, i);
    if (!number.has_value() || !Hides(*number)) continue;
    if (r.function().type_id(inside) != r.function().type_id(r.result(where))) continue;
    return Layer{.inside = inside, .mask = {.value = condition, .inverted = i == 2}};
  }
  return std::nullopt;
}

std::optional<Layer> MatchLayer(const Rewriter& r, ValueId value) {
  if (r.uses(value) != 1) return std::nullopt;
  if (const OpId where = r.MadeBy(value, OpKind::kWhere); where.valid()) {
    return MatchWhere(r, where);
  }
  const OpId add = r.MadeBy(value, OpKind::kAdd);
  const std::optional<size_t> i = add.valid() ? LogitsOfSum(r, add) : std::nullopt;
  if (!i.has_value()) return std::nullopt;
  return Layer{.inside = r.operand(add, *i), .mask = {.value = r.operand(add, 1 - *i)}};
}

// [batch,heads,s,t] seen as [sets,windows,heads,s,t], plus a mask [1,windows,1,s,t]: the mask is
// of the first dimension.
std::optional<Layer> MatchWindows(const Rewriter& r, ValueId value) {
  const OpId back = r.MadeOnlyFor(value, OpKind::kReshape);
  if (!back.valid() || r.rank(value) != 4 || r.rank(r.operand(back, 0)) != 5) return std::nullopt;
  std::optional<Layer> layer = MatchLayer(r, r.operand(back, 0));
  if (!layer.has_value()) return std::nullopt;
  const OpId split = r.MadeOnlyFor(layer->inside, OpKind::kReshape);
  if (!split.valid() || r.dims(r.operand(split, 0)) != r.dims(value)) return std::nullopt;
  const Dims &mask = r.dims(layer->mask.value), &full = r.dims(r.operand(back, 0));
  const bool fits = mask.size() >= 4 && (mask.size() == 4 || mask[0] == 1) &&
                    full[2] == r.dims(value)[1] && mask[mask.size() - 4] == full[1];
  if (!fits) return std::nullopt;
  layer->inside = r.operand(split, 0);
  return layer;
}

// Every key up to the position of the query, counted so that the last query sees all keys.
bool IsLowerTriangle(const ir::Tensor& tensor, const Mask& mask, int64_t queries, int64_t keys) {
  for (int64_t at = 0; at < tensor.size(); ++at) {
    const int64_t s = at / keys % queries, t = at % keys;
    const double number = tensor.Number(at);
    const bool shown = tensor.is_float() ? number == 0 : (number != 0) != mask.inverted;
    if (shown != (t <= s + keys - queries)) return false;
    if (tensor.is_float() && !shown && !Hides(number)) return false;
  }
  return true;
}

// What a mask is made from, through ops that leave its last two dimensions as they are.
ValueId ThroughViews(const Rewriter& r, ValueId value, int64_t queries, int64_t keys) {
  while (true) {
    const OpId op = r.producer(value);
    if (!op.valid()) return value;
    switch (r.kind(op)) {
      case OpKind::kReshape:
      case OpKind::kUnsqueeze:
      case OpKind::kSqueeze:
      case OpKind::kExpand:
      case OpKind::kIdentity:
      case OpKind::kCast:
        break;
      default:
        return value;
    }
    const Dims& dims = r.dims(r.operand(op, 0));
    if (dims.size() < 2 || dims[dims.size() - 2] != queries || dims.back() != keys) return value;
    value = r.operand(op, 0);
  }
}

// Numbers first, first + 1, …; nothing when they are others.
std::optional<double> FirstOfRange(const Rewriter& r, ValueId value) {
  const auto tensor = r.Known(value, 1 << 20);
  if (!tensor.has_value() || tensor->size() == 0) return std::nullopt;
  for (int64_t i = 1; i < tensor->size(); ++i) {
    if (tensor->Number(i) != tensor->Number(0) + static_cast<double>(i)) return std::nullopt;
  }
  return tensor->Number(0);
}

// The position of the query compared with that of the key, as [queries,1] and [keys], either first.
bool IsComparison(const Rewriter& r, OpId op, bool inverted, int64_t queries, int64_t keys) {
  OpKind kind = r.kind(op);
  size_t query = 0;
  const auto is_rows = [&](size_t i) {
    const Dims& dims = r.dims(r.operand(op, i));
    return dims.size() >= 2 && dims.back() == 1 && dims[dims.size() - 2] == queries;
  };
  if (!is_rows(0)) query = 1;
  if (!is_rows(query) || r.dims(r.operand(op, 1 - query)).empty() ||
      r.dims(r.operand(op, 1 - query)).back() != keys) {
    return false;
  }
  const auto s = FirstOfRange(r, r.operand(op, query)),
             t = FirstOfRange(r, r.operand(op, 1 - query));
  if (!s.has_value() || !t.has_value()) return false;
  // As the query's position (>=, >, <, <=) the key's.
  const bool flip = query == 1;
  const bool at_least = kind == (flip ? OpKind::kLessOrEqual : OpKind::kGreaterOrEqual);
  const bool less = kind == (flip ? OpKind::kGreater : OpKind::kLess);
  return (inverted ? less : at_least) && *s - *t == static_cast<double>(keys - queries);
}

// A triangle cut out of a tensor that is everywhere the same.
bool IsTriangle(const Rewriter& r, OpId trilu, const Mask& mask, int64_t queries, int64_t keys) {
  const std::optional<double> number = r.Number(r.operand(trilu, 0));
  const bool upper = r.attributes(trilu).Int("upper", 1) != 0;
  const int64_t k = r.attributes(trilu).Int("k", 0) - (keys - queries);
  if (!number.has_value() || *number == 0) return false;
  const bool hides = ir::IsFloat(r.type(mask.value).dtype);
  if (hides && !Hides(*number)) return false;
  const bool marks_hidden = hides || mask.inverted;
  return upper == marks_hidden && k == (upper ? 1 : 0);
}

// Sees through a comparison of `mask` with 0.
Mask ThroughEqualZero(const Rewriter& r, Mask mask) {
  const OpId equal = r.MadeBy(mask.value, OpKind::kEqual);
  if (!equal.valid()) return mask;
  for (size_t i = 0; i < 2; ++i) {
    if (r.Number(r.operand(equal, i)) != 0) continue;
    return {.value = r.operand(equal, 1 - i), .inverted = !mask.inverted};
  }
  return mask;
}

Mask ThroughNot(const Rewriter& r, Mask mask) {
  const OpId op = r.MadeBy(mask.value, OpKind::kNot);
  return op.valid() ? Mask{.value = r.operand(op, 0), .inverted = !mask.inverted} : mask;
}

// Adds a mask: causality by itself, and a mask that is causal and something else in its parts.
void AddMask(const Rewriter& r, Mask mask, const Dims& dims, Logits& logits) {
  mask.of_matrices = dims.size() == 3;
  const int64_t queries = dims[dims.size() - 2], keys = dims.back();
  if (IsCausal(r, mask, queries, keys)) {
    logits.causal = true;
    return;
  }
  const OpId both = r.MadeBy(mask.value, mask.inverted ? OpKind::kOr : OpKind::kAnd);
  for (size_t i = 0; both.valid() && i < 2; ++i) {
    if (!IsCausal(r, {.value = r.operand(both, i), .inverted = mask.inverted}, queries, keys)) {
      continue;
    }
    logits.causal = true;
    mask.value = r.operand(both, 1 - i);
    logits.masks.push_back(mask);
    return;
  }
  logits.masks.push_back(mask);
}

}  // namespace
}  // namespace match_logits_cc

void SkipViews(const Rewriter& r, Logits& logits) {
  while (r.uses(logits.x) == 1) {
    if (const OpId view = r.MadeBy(logits.x, OpKind::kReshape); view.valid()) {
      const int64_t heads = HeadsOfView(r, view);
      if (heads == 0 || (logits.heads != 0 && logits.heads != heads)) return;
      logits.heads = heads;
      logits.x = r.operand(view, 0);
    } else if (const OpId cast = r.MadeBy(logits.x, OpKind::kCast); cast.valid()) {
      if (!ir::IsFloat(r.type(r.operand(cast, 0)).dtype)) return;
      logits.x = r.operand(cast, 0);
    } else if (const OpId max = r.MadeBy(logits.x, OpKind::kMax); max.valid()) {
      const auto clamp = r.operand_count(max) == 2 ? MatchNumber(r, max) : std::nullopt;
      if (!clamp.has_value() || !Hides(clamp->number)) return;
      logits.x = clamp->value;
    } else {
      return;
    }
  }
}

bool IsCausal(const Rewriter& r, const Mask& given, int64_t queries, int64_t keys) {
  Mask mask = given;
  for (int steps = 0; steps < 4; ++steps) {
    mask.value = match_logits_cc::ThroughViews(r, mask.value, queries, keys);
    mask = match_logits_cc::ThroughNot(r, match_logits_cc::ThroughEqualZero(r, mask));
  }
  const Dims& dims = r.dims(mask.value);
  if (dims.size() < 2 || dims[dims.size() - 2] != queries || dims.back() != keys) return false;
  const bool is_float = ir::IsFloat(r.type(given.value).dtype);
  if (const auto tensor = r.Known(mask.value, 1 << 16); tensor.has_value()) {
    if (is_float && !tensor->is_float()) return false;
    // Numbers that are compared with 0 are as good as bools.
    if (is_float || !tensor->is_float())
      return match_logits_cc::IsLowerTriangle(*tensor, mask, queries, keys);
    ir::Tensor bools(ir::DType::kBool, tensor->dims());
    for (int64_t i = 0; i < bools.size(); ++i) bools.SetNumber(i, tensor->Number(i));
    return match_logits_cc::IsLowerTriangle(bools, mask, queries, keys);
  }
  const OpId op = r.producer(mask.value);
  if (!op.valid()) return false;
  if (r.kind(op) == OpKind::kTrilu) {
    const Mask cut = {.value = given.value, .inverted = mask.inverted};
    return match_logits_cc::IsTriangle(r, op, cut, queries, keys);
  }
  return r.operand_count(op) == 2 && !is_float &&
         match_logits_cc::IsComparison(r, op, mask.inverted, queries, keys);
}

Logits MatchLogits(const Rewriter& r, ValueId value, bool attention) {
  Logits logits{.x = value, .masks = {}};
  for (int layers = 0; layers < match_logits_cc::kMaxMasks && r.rank(value) >= 2; ++layers) {
    if (attention) SkipViews(r, logits);
    const Dims& dims = r.dims(logits.x);
    std::optional<match_logits_cc::Layer> layer = match_logits_cc::MatchLayer(r, logits.x);
    if (layer.has_value() && !match_logits_cc::IsBroadcastTo(r.dims(layer->mask.value), dims))
      break;
    if (!layer.has_value() && attention) layer = match_logits_cc::MatchWindows(r, logits.x);
    if (!layer.has_value()) break;
    match_logits_cc::AddMask(r, layer->mask, dims, logits);
    logits.x = layer->inside;
  }
  const OpId scale = r.MadeOnlyFor(logits.x, OpKind::kScale);
  if (scale.valid()) {
    logits.scale = r.attributes(scale).Number("factor", 1);
    logits.x = r.operand(scale, 0);
  }
  if (attention) SkipViews(r, logits);
  return logits;
}

namespace match_logits_cc {
namespace {

// A mask [1,windows,1,s,t] as [windows,1,s,t].
ValueId WithoutSets(Rewriter& r, ValueId mask) {
  if (r.rank(mask) <= 4) return mask;
  return r.Op(OpKind::kSqueeze, {mask}, {{"axes", std::vector<int64_t>{0}}});
}

// x with y, of bools or floats, in one.
ValueId Join(Rewriter& r, ValueId x, ValueId y, const ir::TensorType& floats) {
  const bool x_adds = ir::IsFloat(r.type(x).dtype), y_adds = ir::IsFloat(r.type(y).dtype);
  if (!x_adds && y_adds) return Join(r, y, x, floats);
  if (!x_adds) return r.Op(OpKind::kAnd, {x, y});
  if (y_adds) return r.Op(OpKind::kAdd, {x, y});
  const ir::TensorType scalar = {.dtype = floats.dtype, .dims = {}, .sharding = {}};
  const ValueId low = r.Filled(scalar, std::numeric_limits<float>::lowest());
  return r.Op(OpKind::kWhere, {y, x, low});
}

}  // namespace
}  // namespace match_logits_cc

ValueId MakeMask(Rewriter& r, const Logits& logits, int64_t heads) {
  const ir::DType dtype = r.type(logits.x).dtype;
  ValueId joined;
  for (const Mask& mask : logits.masks) {
    ValueId value = mask.value;
    const bool for_all = r.rank(value) != 3 || r.dims(value)[0] == 1;  // batches and heads
    if (heads != 0 && mask.of_matrices && !for_all) value = PartHeads(r, value, heads);
    if (heads != 0 && ir::IsFloat(r.type(value).dtype) && r.type(value).dtype != dtype) {
      value = r.Op(OpKind::kCast, {value}, {{"to", std::string(ir::ToString(dtype))}});
    }
    if (mask.inverted) value = r.Op(OpKind::kNot, {value});
    value = match_logits_cc::WithoutSets(r, value);
    joined = joined.valid() ? match_logits_cc::Join(r, joined, value, r.type(logits.x)) : value;
  }
  return joined;
}

}  // namespace orrery::transforms
