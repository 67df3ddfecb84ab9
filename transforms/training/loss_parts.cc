#include "transforms/training/loss_parts.h"

#include <cmath>
#include <optional>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"

namespace orrery::transforms {
namespace loss_parts_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Where rows that a label names to be ignored do not count: the rows, all of them.
std::optional<ValueId> LikelihoodRows(const Function& function, OpId quotient) {
  const auto maker = [&](ValueId value) { return function.producer(value); };
  const auto is = [&](OpId op, OpKind kind) { return op.valid() && function.kind(op) == kind; };
  const OpId sum = maker(function.operands(quotient)[0]);
  const OpId counted = maker(function.operands(quotient)[1]);
  if (!is(sum, OpKind::kReduceSum) || !is(counted, OpKind::kReduceSum)) return std::nullopt;
  const ValueId rows = function.operands(sum)[0], weights = function.operands(counted)[0];
  const OpId likelihood = maker(rows);
  if (!is(likelihood, OpKind::kNegativeLikelihood) || maker(weights) != likelihood ||
      function.operands(likelihood).size() > 2) {
    return std::nullopt;
  }
  return rows;
}

// What a loss is divided by: a whole number that a Div or a Scale has; 0 where it is none.
int64_t WholeDivisor(const Function& function, OpId op) {
  double divisor = 0;
  if (function.kind(op) == OpKind::kScale) {
    const double factor = function.attributes(op).Number("factor", 1);
    if (factor > 0) divisor = 1 / factor;
  } else if (const OpId maker = function.producer(function.operands(op)[1]);
             maker.valid() && function.kind(maker) == OpKind::kConstant) {
    const auto tensor =
        ir::ConstantTensor(function.attributes(maker), function.type(function.operands(op)[1]));
    if (tensor.has_value() && tensor->size() == 1) divisor = tensor->Number(0);
  }
  // The reverse of a reverse is not always what it was.
  const double rounded = std::round(divisor);
  const bool whole = rounded >= 1 && rounded < 1e9 && std::abs(divisor - rounded) < 1e-9 * rounded;
  return whole ? static_cast<int64_t>(rounded) : 0;
}

// Of the sum of two losses over as many elements: the sums of these.
std::optional<LossParts> PartsOfSum(ir::Builder& b, OpId add) {
  const ValueId operands[] = {b.function().operands(add)[0], b.function().operands(add)[1]};
  const LossParts one = PartsOfLoss(b, operands[0]), two = PartsOfLoss(b, operands[1]);
  const bool alike =
      one.count > 1 && one.count == two.count && b.type(one.value).dims == b.type(two.value).dims;
  if (!alike) return std::nullopt;
  return LossParts{.value = b.Add(one.value, two.value), .count = one.count};
}

// A single step from a loss of one number to what it is made of; nothing where that is all.
std::optional<LossParts> StepTo(ir::Builder& b, OpId op) {
  const Function& function = b.function();
  const auto elements = [&](ValueId value) { return ir::ElementCount(function.type(value).dims); };
  const ValueId from = function.operands(op).empty() ? ValueId() : function.operands(op)[0];
  switch (function.kind(op)) {
    case OpKind::kDiv:
      if (const auto rows = LikelihoodRows(function, op); rows.has_value()) {
        return LossParts{.value = *rows, .count = elements(*rows)};
      }
      [[fallthrough]];
    case OpKind::kScale: {
      const int64_t divisor = WholeDivisor(function, op);
      const LossParts parts = divisor > 0 ? PartsOfLoss(b, from) : LossParts();
      // A sum of elements says of how many samples it is where it is divided by these.
      const bool over_samples = function.attributes(op).Int("over_batch", 0) != 0 &&
                                parts.value != from && elements(parts.value) > 1;
      if (divisor == 0 || (parts.count == 1 && !over_samples)) return std::nullopt;
      return LossParts{.value = parts.value, .count = parts.count * divisor};
    }
    case OpKind::kAdd:
      return PartsOfSum(b, op);
    case OpKind::kReduceSum:
      return LossParts{.value = from};
    case OpKind::kReduceMean:
      return LossParts{.value = from, .count = elements(from)};
    default:
      return std::nullopt;
  }
}

}  // namespace
}  // namespace loss_parts_cc

LossParts PartsOfLoss(ir::Builder& b, ir::ValueId loss) {
  ir::OpId op = b.function().producer(loss);
  ir::ValueId value = loss;
  while (op.valid() && (b.function().kind(op) == ir::OpKind::kIdentity ||
                        b.function().kind(op) == ir::OpKind::kSqueeze ||
                        b.function().kind(op) == ir::OpKind::kReshape)) {
    value = b.function().operands(op)[0];
    op = b.function().producer(value);
  }
  if (!op.valid() || ir::ElementCount(b.type(value).dims) != 1) return {.value = value};
  return loss_parts_cc::StepTo(b, op).value_or(LossParts{.value = value});
}

}  // namespace orrery::transforms
