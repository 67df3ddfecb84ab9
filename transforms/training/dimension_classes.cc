#include "transforms/training/dimension_classes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "ir/roles.h"
#include "transforms/training/padding_rule.h"

namespace orrery::transforms {
namespace dimension_classes_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ShardingRule;
using ir::ValueId;

bool Carries(const ShardingRule::Factors& factors, int8_t factor) {
  return std::ranges::find(factors, factor) != factors.end();
}

// Whether zeros stay zeros, alike in all operands.
bool KeepsZeros(const Function& function, OpId op) {
  switch (function.kind(op)) {
    case OpKind::kCast:
    case OpKind::kRelu:
    case OpKind::kGelu:
    case OpKind::kSilu:
    case OpKind::kTanh:
    case OpKind::kAbs:
    case OpKind::kSquaredRelu:
    case OpKind::kSwiGlu:
      return true;
    default:
      return function.info(op).linear;
  }
}

// Whether it is zero where one operand is, and adds up what is multiplied. Attention is not: where
// queries are zero it is a mean of values.
bool Multiplies(const Function& function, OpId op) {
  switch (function.kind(op)) {
    case OpKind::kMul:
    case OpKind::kMatMul:
    case OpKind::kMatMulGrad:
    case OpKind::kMatMulWeightGrad:
    case OpKind::kEinsum:
    case OpKind::kEinsumGrad:
    case OpKind::kConv:
    case OpKind::kConvDataGrad:
    case OpKind::kConvWeightGrad:
    case OpKind::kConvTranspose:
    case OpKind::kLinear:
    case OpKind::kLinearGroup:
    case OpKind::kLinearGroupGrad:
      return true;
    default:
      return false;
  }
}

// How many tensors it adds to its products: the last ones.
size_t CountBiases(const Function& function, OpId op) {
  const size_t operands = function.operands(op).size();
  const auto results = static_cast<size_t>(function.result_count(op));
  switch (function.kind(op)) {
    case OpKind::kLinear:
    case OpKind::kConv:
    case OpKind::kConvTranspose:
      return operands > 2 ? 1 : 0;
    case OpKind::kLinearGroup:
      return operands > 1 + results ? results : 0;
    default:
      return 0;
  }
}

class Finder {
 public:
  explicit Finder(const Function& function) : function_(function), first_(function.value_limit()) {
    for (const ir::Input& input : function.inputs()) AddDims(input.value);
    for (const OpId op : function.order()) {
      for (int32_t j = 0; j < function.result_count(op); ++j) AddDims(function.result(op, j));
    }
  }

  void Run() {
    for (const ir::Input& input : function_.inputs()) AddInput(input);
    for (const OpId op : function_.order()) Tie(op);
    for (const ir::Output& output : function_.outputs()) {
      if (output.of.valid()) TieAlike(output.value, output.of);
    }
    for (const OpId op : function_.order()) FollowZeros(op);
  }

  IdTable<ValueId, int32_t> TakeFirst() { return std::move(first_); }

  // The classes, numbered in the order of their first dimensions.
  std::vector<DimensionClass> Take(std::vector<int32_t>& class_of) {
    std::vector<DimensionClass> all;
    std::vector<int32_t> number(parent_.size(), DimensionClasses::kNone);
    class_of.assign(parent_.size(), DimensionClasses::kNone);
    for (size_t i = 0; i < parent_.size(); ++i) {
      if (sizes_[i] == 1) continue;
      const auto root = static_cast<size_t>(Root(static_cast<int32_t>(i)));
      if (number[root] == DimensionClasses::kNone) {
        number[root] = static_cast<int32_t>(all.size());
        all.push_back(made_[root]);
        if (all.back().count == 0) all.back().count = all.back().unit;
      }
      class_of[i] = number[root];
    }
    return all;
  }

 private:
  // A dimension of a value, as a position in the arrays.
  int32_t At(ValueId value, size_t dim) const { return first_[value] + static_cast<int32_t>(dim); }
  const ir::Dims& DimsOf(ValueId value) const { return function_.type(value).dims; }

  void AddDims(ValueId value) {
    first_[value] = static_cast<int32_t>(parent_.size());
    for (const int64_t size : DimsOf(value)) {
      parent_.push_back(static_cast<int32_t>(parent_.size()));
      sizes_.push_back(size);
      made_.push_back({.unit = size});
      zero_.push_back(0);
    }
  }

  int32_t Root(int32_t at) {
    while (parent_[static_cast<size_t>(at)] != at) {
      int32_t& parent = parent_[static_cast<size_t>(at)];
      parent = parent_[static_cast<size_t>(parent)];
      at = parent;
    }
    return at;
  }
  DimensionClass& Class(int32_t at) { return made_[static_cast<size_t>(Root(at))]; }

  void Unite(int32_t a, int32_t b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return;
    const auto [low, high] = std::minmax(a, b);
    DimensionClass& to = made_[static_cast<size_t>(low)];
    const DimensionClass& from = made_[static_cast<size_t>(high)];
    to.kind = std::max(to.kind, from.kind);
    to.unit = std::gcd(to.unit, from.unit);
    to.count = std::max(to.count, from.count);
    to.looked_up = to.looked_up || from.looked_up;
    to.of_weight = to.of_weight || from.of_weight;
    to.fixed = to.fixed || from.fixed;
    parent_[static_cast<size_t>(high)] = low;
  }

  void TieAlike(ValueId a, ValueId b) {
    if (DimsOf(a) != DimsOf(b)) return FixAll(a), FixAll(b);
    for (size_t d = 0; d < DimsOf(a).size(); ++d) Unite(At(a, d), At(b, d));
  }
  void FixAll(ValueId value) {
    for (size_t d = 0; d < DimsOf(value).size(); ++d) Class(At(value, d)).fixed = true;
  }

  // Weights, and what belongs to them, are zero where they are longer.
  void AddInput(const ir::Input& input) {
    const bool weight = ir::IsWeightOrBuffer(input.role);
    const bool state = input.role == ir::InputRole::kState;
    if (!weight && !state) return FixAll(input.value);
    const ir::Dims& dims = DimsOf(input.value);
    for (size_t d = 0; d < dims.size(); ++d) {
      zero_[static_cast<size_t>(At(input.value, d))] = 1;
      Class(At(input.value, d)).of_weight = weight && dims.size() > 1;
    }
  }

  void Tie(OpId op) {
    const ir::OpInfo& info = function_.info(op);
    if (info.op_class == ir::OpClass::kOptimizer) return TieOptimizer(op);
    const ShardingRule rule = PaddingRule(function_, op);
    const auto operands = function_.operands(op);
    const bool cross_entropy = function_.kind(op) == OpKind::kCrossEntropy ||
                               function_.kind(op) == OpKind::kCrossEntropyGrad;
    const bool known = rule.operands.size() == operands.size() &&
                       std::cmp_equal(rule.results.size(), function_.result_count(op)) &&
                       (cross_entropy || (!info.is_loss && !info.seeds_backward));
    if (!known) return FixOp(op);
    std::vector<int32_t> of_factor(128, DimensionClasses::kNone);
    for (size_t i = 0; i < operands.size(); ++i) {
      TieFactors(operands[i], rule.operands[i], /*made=*/false, of_factor);
    }
    const bool repeats = function_.kind(op) == OpKind::kExpand;
    for (size_t j = 0; j < rule.results.size(); ++j) {
      TieFactors(function_.result(op, static_cast<int32_t>(j)), rule.results[j], repeats,
                 of_factor);
    }
    Describe(op);
  }

  void FixOp(OpId op) {
    for (const ValueId operand : function_.operands(op)) FixAll(operand);
    for (int32_t j = 0; j < function_.result_count(op); ++j) FixAll(function_.result(op, j));
  }

  // `made`: dimensions without a factor are made here, as large as it takes.
  void TieFactors(ValueId value, const ShardingRule::Factors& factors, bool made,
                  std::vector<int32_t>& of_factor) {
    for (size_t d = 0; d < DimsOf(value).size(); ++d) {
      const int32_t at = At(value, d);
      if (sizes_[static_cast<size_t>(at)] == 1) continue;
      if (d >= factors.size() || factors[d] == ir::kNoFactor) {
        if (!made) Class(at).fixed = true;
        continue;
      }
      int32_t& other = of_factor[static_cast<size_t>(factors[d])];
      if (other == DimensionClasses::kNone) other = at;
      Unite(other, at);
    }
  }

  void TieOptimizer(OpId op) {
    const ir::OptimizerOperands operands(function_, op);
    for (size_t i = 0; i < operands.all().size(); ++i) {
      const ValueId parameter = operands.parameters()[operands.ParameterOf(i)];
      TieBeside(parameter, operands.all()[i]);
      if (std::cmp_less(i, function_.result_count(op))) {
        TieBeside(parameter, function_.result(op, static_cast<int32_t>(i)));
      }
    }
  }

  // What an optimizer has beside a parameter lacks dimensions over which it is a mean.
  void TieBeside(ValueId parameter, ValueId value) {
    const ir::Dims &dims = DimsOf(value), &own = DimsOf(parameter);
    if (dims.size() != own.size()) return FixAll(parameter), FixAll(value);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (ir::HasDimension(own, dims, d)) Unite(At(parameter, d), At(value, d));
    }
  }

  void Mark(int32_t at, DimensionKind kind) {
    DimensionClass& found = Class(at);
    found.kind = std::max(found.kind, kind);
  }

  // What the op tells of its dimensions, and how many heads there are.
  void Describe(OpId op) {
    const OpKind kind = function_.kind(op);
    const auto operands = function_.operands(op);
    const auto of = [&](size_t i, size_t dim) { return At(operands[i], dim); };
    if (kind == OpKind::kAttention || kind == OpKind::kAttentionGrad) {
      const int64_t heads = function_.attributes(op).Int("heads", 1);
      const int64_t keys = function_.attributes(op).Int("kv_heads", heads);
      const int32_t at = of(0, DimsOf(operands[0]).size() == 3 ? 2 : 1);
      Mark(at, DimensionKind::kHeads);
      Class(at).count = heads;
      Class(at).unit = std::gcd(Class(at).unit, keys > 1 ? keys : heads);
    } else if (kind == OpKind::kCrossEntropy) {
      Mark(of(0, DimsOf(operands[0]).size() - 1), DimensionKind::kClasses);
    } else if (kind == OpKind::kGather) {
      const int32_t at = of(0, static_cast<size_t>(function_.attributes(op).Int("axis", 0)));
      Mark(at, DimensionKind::kTable);
      Class(at).looked_up = true;
    } else if (kind == OpKind::kConv && DimsOf(operands[1]).size() > 1) {
      Mark(of(1, 0), DimensionKind::kChannels);
      Mark(of(1, 1), DimensionKind::kChannels);
    } else if (kind == OpKind::kReshape) {
      MarkSplit(operands[0], function_.result(op));
    }
  }

  // Columns that are taken for heads of so many.
  void MarkSplit(ValueId x, ValueId y) {
    for (size_t d = 0; d < DimsOf(x).size(); ++d) {
      for (size_t e = 0; e < DimsOf(y).size(); ++e) {
        if (DimsOf(x)[d] == 1 || DimsOf(y)[e] == 1 || DimsOf(x)[d] == DimsOf(y)[e]) continue;
        if (Root(At(x, d)) == Root(At(y, e))) Mark(At(x, d), DimensionKind::kHeads);
      }
    }
  }

  // Where results are zero behind the end, and what may not be added up as there are no zeros.
  void FollowZeros(OpId op) {
    if (function_.info(op).op_class == ir::OpClass::kOptimizer) return;
    const ShardingRule rule = PaddingRule(function_, op);
    if (rule.operands.size() != function_.operands(op).size()) return;
    for (size_t j = 0; j < rule.results.size(); ++j) {
      const ValueId result = function_.result(op, static_cast<int32_t>(j));
      for (size_t d = 0; d < std::min(rule.results[j].size(), DimsOf(result).size()); ++d) {
        const int8_t factor = rule.results[j][d];
        if (factor == ir::kNoFactor) continue;
        zero_[static_cast<size_t>(At(result, d))] = MakesZeros(op, rule, factor) ? 1 : 0;
      }
      if (!NeedsNoZeros(function_.kind(op))) FixSums(op, rule, rule.results[j]);
    }
  }

  bool IsZero(OpId op, const ShardingRule& rule, size_t operand, int8_t factor) const {
    const auto& factors = rule.operands[operand];
    const auto found = std::ranges::find(factors, factor);
    if (found == factors.end()) return false;
    const auto dim = static_cast<size_t>(found - factors.begin());
    return zero_[static_cast<size_t>(At(function_.operands(op)[operand], dim))] != 0;
  }
  // Of operands `begin` to `end`.
  int CountZeros(OpId op, const ShardingRule& rule, size_t begin, size_t end, int8_t factor) const {
    int count = 0;
    for (size_t i = begin; i < end; ++i) count += IsZero(op, rule, i, factor) ? 1 : 0;
    return count;
  }
  bool AnyZero(OpId op, const ShardingRule& rule, int8_t factor) const {
    return CountZeros(op, rule, 0, rule.operands.size(), factor) > 0;
  }
  bool AllZero(OpId op, const ShardingRule& rule, int8_t factor) const {
    const size_t count = rule.operands.size();
    return count > 0 && std::cmp_equal(CountZeros(op, rule, 0, count, factor), count);
  }

  // The activations of a convolution are many, and not all of them zero at zero.
  bool MakesZeros(OpId op, const ShardingRule& rule, int8_t factor) const {
    const OpKind kind = function_.kind(op);
    const bool activated = !function_.attributes(op).String("activation", "").empty();
    if (kind == OpKind::kConv && activated) return false;
    if (kind == OpKind::kAttentionGrad) return IsZero(op, rule, 5, factor);  // the gradient of y
    if (!Multiplies(function_, op)) return KeepsZeros(function_, op) && AllZero(op, rule, factor);
    const size_t all = rule.operands.size();
    const size_t first_bias = all - CountBiases(function_, op);
    return CountZeros(op, rule, 0, first_bias, factor) > 0 &&
           (first_bias == all || CountZeros(op, rule, first_bias, all, factor) > 0);
  }

  // Factors that a result lacks are added up in it. A mean counts how many there are.
  void FixSums(OpId op, const ShardingRule& rule, const ShardingRule::Factors& result) {
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      for (size_t d = 0; d < std::min(rule.operands[i].size(), DimsOf(operands[i]).size()); ++d) {
        const int8_t factor = rule.operands[i][d];
        if (factor == ir::kNoFactor || Carries(result, factor)) continue;
        const bool linear = function_.info(op).linear && function_.kind(op) != OpKind::kReduceMean;
        const bool sums = Multiplies(function_, op) ? AnyZero(op, rule, factor)
                                                    : linear && AllZero(op, rule, factor);
        if (!sums) Class(At(operands[i], d)).fixed = true;
      }
    }
  }

  const Function& function_;
  IdTable<ValueId, int32_t> first_;
  std::vector<int32_t> parent_;
  std::vector<int64_t> sizes_;
  std::vector<DimensionClass> made_;  // of what is its own parent
  std::vector<char> zero_;            // behind the end
};

}  // namespace
}  // namespace dimension_classes_cc

DimensionClasses::DimensionClasses(const ir::Function& function) {
  dimension_classes_cc::Finder finder(function);
  finder.Run();
  all_ = finder.Take(class_of_);
  first_ = finder.TakeFirst();
  // Of a loss that tells words apart, not kinds of samples.
  int64_t words = 0;
  for (const DimensionClass& each : all_) {
    if (each.looked_up) words = std::max(words, each.count);
  }
  for (DimensionClass& each : all_) {
    if (each.kind == DimensionKind::kClasses && each.count != words) each.fixed = true;
  }
}

}  // namespace orrery::transforms
