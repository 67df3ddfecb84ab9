#include "transforms/training/loss_parts.h"

#include <cmath>
#include <optional>

#include "absl/container/flat_hash_map.h"
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

// Takes losses apart, each value once: sums of sums may share what they add up.
class Taker {
 public:
  explicit Taker(ir::Builder& b) : b_(b) {}

  LossParts PartsOf(ValueId loss) {
    if (const auto known = known_.find(loss); known != known_.end()) return known->second;
    // Of deeper sums nobody says that they are losses: they stay as they are.
    constexpr int kMostDeep = 200;
    if (depth_ == kMostDeep) return {.value = loss};
    ++depth_;
    const LossParts parts = Take(loss);
    --depth_;
    known_.emplace(loss, parts);
    return parts;
  }

 private:
  LossParts Take(ValueId loss) {
    OpId op = b_.function().producer(loss);
    ValueId value = loss;
    while (op.valid() && (b_.function().kind(op) == OpKind::kIdentity ||
                          b_.function().kind(op) == OpKind::kSqueeze ||
                          b_.function().kind(op) == OpKind::kReshape)) {
      value = b_.function().operands(op)[0];
      op = b_.function().producer(value);
    }
    if (!op.valid() || ir::ElementCount(b_.type(value).dims) != 1) return {.value = value};
    return StepTo(op).value_or(LossParts{.value = value});
  }

  // Of the sum of two losses over as many elements: the sums of these.
  std::optional<LossParts> PartsOfSum(OpId add) {
    const ValueId operands[] = {b_.function().operands(add)[0], b_.function().operands(add)[1]};
    const LossParts one = PartsOf(operands[0]), two = PartsOf(operands[1]);
    const bool alike = one.count > 1 && one.count == two.count &&
                       b_.type(one.value).dims == b_.type(two.value).dims;
    if (!alike) return std::nullopt;
    return LossParts{.value = b_.Add(one.value, two.value), .count = one.count};
  }

  // Of what is divided by a whole number.
  std::optional<LossParts> PartsOfQuotient(OpId op) {
    const ValueId from = b_.function().operands(op)[0];
    const int64_t divisor = WholeDivisor(b_.function(), op);
    if (divisor == 0) return std::nullopt;
    const LossParts parts = PartsOf(from);
    // A sum of elements says of how many samples it is where it is divided by these.
    const bool over_samples = b_.function().attributes(op).Int("over_batch", 0) != 0 &&
                              parts.value != from && Elements(parts.value) > 1;
    if (parts.count == 1 && !over_samples) return std::nullopt;
    // More than a double counts one by one is no number of samples.
    constexpr int64_t kMostCounted = int64_t{1} << 53;
    if (parts.count > kMostCounted / divisor) return std::nullopt;
    return LossParts{.value = parts.value, .count = parts.count * divisor};
  }

  // A single step from a loss of one number to what it is made of; nothing where that is all.
  std::optional<LossParts> StepTo(OpId op) {
    const Function& function = b_.function();
    const ValueId from = function.operands(op).empty() ? ValueId() : function.operands(op)[0];
    switch (function.kind(op)) {
      case OpKind::kDiv:
        if (const auto rows = LikelihoodRows(function, op); rows.has_value()) {
          return LossParts{.value = *rows, .count = Elements(*rows)};
        }
        return PartsOfQuotient(op);
      case OpKind::kScale:
        return PartsOfQuotient(op);
      case OpKind::kAdd:
        return PartsOfSum(op);
      case OpKind::kReduceSum:
        return LossParts{.value = from};
      case OpKind::kReduceMean:
        return LossParts{.value = from, .count = Elements(from)};
      default:
        return std::nullopt;
    }
  }

  int64_t Elements(ValueId value) const { return ir::ElementCount(b_.type(value).dims); }

  ir::Builder& b_;
  absl::flat_hash_map<ValueId, LossParts> known_;
  int depth_ = 0;
};

}  // namespace
}  // namespace loss_parts_cc

LossParts PartsOfLoss(ir::Builder& b, ir::ValueId loss) {
  return loss_parts_cc::Taker(b).PartsOf(loss);
}

}  // namespace orrery::transforms
