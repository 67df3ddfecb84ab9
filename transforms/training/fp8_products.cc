#include "transforms/training/fp8_products.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace fp8_products_cc {
namespace {

using ir::Dims;
using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// A product of backward has no weight among its operands where it makes the gradient of one: it is
// known by what it reads and how large a gradient it makes.
using WeightGradient = std::pair<ValueId, Dims>;

int64_t MultipleOf(ir::DType copies) {
  if (copies == ir::DType::kF8Block) return kFp8BlockMultiple;
  return copies == ir::DType::kF4 ? kFp4Multiple : kFp8Multiple;
}

class ProductFinder {
 public:
  ProductFinder(const Function& function, ir::DType copies)
      : function_(function),
        multiple_(MultipleOf(copies)),
        phase_(FindPhases(function)),
        users_(function.value_limit()),
        returned_(function.value_limit(), 0),
        logits_(function.value_limit(), 0),
        is_weight_(function.value_limit(), 0),
        products_{.operands = IdTable<OpId, int32_t>(function.op_limit(), 0),
                  .only_in_copies = IdTable<ValueId, char>(function.value_limit(), 0),
                  .weights = {}} {
    absl::flat_hash_set<ValueId> updated;
    for (const ir::Output& output : function.outputs()) updated.insert(output.of);
    for (const ir::Input& input : function.inputs()) {
      const ir::DType dtype = function.type(input.value).dtype;
      const bool narrow = ir::IsFloat(dtype) && ir::SizeOf(dtype) == 2;
      const bool held =
          input.role == ir::InputRole::kBuffer || input.role == ir::InputRole::kFrozen;
      const bool fixed = held && !updated.contains(input.value);
      is_weight_[input.value] = narrow && (fixed || input.role == ir::InputRole::kParameter);
      if (narrow && fixed) frozen_.push_back(input.value);
    }
    for (const OpId op : function.order()) {
      for (const ValueId operand : function.operands(op)) users_[operand].push_back(op);
    }
    for (const ir::Output& output : function.outputs()) returned_[output.value] = 1;
  }

  Fp8Products Run() {
    FindLogits();
    FindForward();
    for (const OpId op : function_.order()) {
      if (phase_[op] != StepPhase::kForward) products_.operands[op] = OperandsInBackward(op);
    }
    FindOnlyInCopies();
    FindCopiedWeights();
    return std::move(products_);
  }

 private:
  // What is moved to where it is used as `value`.
  ValueId RootOf(ValueId value) const {
    for (OpId op = function_.producer(value); op.valid() && Moves(op);
         op = function_.producer(value)) {
      value = function_.operands(op)[0];
    }
    return value;
  }

  bool Moves(OpId op) const {
    const OpKind kind = function_.kind(op);
    return MovesCopies(function_, op) || kind == OpKind::kAllToAll || kind == OpKind::kPermute;
  }

  // Weights of a forward product: operands 1 and up to their number. None for other ops.
  std::span<const ValueId> WeightsOf(OpId op) const {
    const OpKind kind = function_.kind(op);
    if (phase_[op] != StepPhase::kForward) return {};
    if (kind != OpKind::kMatMul && kind != OpKind::kLinear && kind != OpKind::kLinearGroup)
      return {};
    const size_t count =
        kind == OpKind::kLinearGroup ? static_cast<size_t>(function_.result_count(op)) : 1;
    return function_.operands(op).subspan(1, count);
  }

  // A weight that one product has to read in 16 bits is read so by all, and so it goes on through
  // groups.
  void FindForward() {
    IdTable<ValueId, char> refused(function_.value_limit(), 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (const OpId op : function_.order()) {
        const auto weights = WeightsOf(op);
        const bool fits = !weights.empty() && Fits(op, weights) && !MakesLogits(op) &&
                          std::ranges::none_of(weights, [&](ValueId weight) {
                            return refused[RootOf(weight)] != 0;
                          });
        for (const ValueId weight : weights) {
          char& is_refused = refused[RootOf(weight)];
          changed = changed || (!fits && is_refused == 0);
          is_refused = is_refused != 0 || !fits ? 1 : 0;
        }
        products_.operands[op] = fits ? static_cast<int32_t>(1 + weights.size()) : 0;
      }
    }
    for (const OpId op : function_.order()) {
      if (products_.operands[op] == 0) continue;
      for (const ValueId weight : WeightsOf(op)) {
        read_.insert(RootOf(weight));
        gradients_.emplace(RootOf(function_.operands(op)[0]), function_.type(weight).dims);
      }
    }
  }

  bool IsWeight(ValueId value) const { return is_weight_[RootOf(value)] != 0; }

  bool IsMultiple(int64_t size) const { return size % multiple_ == 0; }

  // The sizes of the products on a rank. Of several matrices each is a product.
  bool Fits(OpId op, std::span<const ValueId> weights) const {
    const Dims x = LocalDims(function_.operands(op)[0]);
    if (x.size() < 2) return false;
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < x.size(); ++d) rows *= x[d];
    for (const ValueId weight : weights) {
      const Dims w = LocalDims(weight);
      if (!IsWeight(weight) || w.size() < 2) return false;
      const bool batched = w.size() > 2;
      const bool fits = IsMultiple(w[w.size() - 1]) && IsMultiple(w[w.size() - 2]) &&
                        IsMultiple(batched ? x[x.size() - 2] : rows) && IsMultiple(x.back());
      if (!fits) return false;
    }
    return true;
  }

  Dims LocalDims(ValueId value) const {
    return ir::LocalType(function_.type(value), function_.mesh()).dims;
  }

  // Which values go into a softmax, a choice or the loss of classes, by way of biases, scales,
  // masks and moves.
  void FindLogits() {
    const auto& order = function_.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      if (phase_[*op] != StepPhase::kForward || !TakesLogits(*op)) continue;
      for (const ValueId operand : function_.operands(*op)) logits_[operand] = 1;
    }
  }

  bool TakesLogits(OpId op) const {
    switch (function_.kind(op)) {
      case OpKind::kCrossEntropy:
      case OpKind::kCrossEntropyParts:
      case OpKind::kNegativeLikelihood:
      case OpKind::kSoftmax:
      case OpKind::kMaskedSoftmax:
      case OpKind::kLogSoftmax:
      case OpKind::kTopK:
      case OpKind::kArgMax:
        return true;
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMul:
      case OpKind::kDiv:
      case OpKind::kWhere:
        return HasFixedOperand(op) && MakesLogits(op);
      case OpKind::kScale:
      case OpKind::kCast:
      case OpKind::kAllReduce:
      case OpKind::kReduceScatter:
        return MakesLogits(op);
      default:
        return Moves(op) && MakesLogits(op);
    }
  }

  bool MakesLogits(OpId op) const {
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      if (logits_[function_.result(op, i)] != 0) return true;
    }
    return false;
  }

  // A bias, a scale or a mask, and not the residual stream: that goes on to the logits of all
  // layers.
  bool HasFixedOperand(OpId op) const {
    return std::ranges::any_of(function_.operands(op), [&](ValueId operand) {
      const OpId producer = function_.producer(RootOf(operand));
      return !producer.valid() || function_.kind(producer) == OpKind::kConstant;
    });
  }

  bool IsRead(ValueId weight) const { return read_.contains(RootOf(weight)); }

  int32_t OperandsInBackward(OpId op) const {
    const auto operands = function_.operands(op);
    switch (function_.kind(op)) {
      case OpKind::kMatMulGrad:
        return IsRead(operands[1]) ? 3 : 0;
      case OpKind::kLinearGroupGrad: {
        const auto weights = operands.subspan(1, (operands.size() - 1) / 2);
        const bool all = std::ranges::all_of(weights, [&](ValueId w) { return IsRead(w); });
        return all ? static_cast<int32_t>(operands.size()) : 0;
      }
      case OpKind::kMatMul:
        return IsRead(operands[0]) || IsRead(operands[1]) || MakesWeightGradient(op) ? 2 : 0;
      case OpKind::kMatMulWeightGrad:
        return MakesWeightGradient(op) ? 2 : 0;
      default:
        return 0;
    }
  }

  bool MakesWeightGradient(OpId op) const {
    const Dims& dims = function_.type(function_.result(op)).dims;
    return std::ranges::any_of(function_.operands(op), [&](ValueId operand) {
      return gradients_.contains({RootOf(operand), dims});
    });
  }

  void FindOnlyInCopies() {
    const auto& order = function_.order();
    const auto mark = [&](ValueId value) {
      const bool only = returned_[value] == 0 && !users_[value].empty() &&
                        std::ranges::all_of(users_[value], [&](OpId user) {
                          return ReadsOnlyInCopies(user, value);
                        });
      products_.only_in_copies[value] = only ? 1 : 0;
    };
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      for (int32_t i = 0; i < function_.result_count(*op); ++i) mark(function_.result(*op, i));
    }
  }

  bool ReadsOnlyInCopies(OpId user, ValueId value) const {
    if (MovesCopies(function_, user)) {
      return products_.only_in_copies[function_.result(user)] != 0;
    }
    const auto operands = function_.operands(user);
    const auto count = static_cast<size_t>(products_.operands[user]);
    return count > 0 && std::ranges::count(operands.subspan(count), value) == 0;
  }

  // The update of a weight makes its copy, too, where one product alone reads it: another may be on
  // another stage. That of a frozen weight lasts as long as the weight.
  void FindCopiedWeights() {
    IdTable<ValueId, int32_t> products(function_.value_limit(), 0);
    for (const OpId op : function_.order()) {
      if (products_.operands[op] == 0) continue;
      for (const ValueId weight : WeightsOf(op)) ++products[RootOf(weight)];
    }
    for (const ir::Output& output : function_.outputs()) {
      const OpId optimizer = function_.producer(output.value);
      const bool updated = output.role == ir::OutputRole::kUpdated && optimizer.valid() &&
                           function_.info(optimizer).op_class == ir::OpClass::kOptimizer;
      if (!updated || !output.of.valid() || products[output.of] != 1) continue;
      const bool only = std::ranges::all_of(users_[output.of], [&](OpId user) {
        return user == optimizer || ReadsOnlyInCopies(user, output.of);
      });
      if (only) products_.weights.insert(output.of);
    }
    for (const ValueId weight : frozen_) {
      const bool only = std::ranges::all_of(
          users_[weight], [&](OpId user) { return ReadsOnlyInCopies(user, weight); });
      if (only && products[weight] == 1) products_.weights.insert(weight);
    }
  }

  const Function& function_;
  const int64_t multiple_;
  const IdTable<OpId, StepPhase> phase_;
  IdTable<ValueId, std::vector<OpId>> users_;
  IdTable<ValueId, char> returned_;
  IdTable<ValueId, char> logits_;      // see FindLogits
  IdTable<ValueId, char> is_weight_;   // of 16 bits: a parameter, or one that is frozen
  std::vector<ValueId> frozen_;        // of these
  absl::flat_hash_set<ValueId> read_;  // of these, those that products read copies of
  absl::flat_hash_set<WeightGradient> gradients_;
  Fp8Products products_;
};

}  // namespace
}  // namespace fp8_products_cc

bool MakesCopy(const ir::Function& function, ir::OpId op) {
  if (function.kind(op) != ir::OpKind::kCast) return false;
  const ir::DType from = function.type(function.operands(op)[0]).dtype;
  const ir::DType to = function.type(function.result(op)).dtype;
  return (ir::IsNarrow(to) && from != to) || ir::IsQuantized(from);
}

bool MovesCopies(const ir::Function& function, ir::OpId op) {
  switch (function.kind(op)) {
    case ir::OpKind::kAllGather:
    case ir::OpKind::kAllSlice:
    case ir::OpKind::kTranspose:
    case ir::OpKind::kReshape:
    case ir::OpKind::kSqueeze:
    case ir::OpKind::kUnsqueeze:
    case ir::OpKind::kIdentity:
      return function.operands(op).size() == 1;
    default:
      return false;
  }
}

Fp8Products FindFp8Products(const ir::Function& function, ir::DType copies) {
  return fp8_products_cc::ProductFinder(function, copies).Run();
}

}  // namespace orrery::transforms
