#include "transforms/simplify/match.h"

#include <cmath>

#include "ir/op_kind.h"

namespace orrery::transforms {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

bool IsNear(double x, double wanted) { return std::abs(x - wanted) <= 1e-3 * std::abs(wanted); }

std::optional<ValueAndNumber> MatchNumber(const Rewriter& r, OpId op) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueId value = r.operand(op, 1 - i);
    const std::optional<double> number = r.Number(r.operand(op, i));
    if (!number.has_value()) continue;
    if (r.function().type_id(value) != r.function().type_id(r.result(op))) continue;
    return ValueAndNumber{.value = value, .number = *number};
  }
  return std::nullopt;
}

ValueId OtherOperand(const Rewriter& r, OpId op, ValueId value) {
  if (r.operand(op, 0) == value) return r.operand(op, 1);
  return r.operand(op, 1) == value ? r.operand(op, 0) : ValueId();
}

namespace match_cc {
namespace {

constexpr size_t kMaxFactors = 8;

void AddFactors(const Rewriter& r, OpId op, Product& product);

void AddFactor(const Rewriter& r, ValueId value, Product& product) {
  const OpId op = r.producer(value);
  if (op.valid() && r.uses(value) == 1 && product.factors.size() < kMaxFactors) {
    AddFactors(r, op, product);
  } else {
    product.factors.push_back(value);
  }
}

void AddFactors(const Rewriter& r, OpId op, Product& product) {
  const auto number = [&](size_t i) { return r.Number(r.operand(op, i)); };
  switch (r.kind(op)) {
    case OpKind::kScale:
      product.scale *= r.attributes(op).Number("factor", 1);
      return AddFactor(r, r.operand(op, 0), product);
    case OpKind::kMul:
      if (const auto match = MatchNumber(r, op); match.has_value()) {
        product.scale *= match->number;
        return AddFactor(r, match->value, product);
      }
      AddFactor(r, r.operand(op, 0), product);
      return AddFactor(r, r.operand(op, 1), product);
    case OpKind::kDiv:
      if (number(1).has_value() && *number(1) != 0) {
        product.scale /= *number(1);
        return AddFactor(r, r.operand(op, 0), product);
      }
      break;
    case OpKind::kPow:
      if (number(1) == 2 || number(1) == 3) {
        const auto times = static_cast<size_t>(*number(1));
        product.factors.insert(product.factors.end(), times, r.operand(op, 0));
        return;
      }
      break;
    default:
      break;
  }
  product.factors.push_back(r.result(op));
}

// The square root that `value` is; invalid when it is none.
OpId Root(const Rewriter& r, ValueId value) { return r.MadeOnlyFor(value, OpKind::kSqrt); }

// What `value` is the reciprocal of the root of.
ValueId ReciprocalRootOf(const Rewriter& r, ValueId value, int32_t times = 1) {
  if (const OpId op = r.MadeOnlyFor(value, OpKind::kRsqrt, times); op.valid()) {
    return r.operand(op, 0);
  }
  OpId root;
  if (const OpId op = r.MadeOnlyFor(value, OpKind::kReciprocal, times); op.valid()) {
    root = Root(r, r.operand(op, 0));
  } else if (const OpId div = r.MadeOnlyFor(value, OpKind::kDiv, times); div.valid()) {
    if (r.Number(r.operand(div, 0)) == 1) root = Root(r, r.operand(div, 1));
  }
  return root.valid() ? r.operand(root, 0) : ValueId();
}

// square + epsilon.
bool TakeApartSum(const Rewriter& r, ValueId sum, Normalized& match) {
  const OpId add = sum.valid() ? r.MadeOnlyFor(sum, OpKind::kAdd) : OpId();
  const auto epsilon = add.valid() ? MatchNumber(r, add) : std::nullopt;
  if (!epsilon.has_value()) return false;
  match.square = epsilon->value;
  match.epsilon = epsilon->number;
  return true;
}

}  // namespace
}  // namespace match_cc

Product TakeApart(const Rewriter& r, OpId op) {
  Product product;
  match_cc::AddFactors(r, op, product);
  return product;
}

Product TakeApart(const Rewriter& r, ValueId value) {
  Product product;
  match_cc::AddFactor(r, value, product);
  return product;
}

std::optional<Normalized> MatchNormalized(const Rewriter& r, OpId op) {
  Normalized match;
  ValueId sum;
  if (r.kind(op) == OpKind::kDiv) {
    const OpId root = match_cc::Root(r, r.operand(op, 1));
    if (root.valid()) sum = r.operand(root, 0);
    match.value = r.operand(op, 0);
  } else if (r.kind(op) == OpKind::kMul) {
    for (size_t i = 0; i < 2 && !sum.valid(); ++i) {
      sum = match_cc::ReciprocalRootOf(r, r.operand(op, i));
      match.value = r.operand(op, 1 - i);
    }
  }
  if (!match_cc::TakeApartSum(r, sum, match)) return std::nullopt;
  return match;
}

std::optional<Normalized> MatchReciprocalRoot(const Rewriter& r, ValueId root, int32_t times) {
  Normalized match;
  if (!match_cc::TakeApartSum(r, match_cc::ReciprocalRootOf(r, root, times), match))
    return std::nullopt;
  return match;
}

std::optional<Mean> MatchMean(const Rewriter& r, ValueId mean, int32_t times) {
  const OpId op = r.MadeOnlyFor(mean, OpKind::kReduceMean, times);
  if (!op.valid() || r.attributes(op).Int("keepdims", 0) == 0) return std::nullopt;
  const std::vector<int64_t> axes = r.attributes(op).Ints("axes");
  const size_t rank = r.rank(mean);
  if (axes.empty() || axes.size() > rank) return std::nullopt;
  const size_t axis = rank - axes.size();
  std::vector<bool> averaged(rank, false);
  for (const int64_t d : axes) {
    if (d < static_cast<int64_t>(axis) || d >= static_cast<int64_t>(rank)) return std::nullopt;
    averaged[static_cast<size_t>(d)] = true;
  }
  for (size_t d = axis; d < rank; ++d) {
    if (!averaged[d]) return std::nullopt;
  }
  return Mean{.value = r.operand(op, 0), .axis = axis};
}

std::optional<Mean> MatchMeanSquare(const Rewriter& r, ValueId mean) {
  std::optional<Mean> match = MatchMean(r, mean);
  if (!match.has_value()) return std::nullopt;
  const Product square = TakeApart(r, match->value);
  if (square.scale != 1 || square.factors.size() != 2) return std::nullopt;
  if (square.factors[0] != square.factors[1]) return std::nullopt;
  match->value = square.factors[0];
  return match;
}

bool IsByChannels(const Rewriter& r, ValueId value, const ir::Dims& channels) {
  const ir::Dims& dims = r.dims(value);
  if (channels.size() < 2 || dims.size() + 1 < channels.size() || dims.size() > channels.size()) {
    return false;
  }
  const size_t added = channels.size() - dims.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != (d + added == 1 ? channels[1] : 1)) return false;
  }
  return true;
}

bool IsView(ir::OpKind kind) {
  return kind == ir::OpKind::kReshape || kind == ir::OpKind::kSqueeze ||
         kind == ir::OpKind::kUnsqueeze;
}

std::vector<int64_t> PermutationOf(const ir::Function& function, ir::OpId op) {
  std::vector<int64_t> perm = function.attributes(op).Ints("perm");
  if (function.attributes(op).Find("perm") != nullptr) return perm;
  for (size_t d = function.type(function.result(op)).dims.size(); d-- > 0;) {
    perm.push_back(static_cast<int64_t>(d));
  }
  return perm;
}

ir::Dims DimsFrom(const ir::Dims& dims, size_t axis) {
  return ir::Dims(dims.begin() + static_cast<std::ptrdiff_t>(axis), dims.end());
}

}  // namespace orrery::transforms
