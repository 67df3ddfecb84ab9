#include "transforms/training/loss_parts.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/batch.h"
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

// The number that a constant of one element holds.
std::optional<double> NumberOf(const Function& function, ValueId value) {
  const OpId maker = function.producer(value);
  if (!maker.valid() || function.kind(maker) != OpKind::kConstant) return std::nullopt;
  const auto tensor = ir::ConstantTensor(function.attributes(maker), function.type(value));
  return tensor.has_value() && tensor->size() == 1 ? std::optional(tensor->Number(0))
                                                   : std::nullopt;
}

// A value times a number.
struct Multiple {
  ValueId of;
  double factor = 1;
};

// What a Neg, a Scale, or a Mul or Div by a constant makes of a value.
std::optional<Multiple> MultipleOf(const Function& function, OpId op) {
  const auto operands = function.operands(op);
  switch (function.kind(op)) {
    case OpKind::kNeg:
      return Multiple{operands[0], -1};
    case OpKind::kScale:
      return Multiple{operands[0], function.attributes(op).Number("factor", 1)};
    case OpKind::kDiv: {
      const auto number = NumberOf(function, operands[1]);
      if (!number.has_value() || *number == 0) return std::nullopt;
      return Multiple{operands[0], 1 / *number};
    }
    case OpKind::kMul:
      for (const size_t i : {0u, 1u}) {
        const auto number = NumberOf(function, operands[i]);
        if (number.has_value()) return Multiple{operands[1 - i], *number};
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// The whole number whose reverse `factor` is; 0 where it is of none.
int64_t WholeDivisor(double factor) {
  const double divisor = factor > 0 ? 1 / factor : 0;
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

  // Of the sum or difference of two losses: those of as many elements, else of each sample.
  std::optional<LossParts> PartsOfSum(OpId op) {
    const OpKind kind = b_.function().kind(op);
    const ValueId operands[] = {b_.function().operands(op)[0], b_.function().operands(op)[1]};
    LossParts one = PartsOf(operands[0]), two = PartsOf(operands[1]);
    if (one.count == 1 || two.count == 1) return std::nullopt;
    if (one.count != two.count || b_.type(one.value).dims != b_.type(two.value).dims) {
      const auto a = OfEachSample(one.value), b = OfEachSample(two.value);
      if (!a.has_value() || !b.has_value()) return std::nullopt;
      // Both counts grow with the batch; what one is of the other does not.
      const double share = static_cast<double>(one.count) / static_cast<double>(two.count);
      one.value = *a;
      two.value = share == 1 ? *b : Scaled(*b, share);
    }
    const ValueId sum = b_.Op(kind, {one.value, two.value});
    if (of_samples_.contains(one.value)) of_samples_.insert(sum);
    return LossParts{.value = sum, .count = one.count};
  }

  // The sums over all that is of one sample, [batch]; nothing where it cannot be told apart.
  std::optional<ValueId> OfEachSample(ValueId value) {
    if (of_samples_.contains(value)) return value;
    const int64_t batch = ir::BatchOf(b_.function());
    if (value.index() >= batch_dims_.size()) {
      batch_dims_ = ir::BatchDims(b_.function());
      outside_ = ir::OutsideOfBatch(b_.function(), batch_dims_);
    }
    if (batch_dims_[value] < 0) return std::nullopt;
    auto dim = static_cast<size_t>(batch_dims_[value]);
    const int64_t outside = outside_[value];
    const ir::Dims dims = b_.type(value).dims;
    std::vector<int64_t> shape(dims.begin(), dims.end());
    if (outside < 1 || shape[dim] % (batch * outside) != 0) return std::nullopt;
    if (shape[dim] != batch) {
      const int64_t inside = shape[dim] / batch / outside;
      shape[dim] = -1;
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1, inside);
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim++), outside);
      value = b_.Op(OpKind::kReshape, {value}, "", {{"shape", shape}});
    }
    std::vector<int64_t> others;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d != dim) others.push_back(static_cast<int64_t>(d));
    }
    if (!others.empty()) value = b_.Op(OpKind::kReduceSum, {value}, "", {{"axes", others}});
    of_samples_.insert(value);
    return value;
  }

  ValueId Scaled(ValueId value, double factor) {
    return b_.Op(OpKind::kScale, {value}, "", {{"factor", factor}});
  }

  // Of a multiple that is no quotient: the multiple of what is of each sample.
  std::optional<LossParts> PartsOfMultiple(const Multiple& multiple) {
    const LossParts parts = PartsOf(multiple.of);
    if (parts.count == 1) return std::nullopt;
    const std::optional<ValueId> of_samples = OfEachSample(parts.value);
    const ValueId value = of_samples.value_or(parts.value);
    const ValueId scaled =
        multiple.factor == -1 ? b_.Op(OpKind::kNeg, {value}) : Scaled(value, multiple.factor);
    if (of_samples.has_value()) of_samples_.insert(scaled);
    return LossParts{.value = scaled, .count = parts.count};
  }

  // Of what is divided by a whole number.
  std::optional<LossParts> PartsOfQuotient(OpId op, const Multiple& multiple) {
    const ValueId from = multiple.of;
    const int64_t divisor = WholeDivisor(multiple.factor);
    if (divisor == 0) return PartsOfMultiple(multiple);
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
        [[fallthrough]];
      case OpKind::kNeg:
      case OpKind::kScale:
      case OpKind::kMul:
        if (const auto multiple = MultipleOf(function, op); multiple.has_value()) {
          return PartsOfQuotient(op, *multiple);
        }
        return std::nullopt;
      case OpKind::kAdd:
      case OpKind::kSub:
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
  IdTable<ValueId, int8_t> batch_dims_;  // of what was there when somebody asked last
  IdTable<ValueId, int64_t> outside_;
  absl::flat_hash_set<ValueId> of_samples_;  // sums over all that is of one sample
  int depth_ = 0;
};

}  // namespace
}  // namespace loss_parts_cc

LossParts PartsOfLoss(ir::Builder& b, ir::ValueId loss) {
  return loss_parts_cc::Taker(b).PartsOf(loss);
}

}  // namespace orrery::transforms
